import { availableParallelism } from "node:os";
import { expect, test } from "vitest";
import { defaultThreads } from "./default-threads.ts";

const cores = availableParallelism();

test.each([
  ["1", 1],
  ["1,4", 1],
  [String(cores + 1), cores],
  ["", cores],
  ["0", cores],
  ["-1", cores],
  ["many", cores],
])("OMP_NUM_THREADS=%s", (said, threads) => {
  expect(defaultThreads(said)).toBe(threads);
});
