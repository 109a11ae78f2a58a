import { describe, expect, test } from "vitest";
import { type Grade, lossScales, type UpdateRule } from "../runs/events.ts";
import { type BatchRule, buildBatch } from "./batch.ts";
import { joinTurns, ownValues } from "./datums.ts";
import type { Completion, Group } from "./rollout.ts";
import { batchMetrics } from "./step-metrics.ts";

type Verdict = "pass" | "fail" | "malformed" | "ungraded";

function completion(verdict: Verdict, extra: Partial<Completion> = {}): Completion {
  const reward = { pass: 1, fail: 0, malformed: -0.1, ungraded: null }[verdict];
  const grade: Grade = {
    verdict: verdict === "malformed" ? "fail" : verdict,
    status: { pass: "pass", fail: "wrong_answer", malformed: "format_error", ungraded: "sandbox_error" }[verdict],
    reward,
    formatOk: verdict !== "malformed",
    codeHash: null,
    passed: 0,
    total: 1,
    ran: 1,
    wallMs: 10,
    queueMs: 1,
    cached: false,
    flags: [],
  };
  return {
    sequences: [joinTurns([{ context: [1, 2, 3], tokens: [7, 8], logprobs: [-1, -2] }])],
    tokens: Int32Array.of(7, 8),
    logprobs: Float32Array.of(-1, -2),
    truncated: false,
    grade,
    ...extra,
  };
}

function group(verdicts: readonly Verdict[]): Group {
  return {
    batch: 0,
    group: 0,
    problem: "p",
    source: "s",
    datasetIndex: 0,
    prompt: Int32Array.of(1, 2, 3),
    policy: 0,
    sampled: { start: 0, end: 1 },
    judged: { start: 1, end: 2 },
    completions: verdicts.map((verdict) => completion(verdict)),
  };
}

const many = (verdict: Verdict, count: number) => Array<Verdict>(count).fill(verdict);
const settings: BatchRule = {
  advantage: "mean",
  lossScale: "none",
  maxTokens: 20,
  maskTruncated: false,
  lossFn: "importance_sampling",
  references: [],
  rewarded: true,
};

test("a step of 128 completions adds up", () => {
  // 83 of 128 correct, one malformed, five of eight groups without contrast.
  const groups = [
    group(many("pass", 16)),
    group(many("pass", 16)),
    group(many("pass", 16)),
    group(many("pass", 16)),
    group(many("fail", 16)),
    group([...many("pass", 8), ...many("fail", 8)]),
    group([...many("pass", 8), ...many("fail", 7), "malformed"]),
    group([...many("pass", 3), ...many("fail", 13)]),
  ];
  const batch = buildBatch(groups, settings);
  expect(batchMetrics(batch)).toMatchObject({
    format_rate: 0.9921875,
    mean_correct: 83 / 128,
    mean_reward: (83 - 0.1) / 128,
    groups_skipped: 5,
    groups_total: 8,
    n_datums: 48,
    groups_all_pass: 4,
    groups_all_fail: 1,
    groups_mixed: 3,
    "grade/status/pass": 83,
    "grade/ungraded_rate": 0,
  });
});

test("a step in which every group is degenerate has no datum", () => {
  const batch = buildBatch([group(many("fail", 4)), group(many("pass", 4))], settings);
  expect(batch.examples).toEqual([]);
  expect(batchMetrics(batch)).toMatchObject({ groups_skipped: 2, n_datums: 0 });
});

describe("ungraded completions", () => {
  test("are in neither baseline nor loss", () => {
    const batch = buildBatch([group([...many("pass", 2), ...many("fail", 2), "ungraded"])], settings);
    expect(batch.groups[0]!.advantages).toEqual([0.5, 0.5, -0.5, -0.5, null]);
    expect(batch.examples).toHaveLength(4);
    expect(batchMetrics(batch)).toMatchObject({ mean_correct: 0.5, "grade/ungraded_rate": 0.2 });
  });

  test("drop their group when too many are missing", () => {
    const batch = buildBatch([group(["pass", "fail", "ungraded", "ungraded"])], settings);
    expect(batch.groups[0]).toMatchObject({ outcome: "ungraded", skipped: true });
    expect(batch.examples).toEqual([]);
    expect(batchMetrics(batch)).toMatchObject({ groups_ungraded: 1 });
  });
});

test("truncated completions stay in the baseline and can be left out of the loss", () => {
  const mixed = group(["pass", "fail"]);
  mixed.completions[1]!.truncated = true;
  const batch = buildBatch([mixed], { ...settings, maskTruncated: true });
  expect(batch.groups[0]!.advantages).toEqual([0.5, -0.5]);
  expect(batch.examples).toHaveLength(1);
});

test("each scale is the mean that it stands for", () => {
  const lengths = [2, 5, 1, 7];
  const answers = group(["pass", "fail", "fail", "fail"]);
  answers.completions = answers.completions.map((_, sample) => {
    const tokens = new Int32Array(lengths[sample]!).fill(7);
    const logprobs = new Float32Array(tokens.length).fill(-1);
    const verdict = sample === 0 ? "pass" : "fail";
    return completion(verdict, {
      tokens,
      logprobs,
      sequences: [joinTurns([{ context: [1, 2, 3], tokens, logprobs }])],
    });
  });
  const centered = [0.75, -0.25, -0.25, -0.25];
  // A token's loss is minus its advantage: with the ratio at 1, what importance_sampling, ppo and cispo begin with.
  const termsOf = (lossScale: UpdateRule["lossScale"]) =>
    buildBatch([answers], { ...settings, lossScale }).examples.map((example) => [...ownValues(example, "advantages")]);
  const average = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
  const sums = centered.map((advantage, sample) => advantage * lengths[sample]!);
  const expected = {
    none: sums.reduce((sum, value) => sum + value, 0),
    per_datum: average(sums),
    per_token: average(centered.flatMap((advantage, sample) => Array<number>(lengths[sample]!).fill(advantage))),
    per_answer_token: average(centered),
    constant: average(sums.map((sum) => sum / settings.maxTokens)),
  };
  for (const scale of lossScales) {
    const terms = termsOf(scale);
    expect(terms.map((answer) => answer.length)).toEqual(lengths);
    expect(terms.flat().reduce((sum, value) => sum + value, 0)).toBeCloseTo(expected[scale], 6);
  }
});

test("an answer of several sequences counts once, in the baseline and in the scale, and each of them is trained on", () => {
  const turn = { context: [1, 2, 3], tokens: [7, 8], logprobs: [-1, -2] };
  const split = [
    joinTurns([turn, { context: [4], tokens: [9], logprobs: [-3] }]),
    joinTurns([{ ...turn, context: [5] }]),
  ];
  const mixed = group(["pass", "fail"]);
  mixed.completions[0] = { ...mixed.completions[0]!, sequences: split, tokens: Int32Array.of(7, 8, 9, 7, 8) };
  const { groups, examples } = buildBatch([mixed], { ...settings, lossScale: "per_datum" });
  expect(groups[0]!.advantages).toEqual([0.5, -0.5]);
  expect(examples.map(({ sample, part }) => [sample, part])).toEqual([
    [0, 0],
    [0, 1],
    [1, 0],
  ]);
  expect(examples.map(({ datum }) => [...datum.lossFnInputs["advantages"]!.data])).toEqual([
    [0, 0, 0.25, 0.25, 0, 0.25],
    [0.25, 0.25],
    [0, 0, -0.25, -0.25],
  ]);
});
