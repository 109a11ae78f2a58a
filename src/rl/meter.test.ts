import fc from "fast-check";
import { expect, test } from "vitest";
import type { EventOf, NewEvent, RunEvent } from "../runs/events.ts";
import { Admissions } from "./admissions.ts";
import { Budget, upperBound } from "./budget.ts";
import { presetConfig } from "./config.ts";
import { Meter } from "./meter.ts";
import { Pipeline } from "./pipeline.ts";
import type { Tariff } from "./prices.ts";
import type { Group } from "./rollout.ts";
import type { Task } from "./tasks.ts";

const tariff: Tariff = { prefill: 1, cachedPrefill: 0.2, sample: 10, train: 100, basis: "test" };
const at = (event: NewEvent) => ({ at: 0, ...event }) as RunEvent;
const started = (used: Tariff | null) => at({ type: "started", session: 0, config: { tariff: used }, changes: [] });
const place = (batch: number, group = 0, phase: "train" | "eval" = "train") => ({ phase, batch, group });
const requested = (batch: number, group = 0, phase: "train" | "eval" = "train") =>
  at({ type: "group-requested", ...place(batch, group, phase), samples: 2, promptTokens: 100, maxTokens: 50 });
const sampled = (batch: number, tokens: readonly number[], group = 0, phase: "train" | "eval" = "train") =>
  at({
    type: "group-sampled",
    ...place(batch, group, phase),
    policy: 0,
    problem: "p",
    source: "s",
    datasetIndex: 0,
    seed: 0,
    temperature: 1,
    promptTokens: 100,
    cachedTokens: 20,
    samples: tokens.map((count) => ({ tokens: count, truncated: false, text: "" })),
    start: 0,
    end: 0,
  });
const rule = {} as EventOf<"update-submitted">["rule"];
const group = {
  group: 0,
  problem: "p",
  outcome: "mixed" as const,
  skipped: false,
  advantages: [],
  trained: [],
  graded: 0,
  passed: 0,
};
const submitted = (step: number, tokens: number) =>
  at({
    type: "update-submitted",
    step,
    rule,
    examples: 2,
    tokens,
    readTokens: 0,
    nextOffset: 1,
    groups: [{ ...group, batch: step }],
    carried: [],
  });
const done = (step: number) => at({ type: "update-done", step, lossSum: 0, server: {}, start: 0, end: 0 });
const opened = at({ type: "opened", pid: 1 });
const meterOf = (...events: RunEvent[]) => Meter.over(events.map((event) => ({ event })));

test("tokens are counted once, by kind, with those of evaluations", () => {
  const meter = meterOf(
    opened,
    started(tariff),
    requested(0),
    sampled(0, [30, 40]),
    requested(0, 0, "eval"),
    sampled(0, [7], 0, "eval"),
    submitted(0, 250),
    done(0),
    at({ type: "stopped", outcome: "finished" }),
  );
  expect(meter.tokens).toEqual({ prefill: 200, cachedPrefill: 40, sample: 77, train: 250 });
  expect(meter.tokensFor("eval")).toEqual({ prefill: 100, cachedPrefill: 20, sample: 7, train: 0 });
  expect(meter.tokensFor("lost")).toEqual({ prefill: 0, cachedPrefill: 0, sample: 0, train: 0 });
  const micro = 1e-6;
  expect(meter.spent).toMatchObject({
    prefill: expect.closeTo((160 + 40 * 0.2) * micro, 15) as number,
    sample: expect.closeTo(770 * micro, 15) as number,
    train: expect.closeTo(25_000 * micro, 15) as number,
    total: expect.closeTo((168 + 770 + 25_000) * micro, 15) as number,
    eval: expect.closeTo((84 + 70) * micro, 15) as number,
    wasted: 0,
    lost: 0,
  });
  expect(meter.figures()["cost/per_mixed_group"]).toBeCloseTo(meter.spent!.total, 15);
});

test("what is under way is counted by its bound, beside what was spent", () => {
  const meter = meterOf(
    opened,
    started(tariff),
    requested(0),
    requested(1),
    requested(0, 0, "eval"),
    sampled(1, [9, 9]),
  );
  expect(meter.underWay).toEqual({ prefill: 200, cachedPrefill: 0, sample: 200, train: 0 });
  expect(meter.figures()).toMatchObject({
    "tokens/under_way_total": 400,
    "cost/under_way": expect.closeTo((200 + 2000) * 1e-6, 15) as number,
  });
  meter.take(sampled(0, [1, 1]));
  meter.take(sampled(0, [1, 1], 0, "eval"));
  expect(meter.figures()).toMatchObject({ "tokens/under_way_total": 0, "cost/under_way": 0 });
});

