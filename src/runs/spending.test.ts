import fc from "fast-check";
import { expect, test } from "vitest";
import { Random } from "../core/random.ts";
import type { RunEvent } from "./events.ts";
import { describeSpending, mixedChance, shapesOf } from "./shape.ts";
import { fitCosts, spendingOf } from "./spending.ts";

/** What each thing takes in the made run, in seconds. */
const real = { promptToken: 0.002, answerToken: 0.0005, train: 0.4, grade: 0.1 };
const samples = 16;
const prompts = 8;

/** A run of which every cost is known: 20 steps, an evaluation of 100 problems beside step 10 and one after the end. */
function madeRun(solveRates: (group: number) => number, tariff: unknown = null): { event: RunEvent }[] {
  const random = new Random("made run");
  const events: RunEvent[] = [
    { type: "started", at: 0, session: 0, config: { tariff }, changes: [] } as unknown as RunEvent,
  ];
  let now = 1_000_000;
  const sampled = (phase: "train" | "eval", batch: number, group: number, count: number): number => {
    const promptTokens = 100 + random.integer(60);
    const tokens = Array.from({ length: count }, () => 30 + random.integer(40));
    const seconds = real.promptToken * promptTokens + real.answerToken * tokens.reduce((sum, value) => sum + value, 0);
    now += 1000 * seconds;
    events.push({
      type: "group-sampled",
      at: now,
      phase,
      batch,
      group,
      policy: batch,
      problem: `p${group}`,
      source: "s",
      datasetIndex: group,
      seed: 0,
      temperature: 1,
      promptTokens,
      cachedTokens: 0,
      samples: tokens.map((count) => ({ tokens: count, truncated: false, text: "" })),
      start: now - 1000 * seconds,
      end: now,
    });
    return promptTokens * count + tokens.reduce((sum, value) => sum + value, 0);
  };
  const evaluate = (step: number) => {
    const start = now;
    for (let problem = 0; problem < 100; problem++) sampled("eval", step, problem, 1);
    events.push({ type: "evaluated", at: now, step, final: false, outcomes: [], metrics: {}, start, end: now });
  };
  for (let step = 0; step < 20; step++) {
    const start = now;
    const tokens = Array.from({ length: prompts }, (_, group) => sampled("train", step, group, samples));
    if (step === 10) evaluate(step);
    const passed = tokens.map((_, group) =>
      Array.from({ length: samples }, () => random.float()).reduce(
        (sum, value) => sum + (value < solveRates(group) ? 1 : 0),
        0,
      ),
    );
    const graded = now;
    now += 1000 * real.grade;
    const groups = passed.map((count, group) => ({
      problem: `p${group}`,
      outcome: "mixed" as const,
      skipped: count === 0 || count === samples,
      advantages: Array<number>(samples).fill(0),
      trained: [],
      graded: samples,
      passed: count,
    }));
    const trained = tokens.reduce((sum, value, group) => sum + (groups[group]!.skipped ? 0 : value), 0);
    events.push({ type: "update-submitted", at: now, step, rule: {} as never, examples: 1, tokens: trained, groups });
    const training = now;
    now += 1000 * real.train;
    const spans = [
      { name: "grade_tail", start: graded, end: training },
      { name: "train", start: training, end: now },
      { name: "total", start, end: now },
    ];
    events.push({ type: "step-done", at: now, step, datasetOffset: 0, spans, observed: {}, metrics: {} });
  }
  evaluate(20);
  return events.map((event) => ({ event }));
}

test("time is laid upon what it went to, and evaluations tell prompts and answers apart", () => {
  const spending = spendingOf(madeRun((group) => (group < 4 ? 1 : 0.5)))!;
  expect(spending.unit).toBe("seconds");
  expect(spending.costs.promptToken).toBeCloseTo(real.promptToken, 6);
  expect(spending.costs.answerToken).toBeCloseTo(real.answerToken, 6);
  expect(spending.parts.training).toBeCloseTo(20 * real.train, 6);
  expect(spending.parts.grading).toBeCloseTo(20 * real.grade, 6);
  expect(Object.values(spending.parts).reduce((sum, part) => sum + part, 0)).toBeCloseTo(spending.total, 6);
  // Half of the problems are always solved.
  expect(spending.skipped).toBe(80);
  expect(
    spending.taughtNothing / (spending.parts.prompts + spending.parts.answers + spending.parts.grading),
  ).toBeCloseTo(0.5, 1);
  expect(spending.parts.evaluation).toBeGreaterThan(200 * 100 * real.promptToken);
});

