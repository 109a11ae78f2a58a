// Reasoning and answer in what each family's model writes, the ways of thinking, and the names of tinker-cookbook.
import { describe, expect, test } from "vitest";
import { templatesAreThere, templateTokenizer, vectorsNow } from "../../../test/data/templates.ts";
import { tinyTokenizerFolder } from "../../../test/data/tiny-tokenizer.ts";
import { extractCode } from "../../grading/index.ts";
import { loadTokenizer } from "../../tokenizer/index.ts";
import { aliases, describeAlias, refusedNames } from "../aliases.ts";
import type { Thinking } from "../messages.ts";
import { chooseRenderer, getRenderer } from "../registry.ts";
import { TemplateRenderer } from "./template-renderer.ts";

const open = async (name: string, thinking: Thinking = "") =>
  new TemplateRenderer(await templateTokenizer(name), { now: vectorsNow, thinking });

const fence = "```";
const draft = `${fence}python\ndraft\n${fence}`;
const final = `${fence}python\nfinal\n${fence}`;

/** A response of each family's model, with a draft in its reasoning: written after the prompt, stop token included. */
const responses: [template: string, thinking: Thinking, response: string][] = [
  ["qwen3", "", `<think>\n${draft}\n</think>\n\n${final}<|im_end|>`],
  ["qwen3", "off", `${final}<|im_end|>`],
  ["qwen3-instruct-2507", "", `${final}<|im_end|>`],
  ["qwen3.5", "", `${draft}\n</think>\n\n${final}<|im_end|>`],
  ["qwen3.5", "off", `${final}<|im_end|>`],
  ["qwen3.8", "low", `${draft}\n</think>\n\n${final}<|im_end|>`],
  [
    "gpt-oss",
    "",
    `<|channel|>analysis<|message|>${draft}<|end|><|start|>assistant<|channel|>final<|message|>${final}<|return|>`,
  ],
  ["deepseek-v3.1", "", `${final}<｜end▁of▁sentence｜>`],
  ["deepseek-v3.1", "on", `${draft}</think>${final}<｜end▁of▁sentence｜>`],
  ["kimi-k2-thinking", "", `<think>${draft}</think>${final}<|im_end|>`],
  ["kimi-k2.5-k2.6", "", `${draft}</think>${final}<|im_end|>`],
  ["nemotron-3-nano", "", `${draft}\n</think>\n${final}<|im_end|>`],
  ["nemotron-3-ultra", "medium", `${draft}</think>${final}<|im_end|>`],
  ["llama-3.1", "", `${final}<|eot_id|>`],
  ["glm-4.6", "", `\n<think>${draft}</think>\n${final}<|user|>`],
  ["glm-4.6", "off", `\n${final}<|user|>`],
  ["mistral-small-3.2", "", `${final}</s>`],
  ["gemma-3", "", `${final}<end_of_turn>`],
  ["gemma-4", "on", `<|channel>thought\n${draft}\n<channel|>${final}<turn|>`],
  ["gemma-4", "off", `${final}<turn|>`],
  ["phi-3.5", "", `${final}<|end|>`],
];

