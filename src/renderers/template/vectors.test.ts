// Every text that the reference implementation rendered, rendered here; and what follows from a template: where a turn ends, what it
// can be told about thinking, where its reasoning stands, what to train on.
import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import {
  type Conversation,
  controlTokensOf,
  templateSource,
  templatesAreThere,
  templateTokenizer,
  templateVectors,
  vectorsNow,
} from "../../../test/data/templates.ts";
import type { Tokenizer } from "../../tokenizer/index.ts";
import type { Message } from "../messages.ts";
import { ChatTemplate } from "./jinja.ts";
import type { JsonValue } from "./json-values.ts";
import { TemplateRenderer } from "./template-renderer.ts";

const names = templatesAreThere ? Object.keys(templateVectors().templates) : [];

/**
 * Vectors whose text is not the reference's, by template and conversation, with the reason. There are none; the list is here so that an
 * update of the interpreter that changes this has a place to say so.
 */
const exceptions: Record<string, string> = {};

/** transformers gives a message's reasoning to the template under both names that templates read. */
function withBothNames(messages: JsonValue): Map<string, JsonValue>[] {
  return (messages as Map<string, JsonValue>[]).map((message) => {
    const reasoning = message.get("reasoning_content");
    return reasoning === undefined ? message : new Map([...message, ["thinking", reasoning]]);
  });
}

const toMessages = (conversation: Conversation): Message[] =>
  (conversation.get("messages") as Map<string, JsonValue>[]).map((message) => ({
    role: message.get("role") as Message["role"],
    content: (message.get("content") as string | null) ?? "",
    ...(message.has("reasoning_content") ? { reasoning: message.get("reasoning_content") as string } : {}),
  }));

const hasTools = (conversation: Conversation) =>
  conversation.has("tools") ||
  (conversation.get("messages") as Map<string, JsonValue>[]).some((message) => message.has("tool_calls"));

describe.skipIf(!templatesAreThere)("the reference's texts", () => {
  test.each(names)("%s", (name) => {
    const { vectors, conversations, templates } = templateVectors();
    const template = new ChatTemplate(templateSource(name), {
      name,
      controlTokens: controlTokensOf(name),
      specialTokens: templates[name]!.special_tokens,
      now: vectorsNow,
    });
    const mine = vectors.filter(
      (vector) => vector.template === name && !(`${name} ${vector.conversation}` in exceptions),
    );
    expect(mine.length).toBeGreaterThan(80);
    for (const vector of mine) {
      const conversation = conversations.get(vector.conversation)!;
      const render = () =>
        template.controls.plain(
          template.render({
            messages: withBothNames(conversation.get("messages")!),
            tools: conversation.get("tools") as unknown[] | undefined,
            addGenerationPrompt: vector.add_generation_prompt,
            settings: vector.kwargs,
          }),
        );
      const label = `${vector.conversation} ${JSON.stringify(vector.kwargs)} ${vector.add_generation_prompt}`;
      if (vector.text !== undefined) expect(render(), label).toBe(vector.text);
      else if (vector.error!.type === "TemplateError") expect(render, label).toThrow(vector.error!.message);
      else expect(render, label).toThrow();
    }
  });

  test("all 2,867 of them", () => {
    expect(templateVectors().vectors).toHaveLength(2867);
    expect(Object.keys(exceptions)).toEqual([]);
  });
});

interface Facts {
  /** Texts of the stop tokens, the first being the end of a turn that the template writes. */
  stop: string[];
  thinking: string;
  keepsTurns: boolean;
}

const facts: Record<string, Facts> = {
  qwen3: { stop: ["<|im_end|>", "<|endoftext|>"], thinking: "on off", keepsTurns: false },
  "qwen3-instruct-2507": { stop: ["<|im_end|>", "<|endoftext|>"], thinking: "off", keepsTurns: true },
  "qwen3-coder": { stop: ["<|im_end|>", "<|endoftext|>"], thinking: "off", keepsTurns: true },
  "qwen3.5": { stop: ["<|im_end|>", "<|endoftext|>"], thinking: "on off", keepsTurns: false },
  "qwen3.6": { stop: ["<|im_end|>", "<|endoftext|>"], thinking: "on off", keepsTurns: false },
  "qwen3.8": { stop: ["<|im_end|>", "<|endoftext|>"], thinking: "on off low medium", keepsTurns: true },
  "gpt-oss": { stop: ["<|return|>", "<|call|>", "<|endoftext|>"], thinking: "on low medium high", keepsTurns: false },
  "deepseek-v3.1": { stop: ["<｜end▁of▁sentence｜>"], thinking: "on off", keepsTurns: true },
  "deepseek-v3.2": { stop: ["<｜end▁of▁sentence｜>"], thinking: "on off", keepsTurns: false },
  "kimi-k2-thinking": { stop: ["<|im_end|>", "[EOS]"], thinking: "on", keepsTurns: false },
  "kimi-k2.5-k2.6": { stop: ["<|im_end|>", "[EOS]"], thinking: "on off", keepsTurns: false },
  "nemotron-3-nano": { stop: ["<|im_end|>"], thinking: "on off", keepsTurns: false },
  "nemotron-3-super": { stop: ["<|im_end|>"], thinking: "on off low", keepsTurns: false },
  "nemotron-3-ultra": { stop: ["<|im_end|>"], thinking: "on off medium", keepsTurns: false },
  "llama-3.1": { stop: ["<|eot_id|>", "<|end_of_text|>", "<|eom_id|>"], thinking: "off", keepsTurns: true },
  "glm-4.6": { stop: ["<|user|>", "<|observation|>", "<|endoftext|>"], thinking: "on off", keepsTurns: false },
  "mistral-small-3.2": { stop: ["</s>"], thinking: "off", keepsTurns: true },
  "gemma-3": { stop: ["<end_of_turn>", "<eos>"], thinking: "off", keepsTurns: true },
  "gemma-4": { stop: ["<turn|>", "<eos>"], thinking: "on off", keepsTurns: false },
  "phi-3.5": { stop: ["<|end|>", "<|endoftext|>"], thinking: "off", keepsTurns: true },
  "qwen3-training": { stop: ["<|im_end|>", "<|endoftext|>"], thinking: "on off", keepsTurns: true },
  "nemotron-3-ultra-training": { stop: ["<|im_end|>"], thinking: "on off medium", keepsTurns: false },
};

