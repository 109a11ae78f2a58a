// The thread that judges, one for the process. It starts when first needed, does not keep the process alive, and is started again when
// it fails: what it was doing then has no verdict.
import type { Worker } from "node:worker_threads";
import { startWorker } from "../core/workers.ts";
import { SandboxError } from "../sandbox/sandbox.ts";
import type { Comparator } from "./compare.ts";
import { type ExtractOptions, extractCode } from "./extract.ts";
import type { Evidence, Verdict } from "./verdicts.ts";

type Task =
  | { kind: "judge"; evidence: readonly Evidence[] }
  | { kind: "shrink"; bytes: Uint8Array; comparator: Comparator }
  | { kind: "extract"; response: string; options: ExtractOptions };

export interface JudgeRequest {
  id: number;
  task: Task;
}

export type JudgeReply = { id: number; result: unknown } | { id: number; error: string };

/** Handed over at once: copying more would hold up the event loop. */
const mostPerMessage = 1024 ** 2;
/** Below this, taking a program out of an answer takes less than handing it over. */
const shortAnswer = 64 * 1024;

let thread: Worker | undefined;
let next = 0;
const waiting = new Map<number, { resolve: (result: unknown) => void; reject: (error: Error) => void }>();

/** Starts the thread, which takes a moment, before there is something to do. */
function startJudge(): Worker {
  if (thread) return thread;
  const worker = startWorker(new URL("./judge-worker.ts", import.meta.url), undefined);
  worker.on("message", (reply: JudgeReply) => {
    const caller = waiting.get(reply.id);
    waiting.delete(reply.id);
    if (waiting.size === 0) worker.unref();
    if ("error" in reply) caller?.reject(failed(reply.error));
    else caller?.resolve(reply.result);
  });
  let reason = "its thread ended";
  worker.on("error", (error) => {
    reason = error.message;
  });
  worker.on("exit", () => {
    if (thread === worker) thread = undefined;
    for (const { reject } of waiting.values()) reject(failed(reason));
    waiting.clear();
  });
  worker.unref();
  thread = worker;
  return worker;
}

function failed(reason: string): SandboxError {
  return new SandboxError(
    "sandbox/judge-failed",
    `The thread that compares outputs failed (${reason}). It is not a verdict on the program; grade it again. If it goes on, look at the memory of this process.`,
  );
}

function ask(task: Task, transfer: readonly ArrayBuffer[] = []): Promise<unknown> {
  const worker = startJudge();
  const id = next++;
  return new Promise((resolve, reject) => {
    waiting.set(id, { resolve, reject });
    // While a reply is due the process must stay.
    worker.ref();
    worker.postMessage({ id, task } satisfies JudgeRequest, [...transfer]);
  });
}

/** The verdict on each. */
export async function judgeInThread(all: readonly Evidence[]): Promise<Verdict[]> {
  const verdicts: Verdict[] = [];
  for (let start = 0; start < all.length; ) {
    let end = start;
    for (let size = 0; end < all.length && (end === start || size < mostPerMessage); end++) size += sizeOf(all[end]!);
    verdicts.push(...((await ask({ kind: "judge", evidence: all.slice(start, end) })) as Verdict[]));
    start = end;
  }
  return verdicts;
}

/** What is handed over for it, in bytes or characters. */
function sizeOf(evidence: Evidence): number {
  return bytesOf(evidence) + evidence.expected.length;
}

/** What a program gave, in bytes or characters: what is held until it is judged. */
export function bytesOf(evidence: Evidence): number {
  return evidence.kind === "output" ? evidence.stdout.length : (evidence.frame?.length ?? 0);
}

/** An output without what no comparator looks at; `bytes` may be of no use afterwards. */
export async function shrinkInThread(bytes: Uint8Array, comparator: Comparator): Promise<Uint8Array> {
  // Moved where the memory is its own; what shares its memory with other things has to be copied.
  const { buffer } = bytes;
  const own =
    buffer instanceof ArrayBuffer && buffer.byteLength === bytes.length ? buffer : new Uint8Array(bytes).buffer;
  const task: Task = { kind: "shrink", bytes: new Uint8Array(own), comparator };
  return (await ask(task, [own])) as Uint8Array;
}

/** `extractCode`, for answers of any length. */
export async function extractInThread(response: string, options: ExtractOptions): Promise<string | null> {
  if (response.length <= shortAnswer) return extractCode(response, options);
  return (await ask({ kind: "extract", response, options })) as string | null;
}
