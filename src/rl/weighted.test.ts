import { describe, expect, test } from "vitest";
import type { Grade } from "../runs/events.ts";
import { gradeOf, readVerdict } from "./environment/verdict.ts";
import { weighRewards } from "./weighted.ts";

const rules = { reward: "fraction", max_tokens: 100, reward_weights: {} } as const;
const graded: Grade = {
  verdict: "fail",
  status: "wrong_answer",
  reward: 0.5 - 0.1,
  formatOk: false,
  passed: 2,
  total: 4,
  ran: 4,
  wallMs: 1,
  queueMs: 0,
  cached: false,
  flags: [],
  codeHash: null,
};

describe("tests", () => {
  test("count as before where nothing is weighed", () => {
    expect(weighRewards(graded, 50, rules, "tests")).toBe(graded);
  });

  test("are weighed with the length, beside the penalty for the format", () => {
    const weighed = weighRewards(graded, 50, { ...rules, reward_weights: { tests: 2, length: 0.2 } }, "tests");
    // 2 · 0.5 − 0.1 − 0.2 · 50 / 100
    expect(weighed.reward).toBeCloseTo(0.8, 12);
    expect(weighed.rewards).toEqual({ tests: 0.5, length: -0.5 });
    expect(weighed.verdict).toBe("fail");
  });

  test("are all or nothing without reward=fraction", () => {
    const weighed = weighRewards(graded, 500, { ...rules, reward: "all", reward_weights: { length: 1 } }, "tests");
    expect(weighed.rewards).toEqual({ tests: 0, length: -1 });
  });

  test("give no reward to what has no verdict", () => {
    const away = { ...graded, verdict: "ungraded", reward: null } as const;
    expect(weighRewards(away, 50, { ...rules, reward_weights: { tests: 2 } }, "tests")).toBe(away);
  });
});

describe("a reward function's own names", () => {
  const verdict = readVerdict({ rewards: { right: 1, style: 0.5 } }, "reward", "p0");
  const grade = gradeOf(verdict, 1);

  test("are summed up, and the first says what is right", () => {
    expect(grade).toMatchObject({ reward: 1.5, verdict: "pass", rewards: { right: 1, style: 0.5 } });
    expect(gradeOf(readVerdict({ rewards: { right: 0, style: 2 } }, "reward", "p0"), 1).verdict).toBe("fail");
  });

  test("have the weights of their names", () => {
    const weighed = weighRewards(grade, 20, { ...rules, reward_weights: { style: 0.2, length: 0.5 } }, "environment");
    expect(weighed.reward).toBeCloseTo(1 + 0.2 * 0.5 - 0.5 * 0.2, 12);
    expect(weighed.rewards).toEqual({ right: 1, style: 0.5, length: -0.2 });
  });

  test("that are weighed and not given are an error that says which there are", () => {
    const weigh = () => weighRewards(grade, 20, { ...rules, reward_weights: { speed: 1 } }, "environment");
    expect(weigh).toThrow("reward_weights has speed, and a verdict has no reward of that name; it has right, style");
  });

  test.each([
    [{ rewards: {} }, "no rewards"],
    [{ rewards: { right: "1" } }, "rewards.right=1"],
    [{ reward: 1, rewards: { right: 1 } }, "reward and rewards"],
  ])("are refused as %j", (given, message) => {
    expect(() => readVerdict(given, "reward", "p0")).toThrow(message);
  });
});