const tokenizers = new Map<string, Promise<Tokenizer>>();
const tokenizerOf = (name: string) => {
  if (!tokenizers.has(name)) tokenizers.set(name, templateTokenizer(name));
  return tokenizers.get(name)!;
};
const renderers = new Map<string, Promise<TemplateRenderer>>();
const open = (name: string, settings: ConstructorParameters<typeof TemplateRenderer>[1] = {}) => {
  const key = JSON.stringify([name, settings]);
  const known =
    renderers.get(key) ??
    tokenizerOf(name).then((tokenizer) => new TemplateRenderer(tokenizer, { now: vectorsNow, ...settings }));
  renderers.set(key, known);
  return known;
};

describe.skipIf(!templatesAreThere)("what a template says about its model", () => {
  test.each(names)("%s", async (name) => {
    const renderer = await open(name);
    expect({
      stop: renderer.stop.map((id) => renderer.tokenizer.decode([id])),
      thinking: ["on", "off", "low", "medium", "high"].filter((mode) => mode in renderer.thinking).join(" "),
      keepsTurns: renderer.hasExtensionProperty,
    }).toEqual(facts[name]);
  });

  test("docs/renderers.md says the same", () => {
    const page = readFileSync(new URL("../../../docs/renderers.md", import.meta.url), "utf8");
    const rows = [...page.matchAll(/^\| ([^|]+) \| `template` \| ([a-z, ]+) \| (.+?) \| ([^|]+) \|$/gm)];
    const label = (text: string) => text.toLowerCase().replaceAll(/[^a-z0-9.]/g, "");
    const documented = rows.filter(([, family]) => !family!.startsWith("any other"));
    for (const [, family, thinking, stop] of documented) {
      // "Qwen3.5, Qwen3.6" and "DeepSeek V3.1, V3.2" are two templates each.
      const [first] = family!.split(", ");
      const [name] = names.filter((candidate) => label(candidate).startsWith(label(first!)));
      expect(name, family).toBeDefined();
      const stops = [...stop!.replaceAll("\\|", "|").matchAll(/`([^`]+)`/g)].map(([, token]) => token);
      expect(stops, family).toEqual(facts[name!]!.stop);
      expect(thinking!.split(", ").sort(), family).toEqual(facts[name!]!.thinking.split(" ").sort());
    }
    expect(documented.length).toBeGreaterThan(14);
  });

  test("prompts are the reference's, and their tokens are those of the whole text", async () => {
    const { vectors, conversations } = templateVectors();
    let compared = 0;
    for (const name of names) {
      const renderer = await open(name);
      for (const vector of vectors) {
        const conversation = conversations.get(vector.conversation)!;
        const usable =
          vector.template === name &&
          vector.text !== undefined &&
          vector.add_generation_prompt &&
          !hasTools(conversation);
        if (!usable || Object.keys(vector.kwargs).length > 0 || typeof conversation.get("messages") !== "object")
          continue;
        if (/content_parts|developer_role|control_tokens/.test(vector.conversation)) continue;
        const tokens = renderer.buildGenerationPrompt(toMessages(conversation));
        expect(tokens, `${name} ${vector.conversation}`).toEqual(
          renderer.tokenizer.encode(vector.text!, { special: true }),
        );
        compared++;
      }
    }
    expect(compared).toBeGreaterThan(450);
  });
});

describe.skipIf(!templatesAreThere)("what to train on", () => {
  test("the last answer is what the reference writes after its prompt", async () => {
    const { prefix, conversations } = templateVectors();
    let compared = 0;
    for (const vector of prefix) {
      const conversation = conversations.get(vector.conversation)!;
      if (!vector.is_prefix || hasTools(conversation)) continue;
      const renderer = await open(vector.template, { templateSettings: vector.kwargs });
      const { tokens, weights } = renderer.buildSupervisedExample(toMessages(conversation));
      const trained = renderer.tokenizer.decode(tokens.filter((_, index) => weights[index] === 1));
      // The newline after the end of a turn, and the end of the text, are not the model's.
      const tail = vector.completion!.slice(trained.length);
      expect(vector.completion!.startsWith(trained), `${vector.template} ${vector.conversation}`).toBe(true);
      expect(["", "\n", "\n<|endoftext|>", "<|endoftext|>"]).toContain(tail);
      const before = renderer.buildGenerationPrompt(toMessages(conversation).slice(0, -1));
      expect(tokens.slice(0, before.length)).toEqual(before);
      compared++;
    }
    expect(compared).toBeGreaterThan(180);
  });

  test("templates with generation marks train on exactly their marks", async () => {
    const { vectors, conversations } = templateVectors();
    let compared = 0;
    for (const vector of vectors) {
      const conversation = conversations.get(vector.conversation)!;
      const roles = toMessages(conversation).map(({ role }) => role);
      if (
        !vector.generation_spans_utf16 ||
        hasTools(conversation) ||
        /content_parts|developer/.test(vector.conversation)
      )
        continue;
      if (vector.add_generation_prompt || !roles.includes("assistant")) continue;
      const renderer = await open(vector.template, { templateSettings: vector.kwargs });
      const { tokens, weights } = renderer.buildSupervisedExample(toMessages(conversation), {
        trainOn: "all_assistant_messages",
      });
      if (roles.filter((role) => role === "assistant").length === 1 && roles.at(-1) === "assistant") continue;
      // The marks hold the newline after a turn; no model writes it.
      const spans = vector.generation_spans_utf16.map(([start, end]) => vector.text!.slice(start, end).trimEnd());
      expect(runs(renderer, tokens, weights), `${vector.template} ${vector.conversation}`).toEqual(spans);
      compared++;
    }
    expect(compared).toBeGreaterThan(8);
  });

  const conversation: Message[] = [
    { role: "system", content: "Sys" },
    { role: "user", content: "One" },
    { role: "assistant", content: "Two" },
    { role: "user", content: "Three" },
    { role: "assistant", content: "Four" },
  ];

  test.each(names)("every mode trains on its messages: %s", async (name) => {
    const thinking = facts[name]!.thinking.includes("off") ? ("off" as const) : ("" as const);
    const renderer = await open(name, { thinking });
    const trained = (trainOn: "all_assistant_messages" | "all_messages" | "all_user_and_system_messages") => {
      const { tokens, weights } = renderer.buildSupervisedExample(conversation, { trainOn });
      return runs(renderer, tokens, weights);
    };
    const answers = trained("all_assistant_messages");
    expect(answers).toHaveLength(2);
    expect(answers[0]).toContain("Two");
    expect(answers[1]).toContain("Four");
    expect(answers.join("")).not.toMatch(/One|Three|Sys/);
    const asked = trained("all_user_and_system_messages").join("");
    expect(asked).toMatch(/Sys[\s\S]*One[\s\S]*Three/);
    expect(asked).not.toMatch(/Two|Four/);
    expect(trained("all_messages").join("")).toMatch(/Sys[\s\S]*One[\s\S]*Two[\s\S]*Three[\s\S]*Four/);
    const all = renderer.buildSupervisedExample(conversation, { trainOn: "all_tokens" });
    expect(all.weights.every((weight) => weight === 1)).toBe(true);
    const last = renderer.buildSupervisedExample(conversation);
    expect(runs(renderer, last.tokens, last.weights)).toHaveLength(1);
    expect(runs(renderer, last.tokens, last.weights)[0]).toMatch(/Four/);
  });

  test("reasoning that a prompt has no room for is refused; reasoning that a template drops is kept", async () => {
    const messages: Message[] = [
      { role: "user", content: "Q" },
      { role: "assistant", content: "A", reasoning: "because" },
    ];
    const off = await open("qwen3.5", { thinking: "off" });
    expect(() => off.buildSupervisedExample(messages)).toThrow(
      expect.objectContaining({ code: "renderer/not-a-continuation" }),
    );
    const deepseek = await open("deepseek-v3.1", { thinking: "on" });
    const { tokens } = deepseek.buildSupervisedExample(messages);
    expect(deepseek.tokenizer.decode(tokens)).toBe(
      "<｜begin▁of▁sentence｜><｜User｜>Q<｜Assistant｜><think>because</think>A<｜end▁of▁sentence｜>",
    );
  });
});

function runs(renderer: TemplateRenderer, tokens: readonly number[], weights: readonly number[]): string[] {
  const found: number[][] = [];
  for (const [index, token] of tokens.entries()) {
    if (weights[index] !== 1) continue;
    if (weights[index - 1] === 1) found.at(-1)!.push(token);
    else found.push([token]);
  }
  return found.map((ids) => renderer.tokenizer.decode(ids));
}
