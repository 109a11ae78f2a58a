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
    // Real servers, jails and child processes: a slow shared machine must not turn into a failing test.
    testTimeout: 120_000,
    hookTimeout: 180_000,
    pool: "forks",
    // Twice the cores of the machines that this runs on: tests mostly wait for what they start.
    maxWorkers: 4,
    sequence: { sequencer: LongestFirst },
    projects: [
      // A file's own copy of every module costs more than most of these tests: they share a process.
      {
        extends: true,
        test: { name: "units", include: ["src/**/*.test.ts"], isolate: false, unstubEnvs: true, unstubGlobals: true },
      },
      { extends: true, test: { name: "whole", include: ["test/**/*.test.ts"] } },
    ],
    reporters: ["default", "./test/closing-line.ts"],
  },
});
