import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import type { Logger } from "../runs/log.ts";
import { Watch } from "./watch.ts";

const watching = (deadlineMs: number) => {
  const warnings: string[] = [];
  const logger: Logger = { info() {}, error() {}, detail() {}, warn: (message) => warnings.push(message) };
  return { warnings, watch: new Watch(deadlineMs, logger, new AbortController().signal) };
};

test("a stage without progress is named, and after twice the deadline the run ends with an error", async () => {
  const { watch, warnings } = watching(60);
  await expect(watch.stage("training", () => sleep(30_000, undefined, { signal: watch.signal }))).rejects.toThrow();
  expect(warnings).toHaveLength(1);
  expect(warnings[0]).toMatch(/no progress in training since \d{4}-.*: 1 piece of work under way/);
  expect(watch.signal.reason).toMatchObject({ code: "rl/stuck" });
  watch.close();
});

test("a stage that makes progress is left alone, however long it takes", async () => {
  const { watch, warnings } = watching(400);
  const rollOut = watch.progress("sampling", async () => {
    await sleep(50);
    return undefined as never;
  });
  const slow = watch.stage("sampling", () => sleep(1200));
  for (let time = 0; time < 20; time++) await rollOut(...([] as unknown as Parameters<typeof rollOut>));
  await slow;
  expect(warnings).toEqual([]);
  expect(watch.signal.aborted).toBe(false);
  watch.close();
});
