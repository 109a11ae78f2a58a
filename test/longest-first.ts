// The order of test files: the longest first, so that no core waits at the end for one that began late. seconds.json has how long each took
// beside others on two cores; `WHET_SECONDS=1 ./whet test` writes it anew. The runner itself goes by what it remembers of the last time,
// which a fresh clone and a CI machine do not have.
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { BaseSequencer, type Reporter, type TestModule, type TestSpecification } from "vitest/node";

const file = fileURLToPath(new URL("./seconds.json", import.meta.url));
const seconds = JSON.parse(readFileSync(file, "utf8")) as Record<string, number>;
/** Shorter ones are not written down: they go last, and fill what is left of a core. */
const leastSeconds = 3;

/** They want an environment of Python, which is made while the first files run (support/venv.ts). */
const wantsVenv = /^(src\/tokenizer\/kinds|test\/system\/(verifiers|agents|serve-openai|suites))\.test\.ts$/;
/** As many as run until it is there. */
const filesBefore = 12;

export default class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const pathOf = ({ moduleId }: TestSpecification) => moduleId.slice(this.ctx.config.root.length + 1);
    const secondsOf = (one: TestSpecification) => seconds[pathOf(one)] ?? 0;
    const sorted = (await super.sort(files)).sort((first, second) => secondsOf(second) - secondsOf(first));
    const waiting = sorted.filter((one) => wantsVenv.test(pathOf(one)));
    const others = sorted.filter((one) => !wantsVenv.test(pathOf(one)));
    return [...others.slice(0, filesBefore), ...waiting, ...others.slice(filesBefore)];
  }
}

/** Writes what LongestFirst goes by. */
export class WriteSeconds implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const measured = modules.map((module) => [module.relativeModuleId, module.diagnostic().duration / 1000] as const);
    const longest = measured.filter(([, duration]) => duration >= leastSeconds).sort((a, b) => b[1] - a[1]);
    const rounded = Object.fromEntries(longest.map(([path, duration]) => [path, Math.round(duration)]));
    writeFileSync(file, `${JSON.stringify(rounded, null, 2)}\n`);
  }
}
