// A Sandbox Fusion server that is broken, or hostile: whatever it answers, grading gives a result, and what cannot be read is ungraded. The server of
// this test answers rightly, and then something in its answer is changed.
import { createHmac } from "node:crypto";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { inflateSync } from "node:zlib";
import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createGrader, type Grader, gradeStatuses, normalizeTests } from "../../src/grading/index.ts";
import type { RunCodeRequest } from "../../src/sandbox/fusion/api.ts";
import { openFusion } from "../../src/sandbox/fusion/fusion.ts";
import type { Sandbox } from "../../src/sandbox/sandbox.ts";

type Value = null | boolean | number | string | Value[] | { [key: string]: Value };
/** Changes what the server says: all of it, its answer, the head of every test's outcome, the bytes that are signed. */
interface Change {
  text?: string;
  answer?(answer: Value): Value;
  head?(head: Value): Value;
  body?(body: Buffer): Buffer;
}

let change: Change = {};
let server: Server;
let sandbox: Sandbox;
let grader: Grader;

const u32 = (value: number) => Buffer.from(Uint32Array.of(value).buffer);
const u64 = (value: number) => Buffer.from(BigUint64Array.of(BigInt(value)).buffer);

/** The outcome of a program that prints its input back. */
function outcomeOf(stdin: string): Buffer {
  const head = {
    status: "finished",
    exitCode: 0,
    signal: null,
    wallMs: 1,
    cpuMs: 1,
    maxRssBytes: 1,
    stderrTail: "",
    stdoutBytes: Buffer.byteLength(stdin),
    frameBytes: 0,
    clean: true,
  };
  const text = Buffer.from(JSON.stringify(change.head ? change.head(head) : head) ?? "");
  const message = Buffer.concat([u32(text.length), text, Buffer.from(stdin)]);
  return Buffer.concat([u64(message.length), message]);
}

function answerTo({ files, stdin }: RunCodeRequest): Value {
  const job = JSON.parse(inflateSync(Buffer.from(Object.values(files!)[0]!, "base64")).toString()) as {
    tests: { stdin: string }[];
  };
  const right = Buffer.concat([u32(0), ...job.tests.map((one) => outcomeOf(one.stdin))]);
  const body = change.body ? change.body(right) : right;
  const signature = createHmac("sha256", Buffer.from(stdin!, "hex")).update(body).digest();
  const answer: Value = {
    status: "Success",
    message: "",
    compile_result: null,
    run_result: { status: "Finished", execution_time: 0.1, return_code: 0, stdout: "", stderr: "" },
    executor_pod_name: null,
    files: { "whetstone-result.bin": Buffer.concat([signature, body]).toString("base64") },
  };
  return change.answer ? change.answer(answer) : answer;
}

