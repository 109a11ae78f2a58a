import { expect, test } from "vitest";
import { nearestModel } from "./nearest-model.ts";

const offered = [
  "meta-llama/Llama-3.1-8B-Instruct",
  "openai/gpt-oss-120b",
  "openai/gpt-oss-20b",
  "Qwen/Qwen3.5-4B",
  "Qwen/Qwen3-8B",
  "Qwen/Qwen3-32B",
  "Qwen/Qwen3.6-35B-A3B",
  "moonshotai/Kimi-K2.6",
];

test.each([
  ["Qwen/Qwen3-4B-Instruct-2507", "Qwen/Qwen3-8B"],
  ["Qwen/Qwen3-30B-A3B", "Qwen/Qwen3-32B"],
  ["Qwen/Qwen3.5-2B", "Qwen/Qwen3.5-4B"],
  ["openai/gpt-oss-7b", "openai/gpt-oss-20b"],
  ["meta-llama/Llama-3.3-70B-Instruct", "meta-llama/Llama-3.1-8B-Instruct"],
  ["moonshotai/Kimi-K2-Thinking", "moonshotai/Kimi-K2.6"],
  ["Qwen3-8B", "Qwen/Qwen3-8B"],
])("%s → %s", (wanted, nearest) => {
  expect(nearestModel(wanted, offered)).toBe(nearest);
});

test("nothing related is nothing", () => {
  expect(nearestModel("nano-coder", offered)).toBeUndefined();
  expect(nearestModel("Qwen/Qwen3-8B", [])).toBeUndefined();
});