test("shares are of the whole, whatever ran beside what", () => {
  const seconds = fc.integer({ min: 1, max: 30_000 });
  fc.assert(
    fc.property(fc.array(fc.tuple(seconds, seconds, seconds, seconds), { minLength: 1, maxLength: 5 }), (steps) => {
      let now = 0;
      const made = madeRun(() => 0.5).filter(({ event }) => event.type !== "evaluated");
      for (const { event } of made) {
        const [before, train, grade, length] = steps[event.type === "step-done" ? event.step % steps.length : 0]!;
        if (event.type === "group-sampled") Object.assign(event, { start: now, end: now });
        if (event.type !== "step-done") continue;
        // A later batch is graded, and the policy published, while this one trains; it was begun before the step.
        event.spans = [
          { name: "train", start: now, end: now + Math.min(train, length) },
          { name: "grade_tail", start: now - before, end: now + Math.min(grade, length) },
          { name: "weights", start: now, end: now + length },
          { name: "total", start: now, end: now + length },
        ];
        now += length;
      }
      const { parts, total } = spendingOf(made)!;
      for (const part of Object.values(parts)) expect(part).toBeGreaterThanOrEqual(0);
      expect(Object.values(parts).reduce((sum, part) => sum + part, 0)).toBeCloseTo(total, 6);
    }),
  );
});

test("with prices the parts are dollars: tokens times price", () => {
  const entries = madeRun(() => 0.5, { prefill: 1, cachedPrefill: 0.2, sample: 10, train: 3, basis: "made" });
  const spending = spendingOf(entries)!;
  const sum = (phase: string, pick: (event: Extract<RunEvent, { type: "group-sampled" }>) => number) =>
    entries.reduce(
      (all, { event }) => all + (event.type === "group-sampled" && event.phase === phase ? pick(event) : 0),
      0,
    );
  expect(spending.unit).toBe("dollars");
  expect(spending.parts.prompts).toBeCloseTo(sum("train", ({ promptTokens }) => promptTokens!) / 1e6, 9);
  const tokens = (event: Extract<RunEvent, { type: "group-sampled" }>) =>
    event.samples.reduce((all, one) => all + one.tokens, 0);
  expect(spending.parts.answers).toBeCloseTo((10 * sum("train", tokens)) / 1e6, 9);
  expect(spending.parts.evaluation).toBeCloseTo(
    (sum("eval", ({ promptTokens }) => promptTokens!) + 10 * sum("eval", tokens)) / 1e6,
    9,
  );
  expect(spending.parts.other).toBeCloseTo(0, 9);
});

test("where answers are what costs, more problems with fewer answers are advised; where prompts do, they are not", () => {
  const advice = (costs: { promptToken: number; answerToken: number }) => {
    const spending = spendingOf(madeRun(() => 0.4))!;
    return shapesOf({ ...spending, costs: { ...spending.costs, ...costs, trainedToken: 0, answer: 0 } }).others[0]!;
  };
  expect(advice({ promptToken: 0, answerToken: 1 })).toMatchObject({ prompts: 32, samples: 4 });
  expect(advice({ promptToken: 0, answerToken: 1 }).worth).toBeGreaterThan(1.5);
  expect(advice({ promptToken: 1, answerToken: 0 }).worth).toBeLessThan(1.15);
  expect(describeSpending(spendingOf(madeRun(() => 0.5))!)).toHaveLength(4);
});

test("the chance of a mixed group is right on average, whatever was seen", () => {
  fc.assert(
    fc.property(fc.double({ min: 0.02, max: 0.98, noNaN: true }), fc.integer({ min: 2, max: 8 }), (p, size) => {
      // Over all outcomes of 8 answers, each with its probability.
      let [expected, binomial] = [0, (1 - p) ** 8];
      for (let passed = 0; passed <= 8; passed++) {
        expected += binomial * mixedChance({ graded: 8, passed }, size);
        binomial *= ((8 - passed) / (passed + 1)) * (p / (1 - p));
      }
      expect(expected).toBeCloseTo(1 - p ** size - (1 - p) ** size, 6);
    }),
  );
  // More than was seen: never certain.
  expect(mixedChance({ graded: 4, passed: 4 }, 16)).toBeGreaterThan(0.3);
});

test("costs that cannot be told apart are one, and none is negative", () => {
  expect(fitCosts([{ x: 1, y: 2, value: 6 }])).toEqual({ a: 2, b: 2 });
  const { a, b } = fitCosts([
    { x: 10, y: 1, value: 1 },
    { x: 1, y: 10, value: 100 },
  ]);
  expect(a).toBe(0);
  expect(b).toBeCloseTo(1001 / 101, 6);
});

test("a journal without a step has nothing to say", () => {
  expect(spendingOf([])).toBeUndefined();
});
