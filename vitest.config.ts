import { spawnSync } from "node:child_process";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";
import { sourceEntries } from "./src/core/own-entries.mjs";
import LongestFirst from "./test/longest-first.ts";
import { WriteSeconds } from "./test/seconds.ts";

/** Where `python3` is a script that looks for the interpreter (pyenv), every jail would wait for it: the interpreter's folder comes first. */
function withoutShims(path: string): string {
  const { stdout } = spawnSync("python3", ["-c", "import sys; print(sys.executable)"], { encoding: "utf8" });
  return stdout ? `${dirname(stdout.trim())}:${path}` : path;
}

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
    // Several files at once: a second thread of an engine would cost its start and find no core. The bits are the same, and
    // test/starter and src/engine use more.
    env: { OMP_NUM_THREADS: "1", PATH: withoutShims(process.env["PATH"] ?? "") },
    // Twice the cores of the machines that this runs on: while one waits for what it started, another computes. Every further worker
    // loads all modules once more, and eight keep two cores busy for longer than four.
    maxWorkers: 4,
    globalSetup: "./test/whole-run-folder.ts",
    setupFiles: "./test/remove-folders.ts",
    sequence: { sequencer: LongestFirst },
    include: ["src/**/*.test.ts", "test/**/*.test.ts"],
    // A file's own copy of every module costs more than many of these tests: files share the workers' processes.
    isolate: false,
    unstubEnvs: true,
    unstubGlobals: true,
    reporters: ["default", "./test/closing-line.ts", ...(process.env["WHET_SECONDS"] ? [new WriteSeconds()] : [])],
  },
});
