// The thread that judges, one for the process. What it was doing when it failed has no verdict.
import { WorkerCalls } from "../core/worker-calls.ts";
import { SandboxError } from "../sandbox/sandbox.ts";
import type { Comparator } from "./compare.ts";
import { type Answer, type ExtractOptions, extractAnswer } from "./extract.ts";
import type { Evidence, Verdict } from "./verdicts.ts";

export type Task =
  | { kind: "judge"; evidence: readonly Evidence[] }
  | { kind: "shrink"; bytes: Uint8Array; comparator: Comparator }
  | { kind: "extract"; response: string; options: ExtractOptions };

/** Handed over at once: copying more would hold up the event loop. */
const maxPerMessage = 1024 ** 2;
/** Below this, taking a program out of an answer takes less than handing it over. */
const shortAnswer = 64 * 1024;

const thread = new WorkerCalls<Task, unknown>({
  entry: new URL("./judge-worker.ts", import.meta.url),
  failed: (reason) =>
    new SandboxError(
      "sandbox/judge-failed",
      `The thread that compares outputs failed (${reason}). It is not a verdict on the program; grade it again. If it goes on, look at the memory of this process.`,
    ),
});

/** The verdict on each. */
export async function judgeInThread(all: readonly Evidence[]): Promise<Verdict[]> {
  const verdicts: Verdict[] = [];
  for (let start = 0; start < all.length; ) {
    let end = start;
    for (let size = 0; end < all.length && (end === start || size < maxPerMessage); end++) size += sizeOf(all[end]!);
    verdicts.push(...((await thread.ask({ kind: "judge", evidence: all.slice(start, end) })) as Verdict[]));
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
  return (await thread.ask(task, [own])) as Uint8Array;
}

/** `extractAnswer`, for answers of any length. */
export async function extractInThread(response: string, options: ExtractOptions): Promise<Answer | null> {
  if (response.length <= shortAnswer) return extractAnswer(response, options);
  return (await thread.ask({ kind: "extract", response, options })) as Answer | null;
}
