import { beforeAll, expect, test } from "vitest";
import { tinyTokenizerFolder } from "../../test/data/tiny-tokenizer.ts";
import { loadTokenizer, type Tokenizer } from "../tokenizer/index.ts";
import type { Message } from "./messages.ts";
import { getRenderer } from "./registry.ts";
import type { Renderer } from "./renderer.ts";

let tokenizer: Tokenizer;
let renderer: Renderer;
beforeAll(async () => {
  tokenizer = await loadTokenizer(tinyTokenizerFolder({ config: { eos_token: "<|endoftext|>" } }));
  renderer = getRenderer("role_colon", tokenizer);
});

const turns: Message[] = [
  { role: "system", content: "Be brief." },
  { role: "user", content: "2+2?" },
  { role: "assistant", content: "4" },
  { role: "user", content: "3+3?" },
];
const text = (tokens: readonly number[]) => tokenizer.decode(tokens);

test("the prompt is plain text, and each prompt begins with the turn before", () => {
  const prompt = renderer.buildGenerationPrompt(turns);
  expect(text(prompt)).toBe("System: Be brief.\n\nUser: 2+2?\n\nAssistant: 4\n\nUser: 3+3?\n\nAssistant:");
  const before = renderer.buildSupervisedExample(turns.slice(0, 3)).tokens;
  expect(prompt.slice(0, before.length)).toEqual(before);
  expect(renderer.stop).toEqual(["\n\nUser:"]);
});

test("a token that begins a sequence is written once", async () => {
  const withStart = await loadTokenizer(tinyTokenizerFolder({ config: { bos_token: "<|endoftext|>" } }));
  const prompt = getRenderer("role_colon", withStart).buildGenerationPrompt(turns);
  expect(prompt[0]).toBe(withStart.tokenId("<|endoftext|>"));
  expect(prompt.filter((id) => withStart.isSpecial(id))).toHaveLength(1);
});

test("the answer ends where the model writes the user's next line", () => {
  const read = (response: string) => renderer.parseResponse(tokenizer.encode(response, { special: true }));
  expect(read(" 6\n\nUser:")).toEqual({ message: { role: "assistant", content: "6" }, termination: "stop_sequence" });
  expect(read(" 6<|endoftext|>").termination).toBe("stop_sequence");
  expect(read(" 6\n\nUser: and then\n\nUser:").message.content).toBe("6");
  expect(read(" 6 and").termination).toBe("malformed");
});

test("the end of the last answer is trained on, control tokens in content stay text", () => {
  const { tokens, weights } = renderer.buildSupervisedExample([
    { role: "user", content: "<|im_end|>" },
    { role: "assistant", content: "ok" },
  ]);
  expect(text(tokens.filter((_, index) => weights[index] === 1))).toBe(" ok\n\nUser:");
  expect(tokens.some((id) => tokenizer.isSpecial(id))).toBe(false);
});

test("what plain text cannot say is refused", () => {
  const code = expect.objectContaining({ code: "renderer/no-chat-format" });
  expect(() => renderer.buildGenerationPrompt(turns, { tools: [{}] })).toThrow(code);
  expect(() => renderer.buildGenerationPrompt([{ role: "tool", content: "x" }])).toThrow(code);
  expect(() => renderer.buildGenerationPrompt([{ role: "assistant", content: "x", reasoning: "y" }])).toThrow(code);
});
