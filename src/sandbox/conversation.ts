// What is said to a slot and what its answers mean: one test of a program, or one plain execution with files.
import { extname } from "node:path";
import { type ExecuteRequest, type ExecuteResult, emptyResult } from "./execute.ts";
import type { Program } from "./programs.ts";
import type { Job, Limits, TestInput, TestOutcome, TestStatus } from "./sandbox.ts";
import { type Slot, SlotLost } from "./slot.ts";

/** How long to wait for a sign of life of a slot, which gives one every few seconds, and what calls the wait off. */
export interface Waiting {
  patienceMs: number;
  signal?: AbortSignal;
}

const fetchBytesDefault = 8 * 1024 ** 2;
const sigXcpu = 24;

/** Limits as the supervisor takes them; treeBytes bounds the memory of all processes of a program together. */
export type SlotLimits = Limits & { treeBytes: number };

interface Ended {
  lockedIn: boolean;
  exitCode: number | null;
  signal: number | null;
  reason: (typeof reasons)[number];
  wallMs: number;
  waitedMs: number;
  cpuMs: number;
  maxRssBytes: number;
}

interface Answer {
  ended: Ended;
  stdout: Buffer;
  stderr: Buffer;
  report: Buffer;
}

const json = (value: unknown) => Buffer.from(JSON.stringify(value));

// What is said once per test is packed: the supervisor is forked from, so all that it does costs twice (python/slot.py, running.py).

function testHead(kind: TestInput["kind"], inputBytes: number): Buffer {
  const head = Buffer.alloc(9);
  head[0] = (kind === "call" ? "c" : "s").charCodeAt(0);
  head.writeBigUInt64LE(BigInt(inputBytes), 1);
  return head;
}

const reasons = [null, "time-limit", "memory-limit", "output-limit", "runtime-error"] as const;
const orNull = (value: number) => (value < 0 ? null : value);

function readEnded(packed: Buffer): Ended {
  return {
    lockedIn: packed[0] === 1,
    exitCode: orNull(packed.readInt32LE(1)),
    signal: orNull(packed.readInt32LE(5)),
    reason: reasons[packed[9]!]!,
    wallMs: packed.readDoubleLE(10),
    waitedMs: packed.readDoubleLE(18),
    cpuMs: packed.readDoubleLE(26),
    maxRssBytes: Number(packed.readBigUInt64LE(34)),
  };
}

/** How the slot starts the program. */
function startOf({ bytes, name, command, beside, environment, addressBytes, stackBytes }: Program) {
  const process = command === null ? null : { command, environment, addressBytes, stackBytes };
  return { name, process, beside: Object.entries(beside), sourceBytes: bytes.length };
}

/** Tells the slot which program it will run. */
export function sendJob(slot: Slot, program: Program, job: Pick<Job, "preamble" | "tests">, limits: SlotLimits): void {
  const keepCode = job.tests.length > 1 && program.command === null;
  const head = { mode: "run", preamble: job.preamble, keepCode, limits, ...startOf(program) };
  slot.send("J", json(head), program.bytes);
}

/**
 * Runs tests one after the other, each when every process of the one before is dead; stops when `after` says so. The next test lies at the slot
 * already: when it starts depends on nothing here. After one that the program did not end well, the slot waits to be told to go on.
 */
export async function runTests(
  slot: Slot,
  tests: readonly TestInput[],
  limits: Limits,
  waiting: Waiting,
  after: (outcome: TestOutcome) => "continue" | "stop",
): Promise<void> {
  sendTest(slot, tests[0]);
  for (const [index, test] of tests.entries()) {
    sendTest(slot, tests[index + 1]);
    const { outcome, endedWell } = await receiveOutcome(slot, test, limits, waiting);
    if (after(outcome) === "stop") return;
    if (!endedWell && index + 1 < tests.length) slot.send("C", Buffer.alloc(0));
  }
}

/** What a call finds at descriptor 0. */
export const callText = ({ functionName, argumentsJson }: TestInput & { kind: "call" }): string =>
  JSON.stringify({ function: functionName, arguments: argumentsJson });

function sendTest(slot: Slot, test: TestInput | undefined): void {
  if (!test) return;
  const input = Buffer.from(test.kind === "stdin" ? test.stdin : callText(test));
  slot.send("T", testHead(test.kind, input.length), input);
}

async function receiveOutcome(slot: Slot, test: TestInput, limits: Limits, waiting: Waiting) {
  const answer = await receiveAnswer(slot, waiting);
  const { exitCode, signal, wallMs, waitedMs, cpuMs, maxRssBytes } = answer.ended;
  const limit = limitHit(answer, limits);
  const ended =
    test.kind === "stdin"
      ? { status: scriptStatus(answer, limits) }
      : limit
        ? { status: limit }
        : statusOfReport(answer.report, exitCode);
  const outcome: TestOutcome = {
    ...{ ...ended, exitCode, signal, wallMs, waitedMs, cpuMs, maxRssBytes },
    stdout: answer.stdout,
    stderrTail: answer.stderr.toString("utf8"),
  };
  return { outcome, endedWell: exitCode === 0 && answer.ended.reason === null };
}

