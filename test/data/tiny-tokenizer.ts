// A complete byte-level BPE tokenizer of about 300 tokens with ChatML and tool tokens, made from a list of merges: what tests use
// where the real one is not needed.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryFolder } from "./shared.ts";

const merges = [
  "t h",
  "th e",
  "Ġ the",
  "i n",
  "e r",
  "o n",
  "p r",
  "in t",
  "pr int",
  "Ġ =",
  "Ċ Ċ",
  "d e",
  "de f",
  "r e",
  "re t",
];
const special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"];
const added = ["<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>", "<think>", "</think>"];

export interface TinyTokenizer {
  chatTemplate?: string;
  mergeSpecial?: boolean;
  /** Tokens beside the vocabulary, in place of ChatML's. */
  added?: readonly { content: string; special: boolean; rstrip?: boolean }[];
  /** tokenizer_config.json */
  config?: object;
  /** generation_config.json, its tokens by their text. */
  endTokens?: readonly string[];
}

/** Writes tokenizer.json (and, if given, a chat template and configs) into a new temporary folder. */
export function tinyTokenizerFolder(options: TinyTokenizer = {}): string {
  const vocab: Record<string, number> = {};
  const add = (token: string) => {
    vocab[token] ??= Object.keys(vocab).length;
  };
  let next = 0x100;
  for (let byte = 0; byte < 256; byte++) {
    const printable = (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
    add(String.fromCharCode(printable ? byte : next++));
  }
  const rules = [...merges];
  // Merges that build a control token out of plain text: a tokenizer that must be refused.
  if (options.mergeSpecial) {
    for (let end = 2; end <= "<|im_end|>".length; end++) {
      rules.push(`${"<|im_end|>".slice(0, end - 1)} ${"<|im_end|>"[end - 1]}`);
    }
  }
  for (const merge of rules) add(merge.replace(" ", ""));
  const tokens = options.added ?? [
    ...special.map((content) => ({ content, special: true })),
    ...added.map((content) => ({ content, special: false })),
  ];
  const first = Object.keys(vocab).length;
  const json = {
    version: "1.0",
    added_tokens: tokens.map((token, index) => ({
      id: vocab[token.content] ?? first + index,
      single_word: false,
      lstrip: false,
      rstrip: false,
      normalized: false,
      ...token,
    })),
    normalizer: null,
    pre_tokenizer: {
      type: "ByteLevel",
      add_prefix_space: false,
      trim_offsets: false,
      use_regex: !options.mergeSpecial,
    },
    post_processor: null,
    decoder: { type: "ByteLevel" },
    model: { type: "BPE", vocab, merges: rules },
  };
  const folder = temporaryFolder();
  writeFileSync(join(folder, "tokenizer.json"), JSON.stringify(json));
  if (options.chatTemplate !== undefined) writeFileSync(join(folder, "chat_template.jinja"), options.chatTemplate);
  if (options.config) writeFileSync(join(folder, "tokenizer_config.json"), JSON.stringify(options.config));
  if (options.endTokens) {
    const ids = options.endTokens.map((end) => json.added_tokens.find(({ content }) => content === end)!.id);
    writeFileSync(join(folder, "generation_config.json"), JSON.stringify({ eos_token_id: ids }));
  }
  return folder;
}
