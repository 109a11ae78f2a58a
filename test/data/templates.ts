// The chat templates and the texts that the reference implementation rendered from them, in ../shared; each with a small tokenizer that
// has the control tokens of its family, as the models' files flag them.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type JsonValue, parseJson } from "../../src/renderers/template/json-values.ts";
import { loadTokenizer, type Tokenizer } from "../../src/tokenizer/index.ts";
import { tinyTokenizerFolder } from "./tiny-tokenizer.ts";

const folder = fileURLToPath(new URL("../../../shared/data/templates/", import.meta.url));

export const templatesAreThere = existsSync(join(folder, "vectors.json"));
if (!templatesAreThere) console.warn(`skipping the chat templates: ${folder} is not there`);

export interface TemplateVector {
  template: string;
  conversation: string;
  add_generation_prompt: boolean;
  kwargs: Record<string, unknown>;
  text?: string;
  error?: { type: string; message: string };
  generation_spans_utf16?: [number, number][];
}

export interface PrefixVector {
  template: string;
  conversation: string;
  kwargs: Record<string, unknown>;
  is_prefix: boolean;
  completion?: string;
}

interface Vectors {
  templates: Record<string, { file: string; special_tokens: Record<string, string> }>;
  vectors: TemplateVector[];
  prefix: PrefixVector[];
}

export type Conversation = Map<string, JsonValue>;

let read: (Vectors & { conversations: Map<string, Conversation> }) | undefined;

/** The vectors; conversations keep the order of their keys and the spelling of their numbers. */
export function templateVectors() {
  if (read) return read;
  const text = readFileSync(join(folder, "vectors.json"), "utf8");
  const ordered = parseJson(text, "vectors.json") as Map<string, JsonValue>;
  const conversations = ordered.get("conversations") as Map<string, Conversation>;
  read = { ...(JSON.parse(text) as Vectors), conversations };
  return read;
}

export const templateSource = (name: string): string =>
  readFileSync(join(folder, templateVectors().templates[name]!.file), "utf8");

/** The clock of the vectors. */
export const vectorsNow = new Date(2026, 1, 3, 14, 5, 6);

interface Family {
  special: string[];
  /** Added, but not flagged as special. */
  words?: string[];
  /** Of generation_config.json, where it says more than the tokenizer's eos_token. */
  ends?: string[];
}

const chatml = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"];
const think = ["<think>", "</think>"];
const tools = ["<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>"];
const qwen: Family = { special: chatml, words: [...think, ...tools], ends: ["<|im_end|>", "<|endoftext|>"] };
const nemotron: Family = { special: ["<s>", ...chatml.slice(1)], words: [...think, ...tools] };
const kimi: Family = {
  special: [
    "[BOS]",
    "[EOS]",
    "[PAD]",
    "<|im_end|>",
    "<|im_user|>",
    "<|im_assistant|>",
    "<|im_system|>",
    "<|im_middle|>",
  ],
  words: [
    ...think,
    "<|tool_calls_section_begin|>",
    "<|tool_calls_section_end|>",
    "<|tool_call_begin|>",
    "<|tool_call_argument_begin|>",
    "<|tool_call_end|>",
  ],
};
const deepseek: Family = {
  special: ["<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>"],
  words: [
    ...think,
    "<｜User｜>",
    "<｜Assistant｜>",
    "<｜tool▁calls▁begin｜>",
    "<｜tool▁calls▁end｜>",
    "<｜tool▁call▁begin｜>",
    "<｜tool▁call▁end｜>",
    "<｜tool▁sep｜>",
    "<｜tool▁output▁begin｜>",
    "<｜tool▁output▁end｜>",
  ],
};

const families: Readonly<Record<string, Family>> = {
  qwen,
  nemotron,
  kimi,
  deepseek,
  "gpt-oss": {
    special: [
      "<|startoftext|>",
      "<|endoftext|>",
      "<|start|>",
      "<|end|>",
      "<|message|>",
      "<|channel|>",
      "<|constrain|>",
      "<|return|>",
      "<|call|>",
    ],
    ends: ["<|return|>", "<|endoftext|>", "<|call|>"],
  },
  llama: {
    special: [
      "<|begin_of_text|>",
      "<|end_of_text|>",
      "<|start_header_id|>",
      "<|end_header_id|>",
      "<|eot_id|>",
      "<|eom_id|>",
      "<|python_tag|>",
    ],
    ends: ["<|end_of_text|>", "<|eom_id|>", "<|eot_id|>"],
  },
  glm: {
    special: ["<|endoftext|>", "[gMASK]", "<sop>", "<|system|>", "<|user|>", "<|assistant|>", "<|observation|>"],
    words: [...think, ...tools, "/nothink", "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>"],
    ends: ["<|endoftext|>", "<|user|>", "<|observation|>"],
  },
  mistral: {
    special: [
      "<s>",
      "</s>",
      "[INST]",
      "[/INST]",
      "[SYSTEM_PROMPT]",
      "[/SYSTEM_PROMPT]",
      "[AVAILABLE_TOOLS]",
      "[/AVAILABLE_TOOLS]",
      "[TOOL_CALLS]",
      "[TOOL_RESULTS]",
      "[/TOOL_RESULTS]",
      "[TOOL_CONTENT]",
      "[CALL_ID]",
      "[ARGS]",
      "[IMG]",
    ],
  },
  "gemma-3": {
    special: ["<bos>", "<eos>", "<pad>", "<start_of_turn>", "<end_of_turn>", "<start_of_image>"],
    ends: ["<eos>", "<end_of_turn>"],
  },
  "gemma-4": {
    special: [
      "<bos>",
      "<eos>",
      "<pad>",
      "<|turn>",
      "<turn|>",
      "<|channel>",
      "<channel|>",
      "<|think|>",
      "<|tool>",
      "<tool|>",
      "<|tool_call>",
      "<tool_call|>",
      "<|tool_response>",
      "<tool_response|>",
      '<|"|>',
      "<|image|>",
      "<|audio|>",
      "<|video|>",
    ],
  },
  phi: {
    special: ["<s>", "</s>", "<|system|>", "<|user|>", "<|assistant|>", "<|end|>", "<|endoftext|>"],
    ends: ["<|end|>", "<|endoftext|>"],
  },
};

const familyOf = (template: string): Family => {
  const name = Object.keys(families).find((family) => template.startsWith(family));
  return families[name!]!;
};

/** The control tokens of a template's family. */
export const controlTokensOf = (template: string): string[] => {
  const { special, words = [] } = familyOf(template);
  return [...special, ...words.filter((word) => !/^<\/?[\w:-]+>$|^\/\w+$/.test(word))];
};

/** A small tokenizer with the template and the control tokens of its family. */
export function templateTokenizer(template: string): Promise<Tokenizer> {
  const { special, words = [], ends } = familyOf(template);
  return loadTokenizer(
    tinyTokenizerFolder({
      chatTemplate: templateSource(template),
      added: [
        ...special.map((content) => ({ content, special: true })),
        ...words.map((content) => ({ content, special: false })),
      ],
      config: templateVectors().templates[template]!.special_tokens,
      ...(ends ? { endTokens: ends } : {}),
    }),
  );
}
