// Every rule, on a journal with its fault and on healthy ones. Real runs with these faults: scripts/diagnosis-runs.ts.
import { readFileSync } from "node:fs";
import fc from "fast-check";
import { expect, test } from "vitest";
import { diagnosisDocsPath, withTable } from "../../scripts/diagnosis/write.ts";
import * as synthetic from "../../test/support/synthetic-run.ts";
import { type Figures, healthyStep, ids, journal, opened, run, stepDone } from "../../test/support/synthetic-run.ts";
import type { NewEvent } from "../runs/events.ts";
import { Diagnosis, diagnose } from "./diagnosis.ts";
import { binomialTail } from "./rule.ts";
import { rules } from "./rules.ts";

const failed = (code: string, error = "it broke"): NewEvent[] => [
  ...run(3),
  { type: "stopped", outcome: "failed", error, code },
];
const from = (first: number, change: Figures) => (step: number, figures: Figures) =>
  step >= first ? { ...figures, ...change } : figures;
const allWrong = { mean_correct: 0, groups_mixed: 0, groups_all_pass: 0, groups_all_fail: 8 };
const started = (change: Record<string, unknown>): NewEvent => ({
  type: "started",
  session: 0,
  config: { ...synthetic.config, ...change },
  changes: [],
});
const saved = (record: Record<string, unknown>): NewEvent => ({
  type: "saved",
  record: { name: "000003", step: 3, dataset_offset: 24, state_path: "tinker://a/weights/000003", ...record },
  start: 0,
  end: 1,
});
const atStart = new Date(synthetic.startedAt).toISOString();

/** A step of eight groups, one of which takes as many seconds more. */
const uneven = (step: number, slow: number): NewEvent[] => [
  ...Array.from({ length: 8 }, (_, group): NewEvent => {
    const end = 1000 * (group === 5 ? 60 + slow : 60);
    const sampled = { policy: step, problem: "p", source: "s", datasetIndex: 0, seed: 1, temperature: 1 };
    const tokens = { promptTokens: 1, cachedTokens: 0, samples: [] };
    return { type: "group-sampled", phase: "train", batch: step, group, ...sampled, ...tokens, start: 0, end };
  }),
  stepDone(step, {
    ...healthyStep(step),
    "pipeline/tail_frac": slow / (slow + 100),
    "time/weights": 0,
    "time/train": 40,
  }),
];

