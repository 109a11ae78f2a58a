import fc from "fast-check";
import { expect, test } from "vitest";
import { textTokens } from "../protocol/index.ts";
import { advantagesOf, joinTurns, lossDatum, makeExample, ownValues, type Turn } from "./datums.ts";

const exampleOf = (turns: readonly Turn[], advantage: number) => {
  const sequence = joinTurns(turns);
  return makeExample(sequence, advantagesOf(sequence, advantage));
};

test("an example is shifted by one and has logprobs and advantages on the answer only", () => {
  const { datum, mask } = exampleOf([{ context: [10, 11, 12], tokens: [20, 21], logprobs: [-0.5, -1] }], 0.25);
  expect([...textTokens(datum.modelInput)!]).toEqual([10, 11, 12, 20]);
  expect([...datum.lossFnInputs["target_tokens"]!.data]).toEqual([11, 12, 20, 21]);
  expect([...datum.lossFnInputs["logprobs"]!.data]).toEqual([0, 0, -0.5, -1]);
  expect([...datum.lossFnInputs["advantages"]!.data]).toEqual([0, 0, 0.25, 0.25]);
  expect(datum.lossFnInputs["target_tokens"]!.dtype).toBe("int64");
  expect(datum.lossFnInputs["logprobs"]!.dtype).toBe("float32");
  expect(mask).toEqual([{ start: 2, end: 4 }]);
});

test("of several turns the model's own tokens are trained on, and what it was given in between is not", () => {
  const example = exampleOf(
    [
      { context: [1, 2], tokens: [7, 8], logprobs: [-0.5, -1] },
      { context: [3, 4, 5], tokens: [9], logprobs: [-2] },
      { context: [6], tokens: [], logprobs: [] },
    ],
    0.5,
  );
  expect(example.mask).toEqual([
    { start: 1, end: 3 },
    { start: 6, end: 7 },
  ]);
  expect([...example.datum.lossFnInputs["target_tokens"]!.data]).toEqual([2, 7, 8, 3, 4, 5, 9, 6]);
  expect([...example.datum.lossFnInputs["logprobs"]!.data]).toEqual([0, -0.5, -1, 0, 0, 0, -2, 0]);
  expect([...example.datum.lossFnInputs["advantages"]!.data]).toEqual([0, 0.5, 0.5, 0, 0, 0, 0.5, 0]);
  expect([...ownValues(example, "logprobs")]).toEqual([-0.5, -1, -2]);
  const { sequence_ratio_mask: mask } = lossDatum(example, "gspo").lossFnInputs;
  expect([...mask!.data]).toEqual([0, 1, 1, 0, 0, 0, 1, 0]);
});

test("every tensor is as long as the input, and every token of the model has its own figures, whatever the turns", () => {
  const size = fc.integer({ min: 0, max: 20 });
  const turns = fc.array(fc.record({ context: size, own: size }), { minLength: 1, maxLength: 6 });
  fc.assert(
    fc.property(turns, fc.double({ min: -1, max: 1, noNaN: true }), (sizes, advantage) => {
      let token = 0;
      const take = (count: number) => Array.from({ length: count }, () => token++);
      const given = [{ context: 1, own: 1 }, ...sizes].map(({ context, own }) => {
        const [before, tokens] = [take(context), take(own)];
        return { context: before, tokens, logprobs: tokens.map((own) => -own) };
      });
      const example = exampleOf(given, advantage);
      const { length } = textTokens(example.datum.modelInput)!;
      expect(length).toBe(token - 1);
      for (const value of Object.values(example.datum.lossFnInputs)) expect(value.data).toHaveLength(length);
      // The log-probability of token n was set to -n: each must stand where that token is predicted.
      const own = given.flatMap(({ tokens }) => tokens);
      expect([...ownValues(example, "logprobs")]).toEqual(own.map((token) => -token));
      const targets = example.datum.lossFnInputs["target_tokens"]!.data;
      const advantages = [...(example.datum.lossFnInputs["advantages"]!.data as Float32Array)];
      for (const [position, value] of advantages.entries())
        expect(value).toBe(own.includes(Number(targets[position])) ? Math.fround(advantage) : 0);
    }),
  );
});

test("a sample without a prompt, without an answer or with missing logprobs is refused", () => {
  expect(() => exampleOf([{ context: [], tokens: [1, 2], logprobs: [-1, -1] }], 1)).toThrow(/0 and 2 tokens/);
  expect(() => exampleOf([{ context: [1, 2], tokens: [], logprobs: [] }], 1)).toThrow(/2 and 0 tokens/);
  expect(() => joinTurns([{ context: [1], tokens: [2, 3], logprobs: [-1] }])).toThrow(/1 logprobs for 2 tokens/);
});
