// Builds the request that runs a chunk of tests on Sandbox Fusion, and reads the signed outcomes that come back.
import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import { readFileSync } from "node:fs";
import { promisify } from "node:util";
import { deflate } from "node:zlib";
import { importedWords } from "../imports.ts";
import type { Job, TestInput, TestOutcome, TestStatus } from "../sandbox.ts";
import type { RunCodeRequest } from "./api.ts";

export const resultFile = "whetstone-result.bin";
const jobFile = "whetstone-job.bin";
const mostImports = 16 * 1024;
const deflateAsync = promisify(deflate);

let launcherCode: string | undefined;

/** The launcher and what it needs, as one text: nothing to install on the server. */
function launcher(): string {
  launcherCode ??= [
    `PROGRAM_SOURCE = ${JSON.stringify(readFileSync(new URL("../python/program.py", import.meta.url), "utf8"))}`,
    readFileSync(new URL("./one_test.py", import.meta.url), "utf8"),
    readFileSync(new URL("./launcher.py", import.meta.url), "utf8"),
  ].join("\n");
  return launcherCode;
}

export interface LauncherRequest {
  request: RunCodeRequest;
  key: Buffer;
}

/** The request for some tests of a job. The key goes in through stdin and never reaches a test's process. */
export async function launcherRequest(job: Job, tests: readonly TestInput[]): Promise<LauncherRequest> {
  const key = randomBytes(32);
  const { source, limits, preamble } = job;
  const content = Buffer.from(
    JSON.stringify({ source: wellFormed(source), limits, preamble, tests: tests.map(wellFormedTest) }),
  );
  const packed = await deflateAsync(content, { level: 1 });
  return {
    key,
    request: {
      // The program itself is packed: what it imports is said where a server can see it.
      code: `${launcher()}# import ${[...importedWords(source)].join(" ").slice(0, mostImports)}\n`,
      language: "python",
      run_timeout: Math.ceil((limits.wallMs / 1000 + 1) * tests.length + 10),
      stdin: key.toString("hex"),
      files: { [jobFile]: packed.toString("base64") },
      fetch_files: [resultFile],
    },
  };
}

/** What a result file says. */
export interface LauncherResult {
  outcomes: TestOutcome[];
  /** The process that ran the tests died before its time: a test ended it. */
  workerDied: boolean;
}

/** Reads a result file; undefined when it is not signed with the key or not whole. */
export function readResult(content: string, key: Buffer): LauncherResult | undefined {
  const bytes = Buffer.from(content, "base64");
  if (bytes.length < 36) return undefined;
  const body = bytes.subarray(32);
  if (!timingSafeEqual(bytes.subarray(0, 32), createHmac("sha256", key).update(body).digest())) return undefined;
  const outcomes: TestOutcome[] = [];
  for (let position = 4; position < body.length; ) {
    const end = position + 8 + Number(body.readBigUInt64LE(position));
    outcomes.push(readOutcome(body.subarray(position + 8, end)));
    position = end;
  }
  return { outcomes, workerDied: body.readInt32LE(0) !== 0 };
}

interface WireOutcome extends Omit<TestOutcome, "stdout" | "frame"> {
  status: TestStatus;
  stdoutBytes: number;
  frameBytes: number;
  clean: boolean;
}

function readOutcome(message: Buffer): TestOutcome {
  const headEnd = 4 + message.readUInt32LE(0);
  const { stdoutBytes, frameBytes, clean, ...outcome } = JSON.parse(
    message.toString("utf8", 4, headEnd),
  ) as WireOutcome;
  const frame = message.toString("latin1", headEnd + stdoutBytes, headEnd + stdoutBytes + frameBytes);
  return {
    ...outcome,
    stdout: message.subarray(headEnd, headEnd + stdoutBytes),
    ...(frameBytes > 0 ? { frame } : {}),
  };
}

/** Half a surrogate pair cannot be UTF-8; it becomes U+FFFD, as everywhere else. */
const wellFormed = (text: string) => (/[\ud800-\udfff]/.test(text) ? Buffer.from(text).toString() : text);

const wellFormedTest = (test: TestInput): TestInput =>
  test.kind === "stdin" ? { kind: "stdin", stdin: wellFormed(test.stdin) } : test;
