import fc from "fast-check";
import { expect, test } from "vitest";
import type { Evaluation } from "../rl/evaluate.ts";
import { Display } from "../runs/display.ts";
import type { RunEvent } from "../runs/events.ts";
import { TrainDisplay } from "./train-display.ts";

function setup() {
  const lines: string[] = [];
  const take = (line: string) => void lines.push(line);
  const logger = { info: take, warn: take, error: take, detail: () => {} };
  const config = { max_steps: 50, group_size: 8, batch_size: 128 };
  return { lines, display: new TrainDisplay(new Display({ write: () => {} }), logger, config as never) };
}

test("a step's line fits 80 columns whatever its figures are", () => {
  const share = fc.option(fc.double({ min: 0, max: 1, noNaN: true }), { nil: undefined });
  fc.assert(
    fc.property(
      fc.nat(99_999),
      fc.record({
        mean_reward: fc.option(fc.double({ min: -999, max: 999, noNaN: true }), { nil: undefined }),
        mean_correct: share,
        format_rate: share,
        groups_total: fc.nat(999),
        groups_skipped: fc.nat(999),
        loss: fc.option(fc.double({ min: -1e9, max: 1e9 }), { nil: undefined }),
        "time/total": fc.double({ min: 0, max: 99_999, noNaN: true }),
        "pipeline/lag": fc.nat(64),
      }),
      (step, metrics) => {
        const { lines, display } = setup();
        display.take({ type: "step-done", at: 0, step, metrics } as unknown as RunEvent);
        expect(lines).toHaveLength(1);
        expect(lines[0]!.length).toBeLessThanOrEqual(80);
        expect(lines[0]).toMatch(/^step +\d+ {2}reward .* {2}groups -?\d+\/\d+.*s$/);
      },
    ),
  );
});

test("one of a thing is not called several", () => {
  const rate = { rate: 0.5, low: 0.4, high: 0.6, problems: 1 };
  const { lines, display } = setup();
  display.evaluated(1, { pass1: rate, bySource: {} } as unknown as Evaluation);
  display.evaluated(2, { pass1: { ...rate, problems: 2 }, bySource: {} } as unknown as Evaluation);
  expect(lines).toEqual([
    "eval after 1 step  Pass@1 50.0% [40.0, 60.0]  1 problem",
    "eval after 2 steps  Pass@1 50.0% [40.0, 60.0]  2 problems",
  ]);
});