/** Per rule: a journal with its fault, the level, and the step after which it first shows. */
const cases: Record<string, [level: string, since: number, events: NewEvent[]]> = {
  "api-key-missing": ["error", 2, failed("cli/key-refused")],
  "sandbox-unreachable": ["error", 2, failed("sandbox/fusion-unreachable")],
  "sandbox-errors": ["error", 2, failed("rl/ungraded")],
  "reward-missing": ["error", 2, failed("rl/no-reward")],
  "renderer-unknown": ["error", 2, failed("renderer/unknown")],
  "out-of-memory": ["error", 2, failed("client/server-error", "CUDA out of memory")],
  "checkpoints-missing": ["error", 2, failed("rl/checkpoints-gone")],
  "numbers-not-finite": ["error", 2, failed("engine/non-finite-loss")],
  "server-unreachable": ["error", 2, failed("client/connection")],
  "disk-full": ["error", 2, failed("runs/write-failed")],
  "settings-refused": ["error", 2, failed("config/resume-mismatch")],
  failed: ["error", 2, failed("rl/sample-count")],
  collapse: ["error", 5, run(8, from(4, { ...allWrong, mean_correct: 0.02, groups_mixed: 1, groups_all_fail: 7 }))],
  "loss-exploding": ["error", 6, run(8, from(6, { loss: -40 }))],
  "entropy-runaway": ["error", 7, run(9, from(6, { "optim/entropy": 1.5, mean_correct: 0.2 }))],
  "entropy-collapse": ["warning", 7, run(9, from(6, { "optim/entropy": 0.001, mean_correct: 0.4 }))],
  "lag-too-large": [
    "warning",
    6,
    run(8, (step, figures) => ({
      ...figures,
      "pipeline/lag": Math.min(8, step),
      "optim/kl_sample_train_v2": 0.01 * step,
    })),
  ],
  "sampler-trainer-disagree": ["warning", 1, run(3, from(0, { "optim/kl_sample_train_v2": 0.05 }))],
  "format-dropping": ["warning", 7, run(9, from(5, { format_rate: 0.55 }))],
  "reward-flat-zero": ["error", 3, run(9, from(0, allWrong))],
  "reward-flat-one": [
    "warning",
    4,
    run(6, from(0, { mean_correct: 1, groups_mixed: 0, groups_all_pass: 8, groups_all_fail: 0 })),
  ],
  "groups-equal": ["error", 4, run(12, from(0, { groups_mixed: 0, groups_all_pass: 3, groups_all_fail: 5 }))],
  "reward-without-pass1": [
    "warning",
    19,
    [
      ...run(20),
      synthetic.evaluated(0, synthetic.evaluation(0.3)),
      synthetic.evaluated(20, synthetic.evaluation(0.31)),
    ],
  ],
  "pass1-falling": [
    "warning",
    3,
    [...run(4), synthetic.evaluated(0, synthetic.evaluation(0.6)), synthetic.evaluated(4, synthetic.evaluation(0.4))],
  ],
  "correct-falling": ["warning", 27, run(30, from(20, { mean_correct: 0.3 }))],
  "format-low": ["error", 2, run(4, from(0, { format_rate: 0.03 }))],
  "truncated-answers": ["warning", 3, run(6, from(2, { "sample/truncated_rate": 0.5 }))],
  "timeouts-dominate": [
    "warning",
    2,
    run(4, from(0, { "grade/status/time_limit": 100, "grade/status/pass": 10, "grade/status/wrong_answer": 18 })),
  ],
  "ungraded-share": ["warning", 4, run(6, from(3, { "grade/ungraded_rate": 0.05 }))],
  "flags-rising": ["warning", 5, run(7, from(4, { "grade/flags/reads-no-input": 30 }))],
  "weak-tests": ["error", 0, run(4, from(0, { "grade/flags/weak-tests": 64 }))],
  "slow-grading": ["warning", 4, run(6, from(0, { "time/total": 20, "time/grade_tail": 15 }))],
  "agent-silent": ["error", 3, run(6, from(1, { "env/endpoint/answers": 0 }))],
  "agent-system-changes": [
    "warning",
    2,
    run(4, from(0, { "env/endpoint/answers": 4, "env/endpoint/system_changed": 3 })),
  ],
  "agent-rewrites": ["warning", 2, run(4, from(0, { "env/endpoint/answers": 4, "env/endpoint/changed": 2 }))],
  "agent-gives-up": ["warning", 2, run(4, from(0, { "env/endpoint/tokens": 900, "env/endpoint/lost_tokens": 300 }))],
  "episodes-at-limit": [
    "warning",
    4,
    run(6, from(2, { "episode/turns_mean": 9.5, "episode/stop/max_turns": 0.7, "episode/stop/done": 0.3 })),
  ],
  "tools-failing": ["warning", 2, run(4, from(0, { "episode/tool_calls_mean": 3, "episode/tool_error_rate": 0.6 }))],
  "rewriting-dear": ["note", 3, run(5, from(1, { "episode/sequences_mean": 3, "episode/rewrites_mean": 2 }))],
  "environment-diverges": [
    "note",
    1,
    run(3, (step, figures) => (step === 1 ? { ...figures, "episode/diverged": 3 } : figures)),
  ],
  "environment-slow": ["note", 4, run(6, from(0, { "episode/own_time_p95": 9, "time/sample": 10, "time/total": 12 }))],
  "data-repeated": ["warning", 0, [opened[0]!, started({ train_problems: 4 }), stepDone(0, healthyStep(0))]],
  "train-test-overlap": ["error", 0, [opened[0]!, started({ train_test_overlap: 60 }), stepDone(0, healthyStep(0))]],
  "long-tail": ["note", 9, [...opened, ...Array.from({ length: 12 }, (_, step) => uneven(step, 60)).flat()]],
  "evaluation-long": [
    "note",
    7,
    [
      opened[0]!,
      started({ eval_every: 10, eval_max_tokens: 24_576 }),
      ...run(8, from(0, { "time/total": 30 })).slice(2),
      synthetic.evaluated(0, { ...synthetic.evaluation(0.3), "time/evaluate": 400, "eval/truncated_rate": 0.2 }),
    ],
  ],
  "stage-starves": [
    "note",
    9,
    [opened[0]!, started({ max_lag: 1 }), ...run(12, from(0, { "pipeline/train_idle_frac": 0.9 })).slice(2)],
  ],
  "checkpoint-expiring": ["error", 3, [...opened, saved({ saved_at: atStart, ttl_seconds: 8 }), ...run(8).slice(2)]],
  "disk-filling": ["warning", 3, run(5, from(3, { "journal/disk_free": 300 * 2 ** 20 }))],
};

