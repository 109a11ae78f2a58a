// `whetstone/sandbox`: runs untrusted programs under limits and reports what happened; it judges nothing. The embedded jail, or Sandbox
// Fusion. `whetstone/grading` puts tests and verdicts over it.
export { WhetstoneError } from "../core/errors.ts";
export { openSandbox, type SandboxChoice } from "./open-sandbox.ts";
export {
  defaultLimits,
  type Job,
  type Limits,
  maxSourceBytes,
  type Sandbox,
  type SandboxDescription,
  SandboxError,
  type TestInput,
  type TestOutcome,
  type TestStatus,
} from "./sandbox.ts";