beforeAll(async () => {
  server = createServer((incoming, response) => {
    const pieces: Buffer[] = [];
    incoming.on("data", (piece: Buffer) => pieces.push(piece));
    incoming.on("end", () => {
      response.setHeader("content-type", "application/json");
      if (incoming.method === "GET") response.end('"pong"');
      else {
        const request = JSON.parse(Buffer.concat(pieces).toString()) as RunCodeRequest;
        response.end(change.text ?? JSON.stringify(answerTo(request)) ?? "");
      }
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  sandbox = await openFusion({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, retryPausesS: [] });
  grader = createGrader({ sandbox, cacheSize: 0 });
});
afterAll(async () => {
  await sandbox?.close();
  server?.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

const problem = { tests: normalizeTests({ inputs: ["1\n", "2\n"], outputs: ["1\n", "2\n"] }).tests };
async function graded(changed: Change) {
  change = changed;
  try {
    return await grader.grade({ problem, code: "print(input())" });
  } finally {
    change = {};
  }
}

/** With one field set, or without it. */
const withField =
  (path: readonly string[], value: Value | undefined) =>
  (whole: Value): Value => {
    const copy = structuredClone(whole);
    let parent = copy as { [key: string]: Value };
    for (const key of path.slice(0, -1)) parent = parent[key] as { [key: string]: Value };
    if (value === undefined) delete parent[path.at(-1)!];
    else parent[path.at(-1)!] = value;
    return copy;
  };
const file = ["files", "whetstone-result.bin"];

test("a server that answers rightly is believed", async () => {
  expect(await graded({})).toMatchObject({ verdict: "pass", passed: 2 });
});

test.each<[what: string, change: Change]>([
  ["the file is a number", { answer: withField(file, 5) }],
  ["the file is null", { answer: withField(file, null) }],
  ["files is a list", { answer: withField(["files"], [null]) }],
  ["stderr is a number", { answer: withField(["run_result", "stderr"], 5) }],
  ["the result is a text", { answer: withField(["run_result"], "ok") }],
  ["the answer is null", { answer: () => null }],
  ["the status is unknown", { answer: withField(["status"], "Done") }],
  ["a signed body of three bytes", { body: () => Buffer.from("abc") }],
  ["a signed body that ends early", { body: (body) => body.subarray(0, -1) }],
  ["a length of 2^63", { body: (body) => Buffer.concat([body.subarray(0, 4), Buffer.alloc(8, 0x7f)]) }],
  ["outcomes of more tests than were sent", { body: (body) => Buffer.concat([body, body.subarray(4)]) }],
  ["a head that is no object", { head: () => "x" }],
  ["an unknown status of a test", { head: withField(["status"], "bogus") }],
  ["no stderr of a test", { head: withField(["stderrTail"], undefined) }],
  ["an exit code that is a text", { head: withField(["exitCode"], "0") }],
  ["an output longer than the message", { head: withField(["stdoutBytes"], 99) }],
  ["a negative length", { head: withField(["frameBytes"], -1) }],
  ["a time that is no number", { head: withField(["wallMs"], null) }],
])("%s: ungraded, and it is said why", async (_, changed) => {
  const result = await graded(changed);
  expect(result).toMatchObject({ verdict: "ungraded", status: "sandbox_error", reward: null });
  expect(result.message).toMatch(/^Sandbox Fusion .*\. [A-Z]/s);
});

// Built by a parser, these hold up the event loop for a minute and take gigabytes.
const brackets = "[".repeat(30_000_000);
test.each<[what: string, change: Change, why: RegExp]>([
  ["an answer of brackets", { text: brackets }, /too large: it is nested deeper/],
  ["an answer of values", { text: `[${"0,".repeat(30_000_000)}0]` }, /too large: it has more than/],
  ["a head of brackets", { body: headOfBrackets }, /too large: it is nested deeper/],
])("%s is looked at before it is parsed", async (_, changed, why) => {
  const result = await graded(changed);
  expect(result).toMatchObject({ verdict: "ungraded", status: "sandbox_error", reward: null });
  expect(result.message).toMatch(why);
});

function headOfBrackets(): Buffer {
  const head = Buffer.from(brackets);
  return Buffer.concat([u32(0), u64(4 + head.length), u32(head.length), head]);
}

/** Somewhere in a value another one, or nothing. */
const elsewhere = fc
  .tuple(fc.array(fc.nat(20), { minLength: 1, maxLength: 4 }), fc.option(fc.jsonValue({ maxDepth: 2 })), fc.boolean())
  .map(([steps, value, drops]) => (whole: Value): Value => {
    const copy = structuredClone(whole);
    let parent: Value = copy;
    for (const [index, step] of steps.entries()) {
      if (typeof parent !== "object" || parent === null) break;
      const keys = Object.keys(parent);
      const key = keys[step % Math.max(1, keys.length)];
      if (key === undefined) break;
      const holder = parent as { [key: string]: Value };
      const next = holder[key]!;
      if (index < steps.length - 1 && typeof next === "object" && next !== null) parent = next;
      else if (drops) delete holder[key];
      else holder[key] = value as Value;
      if (parent !== next) break;
    }
    return copy;
  });
const bytes = fc
  .tuple(fc.array(fc.tuple(fc.nat(), fc.nat(255)), { maxLength: 4 }), fc.nat(40), fc.uint8Array({ maxLength: 20 }))
  .map(([flips, cut, tail]) => (body: Buffer): Buffer => {
    const copy = Buffer.concat([body.subarray(0, Math.max(0, body.length - cut)), tail]);
    for (const [at, value] of flips) if (copy.length > 0) copy[at % copy.length] = value;
    return copy;
  });

test("whatever is changed in an answer, grading gives a result that says what it is", async () => {
  const anything: fc.Arbitrary<Change> = fc.oneof(
    fc.record({ answer: elsewhere }),
    fc.record({ answer: fc.jsonValue({ maxDepth: 3 }).map((value) => () => value as Value) }),
    fc.record({ head: elsewhere }),
    fc.record({ body: bytes }),
  );
  const counts: Record<string, number> = {};
  await fc.assert(
    fc.asyncProperty(anything, async (changed) => {
      const result = await graded(changed);
      counts[result.verdict] = (counts[result.verdict] ?? 0) + 1;
      expect(gradeStatuses).toContain(result.status);
      expect(result.reward === null).toBe(result.verdict === "ungraded");
      if (result.verdict === "ungraded") expect(result.message).toMatch(/Sandbox Fusion/);
    }),
    { numRuns: 400 },
  );
  expect(counts["ungraded"]).toBeGreaterThan(50);
}, 60_000);
