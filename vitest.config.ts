import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";
import { sourceEntries } from "./src/core/own-entries.mjs";
import LongestFirst from "./test/longest-first.ts";

export default defineConfig({
  // The package's own entries are the source here.
  resolve: {
    alias: Object.fromEntries(Object.entries(sourceEntries()).map(([name, url]) => [name, fileURLToPath(url)])),
  },
  test: {
    include: ["src/**/*.test.ts", "test/**/*.test.ts"],
    // Real servers, jails and child processes: a slow shared machine must not turn into a failing test.
    testTimeout: 120_000,
    hookTimeout: 180_000,
    pool: "forks",
    // Twice the cores of the machines that this runs on: tests mostly wait for what they start.
    maxWorkers: 4,
    sequence: { sequencer: LongestFirst },
    reporters: ["default", "./test/closing-line.ts"],
  },
});