test("what a kill cut off is estimated apart, what is done again is paid again", () => {
  const before = [opened, started(tariff), requested(0), sampled(0, [30, 40]), submitted(0, 250), done(0)];
  const killed = [...before, requested(1), requested(2), submitted(1, 90), opened, started(tariff)];
  const meter = meterOf(
    ...killed,
    at({ type: "resumed", version: 0, checkpoint: null, datasetOffset: 0, model: "m" }),
    at({ type: "retrained", step: 0, tokens: 250, start: 0, end: 0 }),
    requested(1),
    sampled(1, [20, 20]),
    done(1),
  );
  // Two requests of two samples of 35 tokens on average, and an update, all unanswered; the update was sent again and applied.
  expect(meterOf(...killed).tokensFor("lost")).toEqual({ prefill: 200, cachedPrefill: 0, sample: 140, train: 90 });
  expect(meter.tokens).toEqual({ prefill: 200, cachedPrefill: 40, sample: 110, train: 250 + 250 + 90 });
  expect(meter.spent!.wasted).toBeCloseTo(0.025, 12);
  expect(meter.figures()["cost/lost"]).toBeGreaterThan(0);
});

test("without a price only tokens are told; a price set later counts for them too", () => {
  const meter = meterOf(opened, started(null), sampled(0, [30, 40]));
  expect(meter.figures()).toEqual({
    "tokens/prefill_total": 100,
    "tokens/prefill_cached_total": 20,
    "tokens/sampled_total": 70,
    "tokens/trained_total": 0,
    "tokens/under_way_total": 0,
  });
  meter.take(started(tariff));
  expect(meter.spent!.total).toBeCloseTo((84 + 700) * 1e-6, 15);
  // From then on dearer: what was spent stays as it was.
  meter.take(started({ ...tariff, sample: 20 }));
  meter.take(sampled(1, [1]));
  expect(meter.spent!.total).toBeCloseTo((84 + 700 + 84 + 20) * 1e-6, 15);
});

const config = {
  ...presetConfig("nano"),
  prompts_per_step: 4,
  completions_per_prompt: 2,
  max_tokens: 50,
  context_window: 150,
};
/** The most that a batch can cost: 4 prompts, 8 completions of 50 tokens, 8 sequences of 150. */
const worst = (4 * 100 * 1 + 8 * 50 * 10 + 8 * 150 * 100) / 1e6;

interface Simulated {
  limit: number;
  lag: number;
  /** Of one answer, in tokens. */
  length: () => number;
  /** Steps between evaluations of five problems; 0: none. */
  evalEvery?: number;
  /** Of its groups that a batch waits for. */
  share?: number;
  rounds?: boolean;
}

