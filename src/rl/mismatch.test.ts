// The corrections against their formulas written out, on log-probabilities that no server gives: sampler and trainer far apart.
import fc from "fast-check";
import { expect, test } from "vitest";
import type { TrainingClient } from "../client/index.ts";
import { advantagesOf, joinTurns, makeExample, ownValues } from "./datums.ts";
import { masked, spread } from "./mask.ts";
import { correctMismatch } from "./mismatch.ts";

const turn = fc.record({
  context: fc.array(fc.integer({ min: 0, max: 99 }), { minLength: 1, maxLength: 4 }),
  answer: fc.array(fc.record({ token: fc.integer({ min: 0, max: 99 }), sampler: logprob(), trainer: logprob() }), {
    minLength: 1,
    maxLength: 6,
  }),
});

function logprob() {
  return fc.double({ min: -6, max: 0, noNaN: true });
}

test.each(["token_cap", "sequence_mask"] as const)(
  "%s is the formula, token by token, over any turns",
  async (mismatch) => {
    const answers = fc.array(fc.array(turn, { minLength: 1, maxLength: 3 }), { minLength: 1, maxLength: 4 });
    await fc.assert(
      fc.asyncProperty(answers, fc.double({ min: 1, max: 4, noNaN: true }), async (turnsOf, cap) => {
        const sequences = turnsOf.map((turns) =>
          joinTurns(
            turns.map(({ context, answer }) => ({
              context,
              tokens: answer.map(({ token }) => token),
              logprobs: answer.map(({ sampler }) => sampler),
            })),
          ),
        );
        const examples = sequences.map((sequence) => makeExample(sequence, advantagesOf(sequence, 0.5)));
        const trainers = turnsOf.map((turns) => turns.flatMap(({ answer }) => answer.map(({ trainer }) => trainer)));
        const training = {
          forward: async () => ({
            metrics: {},
            lossFnOutputs: examples.map(({ mask, datum }, index) => {
              const data = spread(0, mask, datum.lossFnInputs["target_tokens"]!.data.length);
              let place = 0;
              for (const { start, end } of mask)
                for (let position = start; position < end; position++) data[position] = trainers[index]![place++]!;
              return { logprobs: { data } };
            }),
          }),
        } as unknown as TrainingClient;
        const rule = { mismatch, mismatchCap: cap, lossFn: "importance_sampling" } as const;
        const corrected = await correctMismatch(training, examples, rule);
        for (const [index, example] of corrected.examples.entries()) {
          const sampler = ownValues(examples[index]!, "logprobs");
          const trainer = Float32Array.from(trainers[index]!);
          const ratio = Math.exp(trainer.reduce((sum, value, place) => sum + value - sampler[place]!, 0));
          const weights = [...trainer].map((value, place) =>
            mismatch === "token_cap" ? Math.min(cap, Math.exp(value - sampler[place]!)) : ratio > cap ? 0 : ratio,
          );
          expect(ownValues(example, "logprobs")).toEqual(trainer);
          for (const [place, value] of ownValues(example, "advantages").entries())
            expect(value).toBeCloseTo(0.5 * weights[place]!, 5);
          // Nothing outside the model's own tokens moved.
          const all = example.datum.lossFnInputs["advantages"]!.data as Float32Array;
          expect(all.reduce((sum, value) => sum + value, 0)).toBeCloseTo(
            masked(all, example.mask).reduce((sum, value) => sum + value, 0),
            5,
          );
        }
      }),
      { numRuns: 60 },
    );
  },
);

test("a server without log-probabilities in a forward pass is named", async () => {
  const training = { forward: async () => ({ metrics: {}, lossFnOutputs: [{}] }) } as unknown as TrainingClient;
  const sequence = joinTurns([{ context: [1], tokens: [2], logprobs: [-1] }]);
  const example = makeExample(sequence, advantagesOf(sequence, 1));
  const rule = { mismatch: "token_cap", mismatchCap: 2, lossFn: "ppo" } as const;
  await expect(correctMismatch(training, [example], rule)).rejects.toThrow(/Set mismatch=none/);
});
