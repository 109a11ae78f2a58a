// Short ways to write jobs.
import { defaultLimits, type Job, type Limits, type TestInput, type TestOutcome } from "../../src/sandbox/sandbox.ts";

export const stdin = (text: string): TestInput => ({ kind: "stdin", stdin: text });
export const call = (...argumentsJson: string[]): TestInput => ({ kind: "call", functionName: "f", argumentsJson });
export const textOf = (outcome: TestOutcome | undefined): string => Buffer.from(outcome?.stdout ?? "").toString();

export function job(source: string, tests: readonly TestInput[], limits: Partial<Limits> = {}, preamble = true): Job {
  return { source, tests, limits: { ...defaultLimits, ...limits }, preamble };
}
