import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";
import { sourceEntries } from "./src/core/own-entries.mjs";

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
    maxWorkers: 2,
    reporters: ["default", "./test/closing-line.ts"],
  },
});
