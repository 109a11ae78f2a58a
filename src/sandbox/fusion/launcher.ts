// Builds the request that runs a chunk of tests on Sandbox Fusion, and reads the signed outcomes that come back.
import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import { readFileSync } from "node:fs";
import { promisify } from "node:util";
import { deflate, deflateSync } from "node:zlib";
import { z } from "zod";
import { languages } from "../../core/languages/languages.ts";
import { type Job, SandboxError, type TestInput, type TestOutcome, testStatuses } from "../sandbox.ts";
import type { RunCodeRequest } from "./api.ts";
import { excessOf } from "./modest.ts";

export const resultFile = "whetstone-result.bin";
const jobFile = "whetstone-job.bin";
const maxImports = 16 * 1024;
const deflateAsync = promisify(deflate);

let launcherCode: string | undefined;

/**
 * The launcher and what it needs, as one text: nothing to install on the server. Packed, as its own words must not be taken for what the
 * program imports: a server would start every program beside all of its packages.
 */
function launcher(): string {
  launcherCode ??= packed(
    [
      `PROGRAM_SOURCE = ${JSON.stringify(readFileSync(new URL("../python/program.py", import.meta.url), "utf8"))}`,
      readFileSync(new URL("./one_test.py", import.meta.url), "utf8"),
      readFileSync(new URL("./launcher.py", import.meta.url), "utf8"),
    ].join("\n"),
  );
  return launcherCode;
}

const packed = (code: string): string =>
  `import base64, zlib\nexec(compile(zlib.decompress(base64.b64decode("${deflateSync(code).toString("base64")}")), "launcher", "exec"))\n`;

export interface LauncherRequest {
  request: RunCodeRequest;
  key: Buffer;
}

/** The request for some tests of a job. The key goes in through stdin and never reaches a test's process. */
export async function launcherRequest(job: Job, tests: readonly TestInput[]): Promise<LauncherRequest> {
  const key = randomBytes(32);
  const { source, limits, preamble } = job;
  const { fileName: name, packages } = languages.python;
  const content = { name, source: wellFormed(source), limits, preamble, tests: tests.map(wellFormedTest) };
  const packed = await deflateAsync(JSON.stringify(content), { level: 1 });
  return {
    key,
    request: {
      // The program itself is packed: what it imports is said where a server can see it.
      code: `${launcher()}# import ${[...packages!.importedWords(source)].join(" ").slice(0, maxImports)}\n`,
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

/**
 * Reads a result file; undefined when it is not signed with the key. What is signed comes from the launcher and not from a program: when that cannot
 * be read, or answers for more tests than were sent, the server is in trouble, and this throws SandboxError.
 */
export function readResult(content: string, key: Buffer, tests: number): LauncherResult | undefined {
  const bytes = Buffer.from(content, "base64");
  const body = bytes.subarray(32);
  if (bytes.length < 32 || !timingSafeEqual(bytes.subarray(0, 32), createHmac("sha256", key).update(body).digest()))
    return undefined;
  const reader = new Reader(body);
  const workerDied = reader.take(4).readInt32LE() !== 0;
  const outcomes: TestOutcome[] = [];
  while (!reader.atEnd) outcomes.push(readOutcome(reader.take(Number(reader.take(8).readBigUInt64LE()))));
  if (outcomes.length > tests) throw unreadable(`outcomes of ${outcomes.length} tests where ${tests} were sent`);
  return { outcomes, workerDied };
}

const unreadable = (what: string) =>
  new SandboxError(
    "sandbox/fusion-unreadable",
    `Sandbox Fusion brought a signed result back that cannot be read: ${what}. The program is ungraded, not wrong; check that nothing between here and the server changes files, and that both run the same version.`,
  );

/** Takes pieces off the front. */
class Reader {
  readonly #bytes: Buffer;
  #position = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  get atEnd(): boolean {
    return this.#position === this.#bytes.length;
  }

  take(length: number): Buffer {
    const end = this.#position + length;
    if (end > this.#bytes.length) throw unreadable(`it ends after ${this.#bytes.length} bytes of at least ${end}`);
    const piece = this.#bytes.subarray(this.#position, end);
    this.#position = end;
    return piece;
  }
}

const amount = z.number().min(0);

const outcomeHead = z.object({
  status: z.enum(testStatuses),
  exitCode: z.int().nullable(),
  signal: z.int().nullable(),
  wallMs: amount,
  cpuMs: amount,
  maxRssBytes: amount,
  stderrTail: z.string(),
  stdoutBytes: z.int().min(0),
  frameBytes: z.int().min(0),
});

function readOutcome(message: Buffer): TestOutcome {
  const reader = new Reader(message);
  const { stdoutBytes, frameBytes, ...outcome } = readHead(reader.take(reader.take(4).readUInt32LE()));
  const stdout = reader.take(stdoutBytes);
  const frame = reader.take(frameBytes).toString("latin1");
  if (!reader.atEnd) throw unreadable("a test has more bytes than it says");
  return { ...outcome, stdout, ...(frameBytes > 0 ? { frame } : {}) };
}

function readHead(json: Buffer): z.output<typeof outcomeHead> {
  const excess = excessOf(json);
  if (excess !== undefined) throw unreadable(`a test's head is too large: ${excess}`);
  const text = json.toString();
  let head: unknown;
  try {
    head = JSON.parse(text);
  } catch {
    throw unreadable(`a test's head is no JSON: ${text.slice(0, 80)}`);
  }
  const { data, error } = outcomeHead.safeParse(head);
  if (!data)
    throw unreadable(`a test's head has a wrong ${error.issues[0]?.path.join(".") || "type"}: ${text.slice(0, 80)}`);
  return data;
}

/** Half a surrogate pair cannot be UTF-8; it becomes U+FFFD, as everywhere else. */
const wellFormed = (text: string) => (/[\ud800-\udfff]/.test(text) ? Buffer.from(text).toString() : text);

const wellFormedTest = (test: TestInput): TestInput =>
  test.kind === "stdin" ? { kind: "stdin", stdin: wellFormed(test.stdin) } : test;
