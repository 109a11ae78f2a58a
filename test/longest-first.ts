// The order of test files: the longest first, so that no core waits at the end for one that began late. The runner itself goes by what it
// remembers of the last time, which a fresh clone and a CI machine do not have.
import { BaseSequencer, type TestSpecification } from "vitest/node";

/** Beginnings of paths, longest first; a few seconds more or less make no difference. */
const longest = [
  "src/tokenizer/kinds", // makes the environment that others will want
  "test/system/interrupts",
  "test/package/packed",
  "test/docs/tutorial",
  "test/system/resume",
  "test/system/eval",
  "test/dashboard/live",
  "test/system/endpoints",
  "test/grading/hostile",
  "test/system/train-errors",
  "test/system/",
  "test/contract/",
  "test/grading/cases",
  "test/package/",
  "src/renderers/template/reference",
  "test/sandbox/",
  "test/grading/",
  "test/",
];

export default class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const { root } = this.ctx.config;
    const rank = ({ moduleId }: TestSpecification) => {
      const path = moduleId.slice(root.length + 1);
      const found = longest.findIndex((start) => path.startsWith(start));
      return found === -1 ? longest.length : found;
    };
    return (await super.sort(files)).sort((first, second) => rank(first) - rank(second));
  }
}
