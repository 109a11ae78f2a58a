// Programs of other languages than Python on Sandbox Fusion: a request for each test, in the server's own language, compiled and run as the server
// does it; a function's value comes back in a file. Nothing is signed: what comes back is the program's own word, which is read as that and nothing more.
import { type Called, reportFile } from "../../core/languages/call.ts";
import { ProgramError } from "../../core/languages/language.ts";
import { languageOf } from "../../core/languages/languages.ts";
import { callText, statusOfReport } from "../conversation.ts";
import { callingOf, callsOf, named, notMade, orProgramError, translatedOf } from "../programs.ts";
import { type Job, SandboxError, type TestInput, type TestOutcome, withoutEvidence } from "../sandbox.ts";
import type { CommandRunResult, RunCodeResponse } from "./api.ts";
import type { FusionClient } from "./client.ts";

const stderrKept = 4096;
const sigAbort = 6;

/** One test of a program. */
export async function runDirectly(
  client: FusionClient,
  { language = "python", source, limits }: Job,
  test: TestInput,
  signal: AbortSignal | undefined,
): Promise<TestOutcome> {
  const { title, fusion, runtime } = languageOf(language);
  const isCall = test.kind === "call";
  let inSource = (text: string) => text;
  let called: Called = { source };
  if (isCall) {
    const translated = await translatedOf(language, source).catch(orProgramError);
    if (translated instanceof ProgramError) return notMade(translated);
    called = callingOf(language)(translated.source, callsOf([test]), "file");
    inSource = translated.inSource;
  }
  const files = Object.entries(called.beside ?? {}).map(([name, text]) => [name, Buffer.from(text).toString("base64")]);
  const answer = await client.runCode(
    {
      ...{ code: called.source, language: fusion, stdin: isCall ? callText(test) : test.stdin },
      ...(isCall ? { files: Object.fromEntries(files), fetch_files: [reportFile] } : {}),
      run_timeout: Math.ceil(limits.wallMs / 1000),
      compile_timeout: 30,
      memory_limit_MB: Math.ceil(limits.memoryBytes / 1024 ** 2),
    },
    { signal },
  );
  const { compile_result: compiled, run_result: ran } = answer;
  if (!ran) {
    if (compiled) {
      const said = compiled.stderr || compiled.stdout || "compiling took too long";
      return notMade(new ProgramError(said, called.missing?.(said) ? "target-not-found" : undefined));
    }
    throw new SandboxError(
      "sandbox/fusion-unread",
      `Sandbox Fusion ran a ${title} program and said neither how compiling nor how running ended (${answer.message.slice(-200)}). The program is ungraded, not wrong; check that the server runs ${fusion}.`,
    );
  }
  const outcome = { ...withoutEvidence(), ...endOf(answer, ran), stderrTail: (ran.stderr ?? "").slice(-stderrKept) };
  const full = isCall ? { ...outcome, stdout: new Uint8Array(), ...reportedIn(answer, outcome) } : outcome;
  return named(full, inSource, runtime!.signs);
}

/** What a call left in the file of its report. */
function reportedIn({ files }: RunCodeResponse, { status, exitCode }: TestOutcome): Partial<TestOutcome> {
  if (status !== "finished" && status !== "runtime-error") return {};
  return statusOfReport(Buffer.from(files[reportFile] ?? "", "base64"), exitCode);
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
