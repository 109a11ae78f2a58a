// `whetstone/grading`: takes code out of an answer, runs its tests in a sandbox, returns a verdict and a reward.

export { openSandbox, type SandboxChoice } from "../sandbox/open-sandbox.ts";
export { type CanaryResult, runCanary } from "./canary.ts";
export { type Certificate, certify, type FailedSolution } from "./certify.ts";
export { type Comparator, comparatorNames, outputsMatch, type TokenRules } from "./compare.ts";
export { type ExtractOptions, extractCode } from "./extract.ts";
export type { Failure } from "./failure.ts";
export {
  createGrader,
  type GradeRequest,
  type GradeResult,
  type Grader,
  type GraderOptions,
  limitsFor,
  type ProgramResult,
} from "./grade.ts";
export { type Json, JsonNumber, type JsonObject, readJson, toJson, writeJson } from "./json.ts";
export { type GradeStatus, gradeStatuses, type TestReport } from "./judge.ts";
export { decodePrivateTests } from "./lcb.ts";
export {
  type DropReason,
  dropReasons,
  dropReasonTexts,
  type NormalizedTest,
  type NormalizedTests,
  normalizeLiveCodeBench,
  normalizeTests,
  type TestContext,
} from "./normalize.ts";
export { readPythonLiteral } from "./python-literal.ts";
export { defaultRewardRules, type RewardRules, rewardOf } from "./reward.ts";
export { type SelectionRules, selectTests, type TestSelection, testSelections } from "./select.ts";