async function receiveAnswer(slot: Slot, waiting: Waiting): Promise<Answer> {
  const parts: Record<string, Buffer[]> = { O: [], E: [], F: [] };
  let ended: Ended | undefined;
  await slot.receive(
    ({ type, payload }) => {
      if (type !== "X") {
        parts[type]?.push(payload);
        return false;
      }
      ended = readEnded(payload);
      return true;
    },
    waiting.patienceMs,
    waiting.signal,
  );
  const join = (buffers: Buffer[]) => (buffers.length === 1 ? buffers[0]! : Buffer.concat(buffers));
  const answer = { ended: ended!, stdout: join(parts["O"]!), stderr: join(parts["E"]!), report: join(parts["F"]!) };
  if (!answer.ended.lockedIn) throw new SlotLost(`a test process was not locked in: ${answer.stderr.toString()}`);
  return answer;
}

/** A limit that ended the program, however it ended. */
function limitHit({ ended }: Answer, limits: Limits): TestStatus | undefined {
  if (ended.reason) return ended.reason;
  const outOfCpu = ended.signal === sigXcpu || (ended.signal !== null && ended.cpuMs > limits.cpuMs);
  return outOfCpu ? "time-limit" : undefined;
}

function scriptStatus(answer: Answer, limits: Limits): TestStatus {
  const limit = limitHit(answer, limits);
  if (limit) return limit;
  const report = answer.report.toString("latin1", 0, 64);
  if (report === "Scompile-error") return "compile-error";
  if (report === "Smemory-limit") return "memory-limit";
  if (report === "Smissing-module" && answer.ended.exitCode !== 0) return "missing-module";
  return answer.ended.exitCode === 0 ? "finished" : "runtime-error";
}

/** Those that a call test's process reports of itself. */
const reported = new Set<string>([
  "compile-error",
  "runtime-error",
  "memory-limit",
  "bad-arguments",
  "target-not-found",
  "unserialisable",
  "missing-module",
] satisfies TestStatus[]);

/** What the report of a call says, and with which value. */
export function statusOfReport(report: Buffer, exitCode: number | null): Pick<TestOutcome, "status" | "frame"> {
  const kind = String.fromCharCode(report[0] ?? 0);
  // What is in the frame is for the judge to read, who knows how large it may be.
  if (kind === "V" && exitCode === 0 && isBracketed(report.subarray(1)))
    return { status: "finished", frame: report.toString("utf8", 1) };
  const word = report.toString("latin1", 1, 64);
  if (kind === "S" && reported.has(word)) return { status: word as TestStatus };
  return { status: exitCode === 0 ? "no-result" : "runtime-error" };
}

/** A tree is a list; a program that wrote to the report descriptor itself left something else, or more than one. */
const isBracketed = (frame: Buffer) => frame[0] === 0x5b && frame.at(-1) === 0x5d;

/** Runs one program once in the slot: files in, the program, files out. */
export async function runOnce(
  slot: Slot,
  program: Program,
  request: ExecuteRequest,
  limits: SlotLimits,
  waiting: Waiting,
): Promise<ExecuteResult> {
  const stdin = typeof request.stdin === "string" ? Buffer.from(request.stdin) : request.stdin;
  const files = [...request.files];
  const job = {
    mode: "execute",
    limits,
    preamble: false,
    keepCode: false,
    ...startOf(program),
    inputBytes: stdin.length,
    files: files.map(([path, bytes]) => [path, bytes.length]),
    fetch: [...new Set(request.fetchFiles)],
    fetchBytes: request.fetchBytes ?? fetchBytesDefault,
  };
  slot.send("J", json(job), program.bytes, ...files.map(([, bytes]) => bytes));
  slot.send("T", testHead("stdin", stdin.length), stdin);
  const answer = await receiveAnswer(slot, waiting);
  const { ended } = answer;
  const fetched = await receiveFiles(slot, waiting);
  const status = scriptStatus(answer, limits);
  const limited = status === "time-limit" || status === "memory-limit" || status === "output-limit";
  const { exitCode, signal, wallMs, cpuMs, maxRssBytes } = ended;
  return emptyResult({
    ...{ exitCode, signal, wallMs, cpuMs, maxRssBytes },
    status: limited ? status : "finished",
    stdout: answer.stdout,
    stderr: answer.stderr,
    stdoutTruncated: ended.reason === "output-limit" && answer.stdout.length >= limits.outputBytes,
    stderrTruncated: ended.reason === "output-limit" && answer.stderr.length >= limits.outputBytes,
    oom: status === "memory-limit",
    ...fetched,
  });
}

async function receiveFiles(
  slot: Slot,
  waiting: Waiting,
): Promise<{ files: Map<string, Uint8Array>; filesLeftOut: string[] }> {
  const files = new Map<string, Uint8Array>();
  const filesLeftOut: string[] = [];
  let current: { path: string; bytes: number } | undefined;
  let parts: Buffer[] = [];
  const finish = () => {
    if (current) files.set(current.path, Buffer.concat(parts));
    parts = [];
    current = undefined;
  };
  await slot.receive(
    ({ type, payload }) => {
      if (type === "D") parts.push(payload);
      else finish();
      if (type === "G") {
        const head = JSON.parse(payload.toString()) as { path: string; leftOut: boolean; bytes: number };
        if (head.leftOut) filesLeftOut.push(head.path);
        else current = head;
      }
      return type === "Y";
    },
    waiting.patienceMs,
    waiting.signal,
  );
  return { files, filesLeftOut };
}

/** The script lies in the working directory too, under a name that no uploaded file has. */
export function freeName(fileName: string, taken: ReadonlyMap<string, unknown>): string {
  const ending = extname(fileName);
  let name = `main${ending}`;
  for (let number = 2; taken.has(name); number++) name = `main${number}${ending}`;
  return name;
}
