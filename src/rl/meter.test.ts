import fc from "fast-check";
import { expect, test } from "vitest";
import type { EventOf, NewEvent, RunEvent } from "../runs/events.ts";
import { Budget, upperBound } from "./budget.ts";
import { presetConfig } from "./config.ts";
import { Meter } from "./meter.ts";
import type { Tariff } from "./prices.ts";

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
const group = { problem: "p", outcome: "mixed" as const, skipped: false, advantages: [], trained: [] };
const submitted = (step: number, tokens: number) =>
  at({ type: "update-submitted", step, rule, examples: 2, tokens, groups: [group] });
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
  expect(meter.evaluationTokens).toEqual({ prefill: 100, cachedPrefill: 20, sample: 7, train: 0 });
  expect(meter.lostTokens).toEqual({ prefill: 0, cachedPrefill: 0, sample: 0, train: 0 });
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

test("what a kill cut off is estimated apart, what is done again is paid again", () => {
  const before = [opened, started(tariff), requested(0), sampled(0, [30, 40]), submitted(0, 250), done(0)];
  const killed = [...before, requested(1), requested(2), submitted(1, 90), opened, started(tariff)];
  const meter = meterOf(
    ...killed,
    at({ type: "resumed", version: 0, checkpoint: null, datasetOffset: 0 }),
    at({ type: "retrained", step: 0, tokens: 250, start: 0, end: 0 }),
    requested(1),
    sampled(1, [20, 20]),
    done(1),
  );
  // Two requests of two samples of 35 tokens on average, and an update, all unanswered; the update was sent again and applied.
  expect(meterOf(...killed).lostTokens).toEqual({ prefill: 200, cachedPrefill: 0, sample: 140, train: 90 });
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
  });
  meter.take(started(tariff));
  expect(meter.spent!.total).toBeCloseTo((84 + 700) * 1e-6, 15);
  // From then on dearer: what was spent stays as it was.
  meter.take(started({ ...tariff, sample: 20 }));
  meter.take(sampled(1, [1]));
  expect(meter.spent!.total).toBeCloseTo((84 + 700 + 84 + 20) * 1e-6, 15);
});

test("a journal from before tokens were written down is read, and said to be incomplete", () => {
  const { promptTokens: _, cachedTokens: __, ...old } = sampled(0, [5]) as EventOf<"group-sampled">;
  const meter = meterOf(opened, started(tariff), old);
  expect(meter.incomplete).toBe(true);
  expect(meter.tokens.sample).toBe(5);
});

const config = { ...presetConfig("nano"), batch_size: 8, group_size: 4, max_tokens: 50, context_window: 150 };

/** A run by the rules of the loop: batches begin while they are allowed to, `lag` ahead; returns what was spent. */
function simulate(limit: number, lag: number, lengths: (batch: number) => number[][], most: number): number {
  const meter = new Meter();
  const budget = new Budget(limit, tariff, meter, config);
  const take = (event: RunEvent) => {
    meter.take(event);
    budget.take(event);
  };
  take(opened);
  take(started(tariff));
  let admitted = 0;
  for (let step = 0; step < most; step++) {
    while (admitted <= step + lag && budget.admit(admitted, 4)) admitted++;
    if (admitted <= step) break;
    const groups = lengths(step);
    for (const [index, tokens] of groups.entries()) take(sampled(step, tokens, index));
    const tokens = groups.flat().reduce((sum, length) => sum + 100 + length, 0);
    take(submitted(step, tokens));
    take(done(step));
    take(at({ type: "step-done", step, datasetOffset: 0, spans: [], observed: {}, metrics: {} }));
  }
  return meter.spent!.total;
}

test("a budget is not exceeded, and nearly used, whatever the lengths and the lag", () => {
  // The most that a batch can cost: 4 prompts, 8 completions of 50 tokens, 8 sequences of 150.
  const worst = (4 * 100 * 1 + 8 * 50 * 10 + 8 * 150 * 100) / 1e6;
  fc.assert(
    fc.property(
      fc.integer({ min: 0, max: 3 }),
      fc.integer({ min: 1, max: 40 }),
      fc.infiniteStream(fc.integer({ min: 1, max: 50 })),
      (lag, batches, stream) => {
        const limit = worst * (batches + lag);
        const next = () => stream.next().value as number;
        const spent = simulate(limit, lag, () => Array.from({ length: 4 }, () => [next(), next()]), 10_000);
        expect(spent).toBeLessThanOrEqual(limit);
        expect(spent).toBeGreaterThan(limit - (lag + 2) * worst);
      },
    ),
    { numRuns: 50 },
  );
});

test("nothing is begun that the budget does not cover at the longest answers", () => {
  expect(simulate(0.1, 0, () => [], 5)).toBe(0);
  expect(upperBound([1, 1, 1], 2, 10)).toBe(20);
  expect(upperBound([1, 1, 1, 1], 2, 10)).toBe(2);
  expect(upperBound([1, 1, 1, 1], 0, 10)).toBe(0);
});
