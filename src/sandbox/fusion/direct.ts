// Programs of other languages than Python on Sandbox Fusion: a request for each test, in the server's own language, compiled and run as the server
// does it. Nothing is signed: what comes back is the program's own output, which is read as that and nothing more.
import { languageOf } from "../../core/languages/languages.ts";
import { named, notMade } from "../programs.ts";
import { type Job, SandboxError, type TestInput, type TestOutcome, withoutEvidence } from "../sandbox.ts";
import type { CommandRunResult, RunCodeResponse } from "./api.ts";
import type { FusionClient } from "./client.ts";

const stderrKept = 4096;
const sigAbort = 6;

/** One test of a program. */
export async function runDirectly(
  client: FusionClient,
  { language, source, limits }: Job,
  test: TestInput,
  signal: AbortSignal | undefined,
): Promise<TestOutcome> {
  const { title, fusion, runtime } = languageOf(language);
  if (test.kind === "call")
    throw new SandboxError(
      "sandbox/fusion-no-calls",
      `Functions of ${title} cannot be called on Sandbox Fusion: only programs that read stdin are run there. Use the embedded jail (sandbox_url=none), or leave problems with functions out.`,
    );
  const answer = await client.runCode(
    {
      ...{ code: source, language: fusion, stdin: test.stdin },
      run_timeout: Math.ceil(limits.wallMs / 1000),
      compile_timeout: 30,
      memory_limit_MB: Math.ceil(limits.memoryBytes / 1024 ** 2),
    },
    { signal },
  );
  const { compile_result: compiled, run_result: ran } = answer;
  if (!ran) {
    if (compiled) return notMade(compiled.stderr || compiled.stdout || "compiling took too long");
    throw new SandboxError(
      "sandbox/fusion-unread",
      `Sandbox Fusion ran a ${title} program and said neither how compiling nor how running ended (${answer.message.slice(-200)}). The program is ungraded, not wrong; check that the server runs ${fusion}.`,
    );
  }
  const outcome = { ...withoutEvidence(), ...endOf(answer, ran), stderrTail: (ran.stderr ?? "").slice(-stderrKept) };
  return named(outcome, (text) => text, runtime!.signs);
}

function endOf({ limits, oom }: RunCodeResponse, ran: CommandRunResult): Partial<TestOutcome> {
  const { status, return_code: code, stdout, execution_time: seconds } = ran;
  const wallMs = 1000 * (seconds ?? 0);
  const signal = code !== null && code < 0 ? -code : null;
  const exit = { wallMs, exitCode: signal === null ? code : null, signal };
  if (status === "TimeLimitExceeded") return { ...exit, status: "time-limit" };
  if (limits?.stdout) return { ...exit, status: "output-limit" };
  if (oom) return { ...exit, status: "memory-limit" };
  // Ended by the server's own means: nothing is known of why.
  if (status === "Error" || code === null) return { ...exit, status: "runtime-error", signal: signal ?? sigAbort };
  return { ...exit, status: code === 0 ? "finished" : "runtime-error", stdout: Buffer.from(stdout ?? "") };
}
