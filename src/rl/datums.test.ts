import fc from "fast-check";
import { expect, test } from "vitest";
import { textTokens } from "../protocol/index.ts";
import { advantageArray, joinSequence, makeDatum } from "./datums.ts";

test("a datum is shifted by one and has logprobs and advantages on the completion only", () => {
  const { datum, firstAction } = makeDatum(
    joinSequence([10, 11, 12], [20, 21], [-0.5, -1]),
    3,
    advantageArray(3, 5, 0.25),
  );
  expect([...textTokens(datum.modelInput)!]).toEqual([10, 11, 12, 20]);
  expect([...datum.lossFnInputs["target_tokens"]!.data]).toEqual([11, 12, 20, 21]);
  expect([...datum.lossFnInputs["logprobs"]!.data]).toEqual([0, 0, -0.5, -1]);
  expect([...datum.lossFnInputs["advantages"]!.data]).toEqual([0, 0, 0.25, 0.25]);
  expect(datum.lossFnInputs["target_tokens"]!.dtype).toBe("int64");
  expect(datum.lossFnInputs["logprobs"]!.dtype).toBe("float32");
  expect(firstAction).toBe(2);
});

test("every tensor is as long as the input, whatever the lengths", () => {
  const sizes = fc.integer({ min: 1, max: 40 });
  fc.assert(
    fc.property(sizes, sizes, fc.double({ min: -1, max: 1, noNaN: true }), (prompt, completion, advantage) => {
      const tokens = Array.from({ length: prompt + completion }, (_, index) => index);
      const logprobs = Array<number>(completion).fill(-1);
      const sequence = joinSequence(tokens.slice(0, prompt), tokens.slice(prompt), logprobs);
      const { datum, firstAction } = makeDatum(
        sequence,
        prompt,
        advantageArray(prompt, sequence.tokens.length, advantage),
      );
      const length = tokens.length - 1;
      expect(textTokens(datum.modelInput)).toHaveLength(length);
      for (const value of Object.values(datum.lossFnInputs)) expect(value.data).toHaveLength(length);
      const advantages = [...(datum.lossFnInputs["advantages"]!.data as Float32Array)];
      expect(advantages.slice(0, firstAction).every((value) => value === 0)).toBe(true);
      expect(advantages.slice(firstAction)).toEqual(Array(completion).fill(Math.fround(advantage)));
    }),
  );
});

test("a sample without a prompt, without a completion or with missing logprobs is refused", () => {
  expect(() => makeDatum(joinSequence([], [1, 2], [-1, -1]), 0, advantageArray(0, 2, 1))).toThrow(/0 and 2 tokens/);
  expect(() => makeDatum(joinSequence([1, 2], [], []), 2, advantageArray(2, 2, 1))).toThrow(/2 and 0 tokens/);
  expect(() => joinSequence([1], [2, 3], [-1])).toThrow(/1 logprobs for 2 tokens/);
});
