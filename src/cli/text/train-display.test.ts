import fc from "fast-check";
import { expect, test } from "vitest";
import type { Evaluation } from "../../rl/evaluate.ts";
import { Display } from "../../runs/display.ts";
import type { RunEvent } from "../../runs/events.ts";
import { TrainDisplay } from "./train-display.ts";

function setup() {
  const lines: string[] = [];
  const take = (line: string) => void lines.push(line);
  const logger = { info: take, warn: take, error: take, detail: () => {} };
  const config = { max_steps: 50, prompts_per_step: 8, completions_per_prompt: 16, budget: null };
  return { lines, display: new TrainDisplay(new Display({ write: () => {} }), logger, config as never) };
}

const share = fc.option(fc.double({ min: 0, max: 1, noNaN: true }), { nil: undefined });
const columns = ["step", "reward", "correct", "format", "groups", "loss"];

function lineOf(step: number, metrics: Readonly<Record<string, number | undefined>>): string {
  const { lines, display } = setup();
  display.take({ type: "step-done", at: 0, step, metrics } as unknown as RunEvent);
  expect(lines).toHaveLength(1);
  return lines[0]!;
}

test("a step's line has every column, whatever its figures are", () => {
  fc.assert(
    fc.property(
      fc.nat(99_999),
      fc.record({
        mean_reward: fc.option(fc.double({ min: -1e6, max: 1e6, noNaN: true }), { nil: undefined }),
        mean_correct: share,
        format_rate: share,
        groups_total: fc.nat(999),
        groups_skipped: fc.nat(999),
        loss: fc.option(fc.double({ min: -1e9, max: 1e9 }), { nil: undefined }),
        "time/total": fc.double({ min: 0, max: 99_999, noNaN: true }),
        "pipeline/lag": fc.nat(64),
        "cost/total": fc.double({ min: 0, max: 1000, noNaN: true }),
      }),
      (step, metrics) => {
        const line = lineOf(step, metrics);
        const cost = metrics["cost/total"] > 0 ? ["$"] : [];
        const lag = metrics["pipeline/lag"] > 0 ? ["lag"] : [];
        const names = line.match(/[a-z]{3,}(?= )|\$(?=[0-9<])/g);
        expect(names).toEqual([...columns.slice(0, -1), ...cost, "loss", ...lag]);
        expect(line).toMatch(/^step +\d+ .*\ds$/);
      },
    ),
  );
});

test("the line of an ordinary step fits 80 columns", () => {
  const figure = fc.double({ min: -9, max: 9, noNaN: true });
  const ordinary = fc.record({
    mean_reward: fc.double({ min: -0.1, max: 1, noNaN: true }),
    mean_correct: share,
    format_rate: share,
    groups_total: fc.constant(8),
    groups_skipped: fc.nat(8),
    loss: figure,
    "time/total": fc.double({ min: 0, max: 999, noNaN: true }),
  });
  fc.assert(
    fc.property(fc.nat(9999), ordinary, (step, metrics) => {
      expect(lineOf(step, metrics).length).toBeLessThanOrEqual(80);
    }),
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
