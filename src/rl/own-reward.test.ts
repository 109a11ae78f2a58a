import { expect, test } from "vitest";
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
  undefined,
  "1",
  {},
  { reward: 1, correct: 1 },
  { reward: 1, wellFormed: "yes" },
])("%j is no reward", async (given) => {
  await expect(judgeWith(given)).rejects.toMatchObject({ code: "rl/bad-reward" });
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