/** A run by the rules of the loop, whose answers come in any order; returns what was spent when all had settled, and what did not fit. */
async function simulate({ limit, lag, length, evalEvery = 0, share = 1, rounds = false }: Simulated) {
  const meter = new Meter();
  const budget = new Budget({ limit, tariff, meter, config });
  const none = new AbortController().signal;
  const admissions = new Admissions({
    underWay: () => budget.underWay,
    onRefused: () => pipeline.stop(),
    signals: [],
  });
  const take = (event: RunEvent) => {
    meter.take(event);
    budget.take(event);
    admissions.settled();
  };
  const some = async () => {
    for (let ticks = length() % 7; ticks > 0; ticks--) await Promise.resolve();
  };
  const lengths = new Map<string, number>();
  const pipeline = new Pipeline({
    lag,
    share,
    rounds,
    plan: {
      first: 0,
      end: Number.POSITIVE_INFINITY,
      tasksOf: async () =>
        new Map(Array.from({ length: 4 }, (_, index) => [index, { id: "p", datasetIndex: index } as Task])),
    },
    rollOut: async ({ batch, group: index }) => {
      await some();
      const answers = [length(), length()];
      lengths.set(`${batch} ${index}`, answers[0]! + answers[1]!);
      take(sampled(batch, answers, index));
      return { batch, group: index } as Group;
    },
    admit: (batch, begin) => admissions.ask(() => budget.admit(batch, 4), begin),
    drain: none,
    cancel: none,
  });
  const evaluations: Promise<void>[] = [];
  const evaluate = async (version: number) => {
    for (let problem = 0; problem < 5; problem++) {
      await some();
      take(sampled(version, [length()], problem, "eval"));
    }
    take(at({ type: "evaluated", step: version, final: false, outcomes: [], metrics: {}, start: 0, end: 0 }));
  };
  const publish = (version: number) => {
    if (evalEvery > 0 && version % evalEvery === 0)
      admissions.ask(
        () => budget.admitEvaluation(version, 5),
        () => void evaluations.push(evaluate(version)),
      );
    pipeline.use({ version, open: () => Promise.reject(new Error("not asked for")) });
  };
  take(opened);
  take(started(tariff));
  publish(0);
  let steps = 0;
  let left = 0;
  for await (const { batch, groups, carried } of pipeline.batches()) {
    const tokens = groups.map(({ batch, group }) => 2 * 100 + lengths.get(`${batch} ${group}`)!);
    const update = submitted(
      batch,
      tokens.reduce((sum, count) => sum + count, 0),
    ) as EventOf<"update-submitted">;
    left += carried.length;
    const whole = groups.map(({ batch, group }) => ({ ...update.groups[0]!, batch, group }));
    const later = carried.map(({ batch, group }) => ({ batch, group, problem: "p", datasetIndex: 0 }));
    take({ ...update, groups: whole, carried: later });
    await some();
    take(done(batch));
    publish(batch + 1);
    take(at({ type: "step-done", step: batch, datasetOffset: 0, spans: [], observed: {}, metrics: {} }));
    steps++;
  }
  await Promise.all(evaluations);
  await pipeline.close();
  return { steps, left, spent: meter.spent!.total, refusal: admissions.refusal!, underWay: budget.underWay };
}

test("a budget is never exceeded, and no run ends while what comes next would fit once all under way has settled", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 0, max: 3 }),
      fc.double({ min: 0.1, max: 20, noNaN: true }),
      fc.integer({ min: 0, max: 3 }),
      fc.constantFrom(1, 0.5),
      fc.boolean(),
      fc.infiniteStream(fc.integer({ min: 1, max: 50 })),
      async (lag, batches, evalEvery, share, rounds, stream) => {
        const limit = worst * batches;
        const { spent, refusal, underWay } = await simulate({
          limit,
          lag,
          evalEvery,
          share,
          rounds,
          length: () => stream.next().value as number,
        });
        expect(spent).toBeLessThanOrEqual(limit);
        expect(underWay).toBe(false);
        // What is said at the end is what was spent, and the truth about what came next.
        expect(refusal).toMatchObject({ limit, spent });
        expect(refusal.next).toBeGreaterThan(limit - spent);
        // With it, what was carried over is trained on: half of the batch before, in rounds of as many as begin together.
        const carried = rounds ? lag + 1 : 1;
        expect(refusal.next).toBeLessThan((share < 1 ? 1.1 + carried / 2 : 1.000001) * worst);
      },
    ),
    { numRuns: 100 },
  );
});

test("what does not fit beside work under way begins when that has cost less than it might have", async () => {
  // Two batches at their longest, and three as they come.
  const { steps, refusal } = await simulate({ limit: 2 * worst, lag: 2, length: () => 1 });
  expect(steps).toBe(3);
  expect(refusal.next).toBeLessThan(worst);
});

test("groups that are carried over are counted at their longest while they are under way, and are all trained on", async () => {
  let asked = 0;
  const length = () => (asked++ % 3 === 0 ? 48 : 1);
  const { left, steps, underWay } = await simulate({ limit: 8 * worst, lag: 1, share: 0.5, length });
  expect(steps).toBeGreaterThan(8);
  expect(left).toBeGreaterThan(0);
  expect(underWay).toBe(false);
});

test("nothing is begun that the budget does not cover at the longest answers", async () => {
  const { steps, spent } = await simulate({ limit: 0.99 * worst, lag: 0, length: () => 1 });
  expect([steps, spent]).toEqual([0, 0]);
  expect(upperBound([1, 1, 1], 2, 10)).toBe(20);
  expect(upperBound([1, 1, 1, 1], 2, 10)).toBe(2);
  expect(upperBound([1, 1, 1, 1], 0, 10)).toBe(0);
});