describe.skipIf(!templatesAreThere)("responses", () => {
  test.each(responses)("%s thinking=%s", async (name, thinking, response) => {
    const renderer = await open(name, thinking);
    const tokens = renderer.tokenizer.encode(response, { special: true });
    const { message, termination, reasoningOpen } = renderer.parseResponse(tokens);
    expect(termination).toBe("stop_sequence");
    expect(reasoningOpen).toBeUndefined();
    expect(message.content.trim()).toBe(final);
    expect(extractCode(message.content)).toBe("final");
    expect(message.reasoning?.trim()).toBe(response.includes("draft") ? draft : undefined);

    if (!response.includes("draft")) return;
    // Cut off within the reasoning, by the limit or by the model itself: no answer, whatever programs it drafted.
    const cut = response.slice(0, response.indexOf("draft") + draft.length - "```python\n".length);
    for (const end of ["", renderer.endOfTurn ?? "<|user|>"]) {
      const read = renderer.parseResponse(renderer.tokenizer.encode(cut + end, { special: true }));
      expect(read).toMatchObject({ message: { content: "" }, reasoningOpen: true });
      expect(read.termination).toBe(end === "" ? "malformed" : "stop_sequence");
    }
  });

  test("marks of a channel that the model only spells are text", async () => {
    const renderer = await open("gpt-oss");
    const { tokenizer } = renderer;
    const spelled = "<|channel|>final<|message|>not yet";
    const tokens = [
      ...tokenizer.encode("<|channel|>analysis<|message|>", { special: true }),
      ...tokenizer.encode(spelled),
    ];
    expect(renderer.parseResponse(tokens)).toMatchObject({
      message: { content: "", reasoning: spelled },
      reasoningOpen: true,
    });
  });

  test("a call of a tool is no answer and is not cut off", async () => {
    const renderer = await open("gpt-oss");
    const response = '<|channel|>commentary to=functions.run <|constrain|>json<|message|>{"a":1}<|call|>';
    const { message, reasoningOpen } = renderer.parseResponse(renderer.tokenizer.encode(response, { special: true }));
    expect(reasoningOpen).toBeUndefined();
    expect(message).toEqual({ role: "assistant", content: "", toolCalls: [{ name: "run", arguments: { a: 1 } }] });
  });

  test("more than one stop token is an error", async () => {
    const renderer = await open("llama-3.1");
    const tokens = renderer.tokenizer.encode("a<|eot_id|>b<|end_of_text|>", { special: true });
    expect(() => renderer.parseResponse(tokens)).toThrow(/2 stop tokens/);
  });
});

describe.skipIf(!templatesAreThere)("thinking=", () => {
  test.each([
    ["qwen3.8", "high", "on, off, low, medium"],
    ["gpt-oss", "off", "on, low, medium, high"],
    ["llama-3.1", "on", "off"],
    ["kimi-k2-thinking", "off", "on"],
    ["nemotron-3-nano", "low", "on, off"],
  ] as const)("%s cannot do %s", async (name, thinking, choices) => {
    await expect(open(name, thinking)).rejects.toMatchObject({
      code: "renderer/thinking",
      message: expect.stringContaining(`Its choices: ${choices}.`),
    });
  });

  test("each way changes the prompt as the template says", async () => {
    const prompt = async (name: string, thinking: Thinking) => {
      const renderer = await open(name, thinking);
      return renderer.tokenizer.decode(renderer.buildGenerationPrompt([{ role: "user", content: "Q" }]));
    };
    expect(await prompt("qwen3.5", "off")).toMatch(/<think>\n\n<\/think>\n\n$/);
    expect(await prompt("qwen3.8", "low")).toContain("Reasoning effort is set to low");
    expect(await prompt("gpt-oss", "high")).toContain("Reasoning: high");
    expect(await prompt("deepseek-v3.1", "on")).toMatch(/<think>$/);
    expect(await prompt("nemotron-3-super", "low")).toContain("{reasoning effort: low}");
    expect(await prompt("nemotron-3-ultra", "medium")).toContain("{reasoning effort: efficient}");
    expect(await prompt("gemma-4", "on")).toMatch(/<\|turn>model\n$/);
    expect(await prompt("gpt-oss", "")).toBe(await prompt("gpt-oss", "medium"));
  });

  test("the formats made by hand take it too", async () => {
    const tokenizer = await templateTokenizer("qwen3");
    expect(getRenderer("qwen3", tokenizer, { thinking: "off" }).name).toBe("qwen3_disable_thinking");
    expect(getRenderer("qwen3_disable_thinking", tokenizer, { thinking: "on" }).name).toBe("qwen3");
    expect(chooseRenderer("Qwen/Qwen3-8B", tokenizer, { thinking: "off" }).renderer.name).toBe(
      "qwen3_disable_thinking",
    );
    expect(() => getRenderer("qwen3_instruct", tokenizer, { thinking: "on" })).toThrow(/Its choices: off/);
    expect(() => getRenderer("qwen3_5_disable_thinking", tokenizer, { thinking: "on" })).toThrow(/contradicts/);
  });
});

