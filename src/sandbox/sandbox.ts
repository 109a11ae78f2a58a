// "Run this program under these limits and say what happened." Two implementations: the embedded jail and a client of Sandbox
// Fusion. A sandbox never sees an expected output, never judges, and never throws because of what a program did: it throws
// only when it could not run the program at all (SandboxError), which is never a verdict.
import { WhetstoneError } from "../core/errors.ts";
import type { LanguageName } from "../core/languages/languages.ts";

/** What a program may use. */
export interface Limits {
  /** Wall time per test; waiting for a processor on a busy machine does not count. */
  wallMs: number;
  /** CPU time per test, of all its processes together. */
  cpuMs: number;
  /** Address space per process, and memory of all processes of a program together. */
  memoryBytes: number;
  /** Output kept per stream; more of stdout ends the test as "output-limit". */
  outputBytes: number;
  /** Largest file a program may write. */
  fileBytes: number;
  /** Scratch space (working directory and /tmp together). */
  scratchBytes: number;
  /** Processes and threads of one program. */
  processes: number;
  /** Files that a process may have open. */
  openFiles: number;
}

/** The limits of a run that sets none. */
export const defaultLimits: Limits = {
  wallMs: 6_250,
  cpuMs: 7_000,
  memoryBytes: 4 * 1024 ** 3,
  outputBytes: 16 * 1024 ** 2,
  fileBytes: 64 * 1024 ** 2,
  scratchBytes: 64 * 1024 ** 2,
  processes: 64,
  openFiles: 256,
};

/** Largest program that is run. Contest judges take 64 KiB to 512 KiB. */
export const maxSourceBytes = 1024 ** 2;

/** A test's input: text for a program that reads stdin, or the arguments of one call as JSON texts (numbers keep their digits). */
export type TestInput =
  | { kind: "stdin"; stdin: string }
  | { kind: "call"; functionName: string; argumentsJson: readonly string[] };

/** A program, and what it is run on. */
export interface Job {
  /** Default Python. */
  language?: LanguageName | undefined;
  /** The program's text. */
  source: string;
  /** Each is run in a fresh process. */
  tests: readonly TestInput[];
  /** Of each test. */
  limits: Limits;
  /** Names of the usual modules are there without an import, as contest programs expect. */
  preamble: boolean;
}

/** Every way in which one test's process can end. */
export const testStatuses = [
  "finished",
  "compile-error",
  "runtime-error",
  "time-limit",
  "memory-limit",
  "output-limit",
  "no-result",
  "unserialisable",
  "target-not-found",
  "missing-module",
  "bad-arguments",
] as const;
/** How one test's process ended. Only "finished" carries evidence; the judge decides whether it is the right one. */
export type TestStatus = (typeof testStatuses)[number];

/** What happened in one test. */
export interface TestOutcome {
  /** How it ended. */
  status: TestStatus;
  /** stdin tests: what the program wrote to descriptor 1, at most limits.outputBytes. */
  stdout: Uint8Array;
  /** The last 4 KiB of stderr. */
  stderrTail: string;
  /** call tests that finished: the returned value as a tagged tree in JSON (grading/values.ts reads it). */
  frame?: string;
  /** Null where a signal ended it. */
  exitCode: number | null;
  /** The number of the signal that ended it, or null. */
  signal: number | null;
  /** Without what the program waited for a processor, where the sandbox can tell. */
  wallMs: number;
  /** What it waited for a processor: a time limit beside much of it says little about the program. */
  waitedMs?: number;
  /** Of all its processes. */
  cpuMs: number;
  /** The most memory that it had. */
  maxRssBytes: number;
}

/** The outcome of a test that killed its supervisor again and again: it left no evidence. */
export const withoutEvidence = (): TestOutcome => ({
  status: "no-result",
  stdout: new Uint8Array(),
  stderrTail: "the program ended the process that watched it",
  exitCode: null,
  signal: null,
  wallMs: 0,
  cpuMs: 0,
  maxRssBytes: 0,
});

/** What a sandbox is and gives. */
export interface SandboxDescription {
  /** The embedded jail, its second level, or a Sandbox Fusion server. */
  kind: "jail" | "landlock" | "fusion";
  /** One line for logs: what runs the programs. */
  summary: string;
  /** What this level does not give, each as a short phrase; empty for the full jail. */
  lacks: readonly string[];
  /** The Python that runs programs: the path of the interpreter where it is known. */
  python: string;
  /** Programs that run at the same moment; more wait inside the sandbox. */
  programsAtOnce?: number;
}

/** Runs programs. Close it when it is no longer needed. */
export interface Sandbox {
  /** What it is. */
  readonly description: SandboxDescription;
  /**
   * Runs the tests in order, each in a fresh process with a fresh working directory, and hands over each input only after the
   * test before it has ended. `afterTest` is called with every outcome and may answer "stop". Resolves to the outcomes of the tests
   * that ran. Rejects with SandboxError when the sandbox failed (retries inside are already spent).
   */
  run(
    job: Job,
    afterTest: (outcome: TestOutcome, index: number) => "continue" | "stop",
    options?: { signal?: AbortSignal },
  ): Promise<TestOutcome[]>;
  /** Rejects with SandboxError, which says what to do, where programs of a language cannot be run. */
  supports(language: LanguageName): Promise<void>;
  /** Ends its processes. */
  close(): Promise<void>;
}

/** The sandbox could not be started or did not answer. Never a verdict on a program. */
export class SandboxError extends WhetstoneError {}
