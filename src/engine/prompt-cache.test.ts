import { expect, test } from "vitest";
import { blockSize } from "./decoder.ts";
import { blocksOf, type PromptBlock, PromptCache } from "./prompt-cache.ts";

/** A block of 16 bytes; `next`: what follows it is known. */
function block(next = false): PromptBlock {
  const arrays = [new Float32Array(2)];
  return { size: blockSize, keys: arrays, values: arrays, nextLogprobs: next ? new Float32Array(2) : undefined };
}

const prompt = (length: number, first = 0): Int32Array =>
  Int32Array.from({ length }, (_, index) => (index === 0 ? first : index));

test("a prompt falls into blocks that begin at fixed places", () => {
  expect(blocksOf(prompt(1)).map((tokens) => tokens.length)).toEqual([1]);
  expect(blocksOf(prompt(2 * blockSize)).map((tokens) => tokens.length)).toEqual([blockSize, blockSize]);
  expect(blocksOf(prompt(2 * blockSize + 3)).map((tokens) => tokens.length)).toEqual([blockSize, blockSize, 3]);
});

test("a prompt finds the blocks it shares with an earlier one, and all of itself", () => {
  const cache = new PromptCache(1e6);
  const blocks = [block(), block(), block(true)];
  const whole = prompt(2 * blockSize + 3);
  cache.keep(whole, blocks);
  expect(cache.find(whole)).toEqual(blocks);
  expect(cache.find(prompt(2 * blockSize + 2))).toEqual(blocks.slice(0, 2));
  expect(cache.find(prompt(3 * blockSize))).toEqual(blocks.slice(0, 2));
  expect(cache.find(prompt(2 * blockSize + 3, 9))).toEqual([]);
});

test("a prompt that ends where a longer one went on has its last block computed again", () => {
  const cache = new PromptCache(1e6);
  cache.keep(prompt(2 * blockSize + 3), [block(), block(), block(true)]);
  expect(cache.find(prompt(2 * blockSize))).toHaveLength(1);
  cache.keep(prompt(2 * blockSize), [block(), block(true)]);
  expect(cache.find(prompt(2 * blockSize))).toHaveLength(2);
  expect(cache.find(prompt(2 * blockSize + 3))).toHaveLength(3);
});

test("beyond its limit it lets go of what was used longest ago, ends before beginnings", () => {
  const cache = new PromptCache(100);
  const [old, recent] = [prompt(blockSize + 1, 1), prompt(blockSize + 1, 2)];
  cache.keep(old, [block(), block(true)]); // 16 + 24 bytes
  cache.keep(recent, [block(), block(true)]);
  expect(cache.find(old)).toHaveLength(2);
  cache.keep(prompt(blockSize + 1, 3), [block(), block(true)]);
  expect(cache.find(old)).toHaveLength(2);
  expect(cache.find(recent).length).toBeLessThan(2);
});
