import fc from "fast-check";
import { expect, test } from "vitest";
import { advantageNames, batchAdvantages } from "./advantages.ts";
import { judgeByReward, type Reward } from "./own-reward.ts";
import type { Task } from "./tasks.ts";

const problem = { id: "p", prompt: "?", answer: 42 };
const task = { id: "p", problem } as unknown as Task;
const answer = { text: "42", tokens: Int32Array.of(1), logprobs: Float32Array.of(0), truncated: false };
const { signal } = new AbortController();
const place = { phase: "train", batch: 0, group: 0 } as const;

const judgeWith = (given: unknown) => judgeByReward((() => given) as () => number)(task, answer, signal, place);

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
  [Promise.resolve(1), { verdict: "pass", reward: 1 }],
])("%j", async (given, expected) => {
  expect(await judgeWith(given)).toMatchObject(expected);
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
])("%j is no reward", async (given) => {
  await expect(judgeWith(given)).rejects.toMatchObject({ code: "rl/bad-reward" });
});

test("whatever rewards are accepted, what is sent of them is finite", async () => {
  const reward = fc.double({ min: -1e30, max: 1e30, noNaN: true });
  const group = fc.array(fc.oneof(reward, fc.constantFrom(1e30, -1e30, 0)), { minLength: 2, maxLength: 9 });
  await fc.assert(
    fc.asyncProperty(
      fc.array(group, { minLength: 1, maxLength: 4 }),
      fc.constantFrom(...advantageNames),
      async (groups, name) => {
        for (const given of groups.flat()) expect(await judgeWith(given)).toMatchObject({ reward: given });
        const advantages = Float32Array.from(batchAdvantages(groups, name).flat());
        expect([...advantages].every(Number.isFinite)).toBe(true);
      },
    ),
  );
});

test("the function gets the problem as it was given, and the answer", async () => {
  const judge = judgeByReward<typeof problem>(
    ({ problem: { answer: wanted }, text }): Reward => ({ reward: Number(text) - wanted }),
  );
  expect(await judge(task, answer, signal, place)).toMatchObject({ reward: 0 });
});

test("what it throws is named with the problem; an aborted run is not its fault", async () => {
  const failing = judgeByReward(() => {
    throw new Error("no such table");
  });
  await expect(failing(task, answer, signal, place)).rejects.toMatchObject({
    code: "rl/reward-failed",
    message: expect.stringMatching(/problem "p": no such table/),
  });
  await expect(failing(task, answer, AbortSignal.abort(new Error("stop")), place)).rejects.toThrow("stop");
});
