// The order of test files: the longest first, so that no core waits at the end for one that began late. The runner itself goes by what it
// remembers of the last time, which a fresh clone and a CI machine do not have.
import { BaseSequencer, type TestSpecification } from "vitest/node";

/** Files that take half a minute and more beside others, the longest first; then the folders that have the next ones. */
const longest = [
  "src/tokenizer/kinds", // makes the environment that others will want
  "test/system/endpoints",
  "test/grading/oracle-time",
  "test/docs/tutorial",
  "test/system/verifiers",
  "test/system/interrupts",
  "test/system/proxy",
  "test/package/packed",
  "test/system/resume",
  "test/dashboard/live",
  "test/sandbox/execute",
  "test/package/launcher",
  "test/system/environment-command",
  "test/sandbox/time",
  "test/grading/fusion",
  "test/sandbox/holes",
  "test/sandbox/fusion",
  "test/grading/cases",
  "test/system/",
  "test/sandbox/",
  "test/starter/",
  "test/contract/",
  "test/package/",
  "test/grading/",
  "src/engine/trainer",
  "src/renderers/template/",
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