test("every rule has a case here", () => {
  expect(Object.keys(cases).toSorted()).toEqual(rules.map(({ id }) => id).toSorted());
});

test.each(Object.entries(cases))("%s", (id, [level, since, events]) => {
  const all = journal(events);
  const found = diagnose("runs/x", all, all.at(-1)!.at).find(({ finding }) => finding.id === id);
  expect(found).toMatchObject({ since, finding: { level } });
  const { finding } = found!;
  expect(rules.find((rule) => rule.id === id)!.levels).toContain(finding.level);
  // Evidence, a meaning and a remedy: and no number that was never there.
  expect(finding.message).not.toMatch(/NaN|undefined/);
  expect(
    finding.figures.length + (finding.steps?.length ?? 0) + (finding.message.includes("error") ? 1 : 0),
  ).toBeGreaterThan(0);
  expect(finding.means.length * finding.remedy.length).toBeGreaterThan(0);
});

/** What only programs of a sandbox have: a run with a reward function of its own never shows it. */
const ofSandboxes = ["sandbox-unreachable", "sandbox-errors", "timeouts-dominate", "flags-rising", "weak-tests"];

test.each(Object.entries(cases).filter(([id]) => !ofSandboxes.includes(id)))(
  "%s: who has a reward function is sent to no sandbox, and to no command that lacks their program",
  (id, [, , events]) => {
    const own = events.map((event) =>
      event.type === "started" ? { ...event, config: { ...event.config, sandbox: "own reward" } } : event,
    );
    const all = journal(own);
    for (const { finding } of diagnose("runs/x", all, all.at(-1)!.at).filter(({ finding }) => finding.id === id)) {
      expect([finding.message, finding.means, finding.remedy, finding.id].join(" ")).not.toMatch(
        /sandbox|tests|doctor/,
      );
      expect(finding.command ?? "").not.toMatch(/ (train|resume|doctor|certify)\b/);
    }
  },
);

const noiseOf = (seed: number) => {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
};

/** What a machine that does other things as well makes of a step. */
function busy(noise: () => number): Figures {
  const total = 2 + 20 * noise();
  return {
    "time/total": total,
    "time/grade_tail": 0.45 * total * noise(),
    "pipeline/train_idle_frac": 0.5 + 0.5 * noise(),
    "pipeline/sample_idle_frac": noise(),
  };
}

test("healthy runs, whatever their noise and however busy their machine, have no finding", () => {
  fc.assert(
    fc.property(fc.integer(), fc.integer({ min: 1, max: 60 }), (seed, count) => {
      const noise = noiseOf(seed);
      const events = journal([
        ...opened,
        ...Array.from({ length: count }, (_, step) => stepDone(step, { ...healthyStep(step, noise), ...busy(noise) })),
        { type: "stopped", outcome: "finished" },
      ]);
      expect(diagnose("runs/x", events, events.at(-1)!.at)).toEqual([]);
    }),
    { numRuns: 300 },
  );
});

test("the rules never throw, whatever the figures are or lack", () => {
  const names = [...new Set(Object.values(cases).flatMap(([, , events]) => events.flatMap(metricNames)))];
  const value = fc.oneof(fc.double(), fc.double({ min: 0, max: 1 }), fc.integer({ min: 0, max: 200 }));
  const figures = fc.dictionary(fc.constantFrom(...names), value);
  fc.assert(
    fc.property(fc.array(figures, { maxLength: 25 }), (steps) => {
      const events = journal([...opened, ...steps.map((metrics, step) => stepDone(step, metrics))]);
      for (const { finding } of diagnose("runs/x", events, events.at(-1)!.at)) expect(finding.id).toBeTruthy();
    }),
    { numRuns: 200 },
  );
});

