// Verdicts as functions return them: which are read, which are refused, and what of them is finite when it is sent.
import fc from "fast-check";
import { expect, test } from "vitest";
import { advantageNames, batchAdvantages } from "../advantages.ts";
import { gradeOf, readVerdict } from "./verdict.ts";

const judgeWith = (given: unknown) => gradeOf(readVerdict(given, "reward", "p"), 1);

test.each<[unknown, object]>([
  [1, { verdict: "pass", reward: 1, formatOk: true }],
  [0.5, { verdict: "fail", reward: 0.5 }],
  [-3, { verdict: "fail", reward: -3 }],
  [null, { verdict: "ungraded", reward: null }],
  [
    { reward: 0.2, correct: true },
    { verdict: "pass", reward: 0.2 },
  ],
  [
    { reward: 2, correct: false, wellFormed: false },
    { verdict: "fail", reward: 2, formatOk: false },
  ],
])("%j", (given, expected) => {
  expect(judgeWith(given)).toMatchObject(expected);
});

test.each([
  Number.NaN,
  Number.POSITIVE_INFINITY,
  1e31,
  -Number.MAX_VALUE,
  undefined,
  "1",
  {},
  { reward: 1, correct: 1 },
  { reward: 1, wellFormed: "yes" },
  { reward: 1, metrics: { share: Number.NaN } },
])("%j is no reward", (given) => {
  expect(() => judgeWith(given)).toThrow(/^reward gave .* for problem "p"/);
});

test("whatever rewards are accepted, what is sent of them is finite", () => {
  const reward = fc.double({ min: -1e30, max: 1e30, noNaN: true });
  const group = fc.array(fc.oneof(reward, fc.constantFrom(1e30, -1e30, 0)), { minLength: 2, maxLength: 9 });
  fc.assert(
    fc.property(fc.array(group, { minLength: 1, maxLength: 4 }), fc.constantFrom(...advantageNames), (groups, name) => {
      for (const given of groups.flat()) expect(judgeWith(given)).toMatchObject({ reward: given });
      const advantages = Float32Array.from(batchAdvantages(groups, name).flat());
      expect([...advantages].every(Number.isFinite)).toBe(true);
    }),
  );
});
