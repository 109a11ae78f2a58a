// The order of test files: the longest first, so that no core waits at the end for one that began late. The runner itself goes by what it
// remembers of the last time, which a fresh clone and a CI machine do not have.
import { BaseSequencer, type TestSpecification } from "vitest/node";
import { seconds } from "./seconds.ts";

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