describe.skipIf(!templatesAreThere)("the cookbook's names", () => {
  const templates: [prefix: string, template: string][] = [
    ["qwen3_5", "qwen3.5"],
    ["qwen3_6", "qwen3.6"],
    ["qwen3_8", "qwen3.8"],
    ["gpt_oss", "gpt-oss"],
    ["deepseekv3", "deepseek-v3.1"],
    ["kimi_k2", "kimi-k2.5-k2.6"],
    ["nemotron3_ultra", "nemotron-3-ultra"],
    ["nemotron3", "nemotron-3-super"],
  ];

  test.each(Object.keys(aliases))("%s", async (name) => {
    const [, template] = templates.find(([prefix]) => name.startsWith(prefix))!;
    const tokenizer = await templateTokenizer(template);
    const { renderer, notices } = chooseRenderer("some/model", tokenizer, { name });
    // Under the name that was given, so that a recorded run means the same again.
    expect(renderer.name).toBe(name);
    expect(notices).toEqual([describeAlias(name, aliases[name]!)]);
    const prompt = tokenizer.decode(renderer.buildGenerationPrompt([{ role: "user", content: "Q" }]));
    if (name.includes("disable_thinking") || name === "deepseekv3") expect(prompt.trimEnd()).toMatch(/<\/think>$/);
    const level = /gpt_oss_(low|medium|high)/.exec(name)?.[1];
    if (level) expect(prompt).toContain(`Reasoning: ${level}`);
    if (name === "qwen3_8_low_reasoning") expect(prompt).toContain("set to low");
  });

  test("say what they stand for", () => {
    expect(describeAlias("gpt_oss_low_reasoning", aliases["gpt_oss_low_reasoning"]!)).toBe(
      "renderer_name=gpt_oss_low_reasoning stands for template with reasoning_effort=low",
    );
    expect(describeAlias("kimi_k26_disable_thinking", aliases["kimi_k26_disable_thinking"]!)).toMatch(
      /template with thinking=off \(the cookbook adds a system message/,
    );
  });

  test("those that cannot be had say why", async () => {
    const tokenizer = await loadTokenizer(tinyTokenizerFolder());
    for (const [name, reason] of Object.entries(refusedNames))
      expect(() => getRenderer(name, tokenizer)).toThrow(reason);
  });
});

describe("models without a template", () => {
  test("get plain text, and a notice; asked for the template, they are refused", async () => {
    const tokenizer = await loadTokenizer(tinyTokenizerFolder());
    const { renderer, notices } = chooseRenderer("meta-llama/Llama-3.1-8B", tokenizer);
    expect(renderer.name).toBe("role_colon");
    expect(notices[0]).toContain("no chat template");
    expect(() => getRenderer("template", tokenizer)).toThrow(
      expect.objectContaining({ code: "renderer/no-chat-template" }),
    );
  });

  test("a template that is broken, and one after which nothing ends a turn, are refused with the reason", async () => {
    const load = (chatTemplate: string) => loadTokenizer(tinyTokenizerFolder({ chatTemplate }));
    const broken = await load("{% for m in messages %}");
    expect(() => getRenderer("template", broken)).toThrow(
      expect.objectContaining({ code: "renderer/bad-chat-template" }),
    );
    const endless = await load("{% for m in messages %}{{ m.content }}{% endfor %}");
    expect(() => getRenderer("template", endless)).toThrow(expect.objectContaining({ code: "renderer/no-stop" }));
    const picky = await load("{{ raise_exception('never') }}");
    expect(() => getRenderer("template", picky)).toThrow(/refuses this conversation: never/);
  });
});
