// The benchmarks of the pipeline and of scale work: their quick versions, whose figures nobody looks at.
import { expect, test } from "vitest";
import { runWhet } from "../support/whet.ts";

test("./whet bench pipeline scale quick=true prints both tables", async () => {
  const { code, stdout, stderr } = await runWhet(["bench", "pipeline", "scale", "quick=true"]);
  expect(code, stderr).toBe(0);
  for (const lag of [0, 1]) expect(stdout).toMatch(new RegExp(`lag ${lag} +[\\d.]+/h +[\\d.]+× +0 discarded`));
  expect(stdout).toMatch(/peak memory of the training process · .* [\d.]+ GiB/);
  expect(stdout).toMatch(/journal append, p99 · .* [\d.]+ ms/);
  expect(stdout).not.toContain("MISSED");
});
