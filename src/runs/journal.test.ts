import { appendFileSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { foldersInMemory } from "../../test/support/folders.ts";
import { log, rewarded, submitted } from "../../test/support/synthetic-run.ts";
import { readJsonLines } from "../core/jsonl.ts";
import type { Arrays, EventOf, NewEvent, RunEvent } from "./events.ts";
import { decodeArrays, decodeHeader, decodeJson, encodeFrame, headerBytes } from "./frames.ts";
import { Journal } from "./journal.ts";
import { readJournal } from "./read-journal.ts";
import { RunView } from "./view.ts";

const newFolder = foldersInMemory();
const segment = (folder: string) => join(folder, "journal", "000000.wj");

const sampled = (batch: number, group: number, phase: "train" | "eval" = "train"): NewEvent => ({
  type: "group-sampled",
  phase,
  batch,
  group,
  policy: batch,
  problem: `p${group}`,
  source: "s",
  datasetIndex: group,
  seed: 1,
  temperature: 1,
  promptTokens: 2,
  cachedTokens: 0,
  samples: [{ tokens: 3, truncated: false, text: "print(1)" }],
  start: 1,
  end: 2,
});
const arrays = { prompt: Int32Array.of(1, 2), tokens: Int32Array.of(3, 4, 5), logprobs: Float32Array.of(-1, -2, -0.5) };
const graded = (batch: number, group: number, phase: "train" | "eval" = "train"): NewEvent => ({
  type: "graded",
  phase,
  batch,
  group,
  sample: 0,
  grade: {
    verdict: "pass",
    status: "pass",
    reward: 1,
    formatOk: true,
    passed: 1,
    total: 1,
    ran: 1,
    wallMs: 3,
    queueMs: 1,
    cached: false,
    flags: [],
    codeHash: "h",
  },
  start: 2,
  end: 3,
});
/** As large as a group of long answers: worth deflating, and slow enough to write for others to wait. */
const largeArrays = (fill: number) => ({
  prompt: Int32Array.of(1),
  tokens: new Int32Array(10_000).fill(fill),
  logprobs: new Float32Array(10_000).fill(-fill),
});

async function write(folder: string, ...events: (NewEvent | [NewEvent, Arrays])[]): Promise<void> {
  const journal = await Journal.open(folder);
  await Promise.all(events.map((item) => (Array.isArray(item) ? journal.append(...item) : journal.append(item))));
  await journal.close();
}
const events = (folder: string) => [...readJournal(folder)].map(({ event }) => event);
const messages = (folder: string) => events(folder).map((event) => (event.type === "log" ? event.message : event.type));

describe("frames", () => {
  test("give back any text and any arrays", () => {
    const floats = fc.float32Array({ maxLength: 50 });
    const integers = fc.int32Array({ maxLength: 3000 });
    fc.assert(
      fc.property(fc.string({ maxLength: 3000 }), integers, floats, (text, tokens, logprobs) => {
        const bytes = Buffer.concat(encodeFrame(text, { tokens, logprobs }));
        const header = decodeHeader(bytes)!;
        const json = bytes.subarray(headerBytes, headerBytes + header.jsonBytes);
        expect(decodeJson(header, json)).toBe(Buffer.from(text).toString());
        const decoded = decodeArrays(header, bytes.subarray(headerBytes + header.jsonBytes))!;
        expect([...decoded["tokens"]!]).toEqual([...tokens]);
        expect(Buffer.from(decoded["logprobs"]!.buffer)).toEqual(Buffer.from(logprobs.slice().buffer));
      }),
    );
  });

  test("with any changed bit are not taken for whole", () => {
    const whole = Buffer.concat(encodeFrame("some text", { tokens: Int32Array.of(1, 2, 3) }));
    for (let bit = 0; bit < 8 * whole.length; bit++) {
      const bytes = Buffer.from(whole);
      bytes[bit >> 3]! ^= 1 << (bit & 7);
      const header = decodeHeader(bytes);
      const intact =
        header !== undefined &&
        decodeJson(header, bytes.subarray(headerBytes, headerBytes + header.jsonBytes)) !== undefined &&
        decodeArrays(header, bytes.subarray(headerBytes + header.jsonBytes)) !== undefined;
      expect(intact).toBe(false);
    }
  });
});

describe("the journal", () => {
  test("gives back what was appended, in order, with arrays, across processes' lives", async () => {
    const folder = newFolder();
    await write(folder, log("one"), [sampled(0, 0), arrays]);
    await write(folder, log("two"));
    expect(messages(folder)).toEqual(["one", "group-sampled", "two"]);
    const entry = [...readJournal(folder)][1]!;
    expect(entry.arrays()).toEqual(arrays);
    expect(entry.event.at).toBeGreaterThan(Date.now() - 60_000);
  });

  test("tells listeners of an event once it is on disk, in order", async () => {
    const folder = newFolder();
    const journal = await Journal.open(folder);
    const heard: string[] = [];
    journal.listen((event) => {
      heard.push(event.type === "log" ? event.message : event.type);
      expect(messages(folder).slice(0, heard.length)).toEqual(heard);
    });
    await Promise.all(["a", "b", "c"].map((text) => journal.append(log(text))));
    await journal.append(log("d"));
    expect(heard).toEqual(["a", "b", "c", "d"]);
    expect(journal.bytes).toBe(readFileSync(segment(folder)).length);
    expect(journal.appendP99Ms).toBeGreaterThan(0);
    await journal.close();
  });

  test("cuts off a torn end at any byte, and goes on", async () => {
    const folder = newFolder();
    await write(folder, log("one"), log("two"));
    const whole = readFileSync(segment(folder));
    await write(folder, [sampled(0, 0), arrays]);
    const longer = readFileSync(segment(folder));
    for (let cut = whole.length + 1; cut < longer.length; cut += 7) {
      writeFileSync(segment(folder), longer.subarray(0, cut));
      expect(messages(folder)).toEqual(["one", "two"]);
    }
    await write(folder, log("three"));
    expect(messages(folder)).toEqual(["one", "two", "three"]);
  });

  test("cuts off a last record whose bytes never reached the disk", async () => {
    const folder = newFolder();
    await write(folder, log("one"), log("two"));
    appendFileSync(segment(folder), Buffer.alloc(4096));
    await write(folder, log("three"));
    expect(messages(folder)).toEqual(["one", "two", "three"]);
  });

  test("names damage in the middle with its file and offset, and changes nothing", async () => {
    const folder = newFolder();
    await write(folder, log("one"));
    const offset = readFileSync(segment(folder)).length;
    await write(folder, log("two"), log("three"));
    const bytes = readFileSync(segment(folder));
    bytes[offset + 40]! ^= 0xff;
    writeFileSync(segment(folder), bytes);
    await expect(Journal.open(folder)).rejects.toMatchObject({
      code: "runs/journal-damaged",
      message: expect.stringContaining(`000000.wj is damaged at byte ${offset}`),
    });
    expect(readFileSync(segment(folder))).toEqual(bytes);
  });

  test("an event that could not be read back is refused, and the journal goes on without it", async () => {
    const folder = newFolder();
    const journal = await Journal.open(folder);
    const bad = { ...sampled(0, 0), problem: 7 } as unknown as NewEvent;
    await expect(journal.append(bad, arrays)).rejects.toMatchObject({
      code: "runs/bad-event",
      message: expect.stringContaining("A group-sampled event cannot be written: problem is 7 ("),
    });
    const figures = rewarded(0, { loss: Number.NaN, "optim/grad_norm": Number.POSITIVE_INFINITY });
    await Promise.all([journal.append(log("after")), journal.append(figures)]);
    await journal.close();
    expect(messages(folder)).toEqual(["after", "step-done"]);
  });

  test("an event that is none of this version's is an error, not a crash later", async () => {
    const folder = newFolder();
    await write(folder, log("one"));
    const json = JSON.stringify({ type: "saved", at: 1, start: 0, end: 1, record: { name: "a", dataset_offset: 0 } });
    appendFileSync(segment(folder), Buffer.concat(encodeFrame(json, {})));
    appendFileSync(segment(folder), Buffer.concat(encodeFrame(JSON.stringify({ ...log("two"), at: 1 }), {})));
    expect(() => events(folder)).toThrow(/is no event of this version.*step/s);
  });
});

describe("the files made from it", () => {
  const lines = (folder: string, name: string) => readJsonLines(join(folder, name)) as Record<string, unknown>[];
  const evaluated = (step: number, final = false): NewEvent => ({
    type: "evaluated",
    step,
    final,
    outcomes: [],
    metrics: { "eval/pass@1": 0.5 },
    start: 0,
    end: 1,
  });

  test("a step's record waits for its evaluation, so that records stay in the order of steps", async () => {
    const folder = newFolder();
    await write(folder, { type: "evaluation-started", step: 0 }, rewarded(0), rewarded(1));
    expect(lines(folder, "metrics.jsonl")).toEqual([]);
    await write(folder, evaluated(0), rewarded(2), evaluated(3, true));
    expect(lines(folder, "metrics.jsonl")).toEqual([
      { step: 0, mean_reward: 0, "eval/pass@1": 0.5 },
      { step: 1, mean_reward: 0.1 },
      { step: 2, mean_reward: 0.2 },
      { step: 3, "eval/pass@1": 0.5 },
    ]);
  });

  test("what an interrupted process had to leave out follows in a record of its own", async () => {
    const folder = newFolder();
    await write(folder, { type: "evaluation-started", step: 0 }, rewarded(0), {
      type: "stopped",
      outcome: "interrupted",
    });
    await write(folder, evaluated(0));
    expect(lines(folder, "metrics.jsonl")).toEqual([
      { step: 0, mean_reward: 0 },
      { step: 0, "eval/pass@1": 0.5 },
    ]);
  });

  test("rollouts have every completion, evaluations every answer", async () => {
    const folder = newFolder();
    await write(folder, [sampled(0, 0), arrays], graded(0, 0), submitted(0), [sampled(4, 0, "eval"), arrays]);
    await write(folder, graded(4, 0, "eval"), evaluated(4));
    const [rollout] = lines(folder, "rollouts/step_000000.jsonl");
    expect(rollout).toMatchObject({ step: 0, problem_id: "p0", reward: 1, advantage: 0.5, response: "print(1)" });
    expect(lines(folder, "evaluations/step_000004.answers.jsonl")[0]).toMatchObject({
      problem_id: "p0",
      verdict: "pass",
    });
  });

  test("long answers stand in them whole, from this process or the one before", async () => {
    const text = "a long answer ".repeat(500);
    const long = (batch: number, group: number) =>
      ({ ...sampled(batch, group), samples: [{ tokens: 3, truncated: false, text }] }) as NewEvent;
    const folder = newFolder();
    const { groups, ...update } = submitted(0) as EventOf<"update-submitted">;
    const both = { ...update, groups: [...groups, { ...groups[0]!, group: 1 }] } as NewEvent;
    await write(folder, [long(0, 0), arrays], graded(0, 0), [long(0, 1), arrays], graded(0, 1), both, [
      long(1, 0),
      arrays,
    ]);
    await write(folder, graded(1, 0), submitted(1));
    const responses = (step: number) =>
      lines(folder, `rollouts/step_00000${step}.jsonl`).map(({ response }) => response);
    expect([responses(0), responses(1)]).toEqual([[text, text], [text]]);
  });

  test("are written anew where they do not say what the journal says", async () => {
    const folder = newFolder();
    await write(folder, log("hello"), rewarded(0), rewarded(1), rewarded(2));
    const whole = Object.fromEntries(
      ["metrics.jsonl", "timing.jsonl", "logs.log"].map((name) => [name, readFileSync(join(folder, name), "utf8")]),
    );
    truncateSync(join(folder, "metrics.jsonl"), 10);
    writeFileSync(join(folder, "timing.jsonl"), '{"broken\n');
    appendFileSync(join(folder, "logs.log"), "half a li");
    const journal = await Journal.open(folder);
    // A file that only lacks its end is not worth a word.
    expect(journal.repaired).toHaveLength(2);
    await journal.close();
    for (const [name, text] of Object.entries(whole)) expect(readFileSync(join(folder, name), "utf8")).toBe(text);
  });

  test("steps that are run again move to a backup, and stand once", async () => {
    const folder = newFolder();
    await write(folder, rewarded(0), rewarded(1), rewarded(2));
    await write(folder, { type: "rewound", to: 1, reason: "test" }, rewarded(1, { mean_reward: 7 }));
    await write(folder);
    expect(lines(folder, "metrics.jsonl").map((record) => [record["step"], record["mean_reward"]])).toEqual([
      [0, 0],
      [1, 7],
    ]);
    expect(lines(folder, "metrics.jsonl.bak").map((record) => record["step"])).toEqual([1, 2]);
    expect(RunView.read(folder).records).toEqual(lines(folder, "metrics.jsonl"));
  });

  test("after going back they have what counts: checkpoints, answers, the evaluation of the policy that was gone back to", async () => {
    const folder = newFolder();
    const saved = (step: number): NewEvent => ({
      type: "saved",
      record: { name: `c${step}`, step, dataset_offset: 8 * step, state_path: `tinker://m/weights/c${step}` },
      start: 0,
      end: 1,
    });
    const answered = (batch: number, text: string): NewEvent =>
      ({ ...sampled(batch, 0), samples: [{ tokens: 3, truncated: false, text }] }) as NewEvent;
    const step = (batch: number, text: string): (NewEvent | [NewEvent, Arrays])[] => [
      [answered(batch, text), arrays],
      graded(batch, 0),
      submitted(batch),
      rewarded(batch),
    ];
    await write(
      folder,
      ...step(0, "a"),
      saved(1),
      evaluated(1),
      ...step(1, "b"),
      saved(2),
      evaluated(2),
      ...step(2, "c"),
    );
    await write(folder, { type: "rewound", to: 1, reason: "test" });
    const names = () => lines(folder, "checkpoints.jsonl").map(({ name }) => name);
    const kept = (kind: string) => readdirSync(join(folder, kind));
    expect(names()).toEqual(["c1"]);
    expect(kept("rollouts")).toEqual(["step_000000.jsonl"]);
    expect(kept("evaluations").filter((name) => !name.includes("answers"))).toEqual(["step_000001.jsonl"]);
    await write(folder, ...step(1, "d"), saved(2));
    // Also where they are made from the journal alone.
    for (const name of ["checkpoints.jsonl", "metrics.jsonl"]) rmSync(join(folder, name));
    await write(folder);
    expect(names()).toEqual(["c1", "c2"]);
    expect(lines(folder, "rollouts/step_000001.jsonl").map(({ response }) => response)).toEqual(["d"]);
    expect(lines(folder, "metrics.jsonl").map((record) => [record["step"], record["eval/pass@1"]])).toEqual([
      [0, undefined],
      [1, 0.5],
    ]);
    expect(RunView.read(folder).records).toEqual(lines(folder, "metrics.jsonl"));
  });

  test("a problem's id stands on one line of logs.log, whatever is in it", async () => {
    const folder = newFolder();
    const groups = [
      {
        batch: 0,
        group: 0,
        problem: "a\n2026 [ERROR] forged\u001b[2J",
        outcome: "mixed",
        skipped: false,
        advantages: [],
        trained: [],
        graded: 0,
        passed: 0,
      },
    ] as const;
    await write(folder, { ...submitted(0), groups } as unknown as NewEvent);
    const text = readFileSync(join(folder, "logs.log"), "utf8");
    expect(text).toContain("step 0 group 0 a\\n2026 [ERROR] forged\\e[2J: mixed");
    expect(text.trimEnd().split("\n")).toHaveLength(1);
  });

  test("degenerate groups are warnings in logs.log, and the server's answers are there", async () => {
    const folder = newFolder();
    const flat = submitted(0) as Extract<RunEvent, { type: "update-submitted" }>;
    flat.groups[0]!.skipped = true;
    await write(folder, [sampled(0, 0), arrays], graded(0, 0), flat, {
      type: "update-done",
      step: 0,
      lossSum: -1.5,
      server: { "optim/grad_norm": 3 },
      start: 0,
      end: 10,
    });
    const text = readFileSync(join(folder, "logs.log"), "utf8");
    expect(text).toMatch(/\[WARNING\] step 0 group 0 p0: mixed, every reward is the same/);
    expect(text).toMatch(/step 0 server: loss:sum -1\.5 .*grad_norm":3/);
  });
});

test("arrays that are given away are moved, and events that come in a crowd are read back as they were", async () => {
  const folder = newFolder();
  const journal = await Journal.open(folder);
  const kept = largeArrays(1);
  await journal.append(sampled(0, 0), kept);
  expect(kept.tokens).toHaveLength(10_000);
  await Promise.all(
    Array.from({ length: 20 }, (_, group) => {
      const given = largeArrays(group);
      const appended = journal.append(sampled(1, group), given, [given.tokens, given.logprobs]);
      expect([given.prompt.length, given.tokens.length, given.logprobs.length]).toEqual([1, 0, 0]);
      return appended;
    }),
  );
  await journal.close();
  const entries = [...readJournal(folder)].filter(({ event }) => event.type === "group-sampled");
  expect(entries.map((entry) => entry.arrays())).toEqual([
    kept,
    ...Array.from({ length: 20 }, (_, group) => largeArrays(group)),
  ]);
});

test("a long journal is cut into segments, and old ones lose their arrays when asked", async () => {
  const folder = newFolder();
  const journal = await Journal.open(folder);
  const big = { ...arrays, tokens: Int32Array.from({ length: 3_000_000 }, () => Math.random() * 2 ** 31) };
  for (let batch = 0; batch < 7; batch++) await journal.append(sampled(batch, 0), big);
  journal.thin(3);
  await journal.close();
  expect(readdirSync(join(folder, "journal"))).toEqual(["000000.wj", "000001.wj"]);
  expect([...readJournal(folder)].map(({ hasArrays }) => hasArrays)).toEqual([
    false,
    false,
    false,
    true,
    true,
    true,
    true,
  ]);
});