const metricNames = (event: NewEvent) => (event.type === "step-done" ? Object.keys(event.metrics) : []);

test("a finding is said once, again when it is worse, and anew after a rewind", () => {
  const diagnosis = new Diagnosis("runs/x");
  const said: string[] = [];
  const take = (events: readonly NewEvent[]) => {
    for (const event of journal(events))
      for (const { step, finding } of diagnosis.take(event)) said.push(`${step} ${finding.level} ${finding.id}`);
  };
  const cut = run(10, from(2, { "sample/truncated_rate": 0.5 })).slice(2);
  take(opened);
  take(cut);
  expect(said).toEqual(["3 warning truncated-answers"]);
  take([{ type: "rewound", to: 2, reason: "test" }]);
  take(run(12, from(4, { "sample/truncated_rate": 1 })).slice(4));
  expect(said).toEqual(["3 warning truncated-answers", "4 warning truncated-answers", "6 error truncated-answers"]);
});

test("what was found in steps that were run anew, and how an earlier process ended, no longer counts", () => {
  const events = journal([
    ...cases["collapse"]![2],
    { type: "rewound", to: 2, reason: "test" },
    ...run(8).slice(4),
    { type: "stopped", outcome: "failed", error: "gone", code: "client/connection" },
    { type: "opened", pid: 2 },
  ]);
  const found = diagnose("runs/x", events, events.at(-1)!.at);
  expect(found.map(({ rewound, finding }) => [finding.id, rewound])).toContainEqual(["collapse", true]);
  expect(found.filter(({ rewound }) => !rewound)).toEqual([]);
});

test("one hard batch among good ones is no collapse", () => {
  const hard = run(20, (step, figures) => (step === 9 ? { ...figures, ...allWrong } : figures));
  expect(ids(diagnose("runs/x", journal(hard), 0))).not.toContain("collapse");
});

test("the binomial tail sums to one, and is that of a small case by hand", () => {
  expect(binomialTail(1, 2, 0.5)).toBeCloseTo(0.75);
  for (const [hits, trials] of [
    [1e300, 8],
    [Number.NaN, 8],
    [3, 1e300],
    [3, Number.NaN],
  ] as const)
    expect(binomialTail(hits, trials, 0.5)).toBe(1);
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 100 }), fc.double({ min: 0.01, max: 0.99, noNaN: true }), (trials, rate) => {
      expect(binomialTail(trials, trials, rate)).toBe(1);
      expect(binomialTail(trials - 1, trials, rate)).toBeCloseTo(1 - rate ** trials, 6);
    }),
  );
});

test("docs/diagnosis.md has the table that the rules give", () => {
  const page = readFileSync(diagnosisDocsPath, "utf8");
  expect(page).toBe(withTable(page));
});

test("a long tail is told with what carrying over would give, unless that is done already or would not help", () => {
  const found = (change: Record<string, unknown>, slow = 60) => {
    const steps = Array.from({ length: 12 }, (_, step) => uneven(step, slow)).flat();
    const all = journal([opened[0]!, started(change), ...steps]);
    return diagnose("runs/x", all, 0).find(({ finding }) => finding.id === "long-tail")?.finding;
  };
  // Waiting: 160 s a step. Carrying over: 100 s, and what is left then is done 20 s later, while the next is sampled.
  expect(found({})!.message).toContain("38% of the time");
  expect(found({})!.message).toContain("1.60 times as many");
  expect(found({})!.command).toContain("tail=carry");
  expect(found({ max_lag: 1 })!.message).toContain("times as many, in rounds (carry_rounds=true)");
  expect(found({ max_lag: 1 })!.command).not.toContain("carry_rounds");
  // One by one every step waits most of 600 s; of three that begin together none does.
  expect(found({ max_lag: 2 }, 600)!.command).toContain("tail=carry carry_rounds=true");
  for (const change of [{ tail: "carry" }, { fill_batch: true }, { engine: "embedded" }, { frozen_samplers: false }])
    expect(found(change)).toBeUndefined();
  expect(found({}, 10)).toBeUndefined();
});
