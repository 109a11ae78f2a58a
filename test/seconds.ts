// How long test files take, beside others on two cores: those of three seconds and more. `WHET_SECONDS=1 ./whet test` measures them anew.
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { Reporter, TestModule } from "vitest/node";

const file = fileURLToPath(new URL("./seconds.json", import.meta.url));
const leastSeconds = 3;

/** By the path of the file, the longest first. */
export const seconds = JSON.parse(readFileSync(file, "utf8")) as Readonly<Record<string, number>>;

/** Writes down, after a run, those of its files. */
export class WriteSeconds implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const all = new Map(Object.entries(seconds));
    for (const module of modules) all.set(module.relativeModuleId, Math.round(module.diagnostic().duration / 1000));
    const longest = [...all].filter(([, duration]) => duration >= leastSeconds).sort((a, b) => b[1] - a[1]);
    writeFileSync(file, `${JSON.stringify(Object.fromEntries(longest), null, 2)}\n`);
  }
}
