// What a person needs to see of a failed test: its input, what was wanted, what came out, and the end of stderr, each cut to 2 KiB
// with its full length stated.
// It holds expected outputs, so it stays in this process: it is never sent to a sandbox.
import type { TestOutcome } from "../sandbox/sandbox.ts";
import { writeJson } from "./json.ts";
import type { NormalizedTest } from "./normalize.ts";
import { readFrame, writeTree } from "./values.ts";

/** What a person needs to see of a failed test. */
export interface Failure {
  /** The lowest failing test that was run, counted from 0. */
  testIndex: number;
  /** stdin, or the arguments of the call as JSON, one per line. */
  input: string;
  /** What the test wants. */
  expected: string;
  /** What the program printed, or the value that the call returned. */
  printed: string;
  /** The end of what it wrote to stderr. */
  stderr: string;
  /** How the test ended. */
  status: string;
}

const cutBytes = 2048;
/** Stands where something was left out: no longer than this. */
const markBytes = 64;
const mark = (bytes: number) => ` … [${bytes} bytes in all] … `;

/** The failure of one test; `outcome` is undefined for a test that time did not allow. It may hold what is shown of an output of `printedBytes`. */
export function failureOf(
  testIndex: number,
  test: NormalizedTest,
  outcome: TestOutcome | undefined,
  status: string,
  printedBytes = outcome?.stdout.length,
): Failure {
  const functional = test.kind === "functional";
  return {
    testIndex,
    input: cutMiddle(functional ? test.args.map(writeJson).join("\n") : test.input),
    expected: cutMiddle(functional ? writeJson(test.expected) : test.expected),
    printed: outcome ? (functional ? returned(outcome.frame) : cutMiddleBytes(outcome.stdout, printedBytes)) : "",
    stderr: outcome ? cutStart(outcome.stderrTail) : "",
    status,
  };
}

/** At most this much of an output is looked at. */
export const longestShown = 2 * cutBytes;
const longestFrameShown = 16 * cutBytes;

/** A copy of both ends of an output: all that a failure shows of it. */
export function shownOfOutput(stdout: Uint8Array): Uint8Array {
  if (stdout.length <= longestShown) return new Uint8Array(stdout);
  const ends = new Uint8Array(longestShown);
  ends.set(stdout.subarray(0, cutBytes));
  ends.set(stdout.subarray(-cutBytes), cutBytes);
  return ends;
}

/** What a failure shows of a frame. */
export const shownOfFrame = (frame: string) => (frame.length <= longestFrameShown ? frame : cutMiddle(frame));

/** A frame of ordinary size is shown as the value it stands for, any other as it came. */
export function returned(frame: string | undefined): string {
  if (frame === undefined) return "";
  const tree = frame.length <= longestFrameShown ? readFrame(frame) : undefined;
  return cutMiddle(tree ? writeTree(tree) : frame);
}

/** At most 2 KiB of UTF-8, both ends kept. */
export function cutMiddle(text: string): string {
  if (text.length <= cutBytes && Buffer.byteLength(text) <= cutBytes) return text;
  // Characters outside this prefix and suffix cannot be part of the result; a long text is not encoded whole.
  const ends = text.length <= 2 * cutBytes ? text : text.slice(0, cutBytes) + text.slice(-cutBytes);
  return cutMiddleBytes(Buffer.from(ends), Buffer.byteLength(text));
}

function cutMiddleBytes(bytes: Uint8Array, total = bytes.length): string {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  // Bytes that are not UTF-8 grow to three when they are shown; half is room enough for them.
  if (total <= cutBytes) {
    const whole = buffer.toString("utf8");
    if (Buffer.byteLength(whole) <= cutBytes) return whole;
  }
  const room = Math.floor((cutBytes - markBytes) / 2);
  const head = fitted(buffer.subarray(0, room).toString("utf8"), room, "start");
  const tail = fitted(buffer.subarray(Math.max(room, buffer.length - room)).toString("utf8"), room, "end");
  return head + mark(total) + tail;
}

/** The end of a text, at most 2 KiB. */
function cutStart(text: string): string {
  return fitted(text.slice(-cutBytes), cutBytes, "end");
}

/** Drops whole characters from one side until the text fits, and halves of characters that the cut left. */
function fitted(text: string, room: number, keep: "start" | "end"): string {
  const characters = [...text];
  if (keep === "end") characters.reverse();
  let size = 0;
  const kept: string[] = [];
  for (const character of characters) {
    size += Buffer.byteLength(character);
    if (size > room) break;
    kept.push(character);
  }
  if (keep === "end") kept.reverse();
  const joined = kept.join("");
  return keep === "end" ? joined.replace(/^\ufffd+/, "") : joined.replace(/\ufffd+$/, "");
}
