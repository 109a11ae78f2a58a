// Problems from every kind of source, through the real reader of tests.
import { appendFileSync, mkdirSync, readdirSync, rmSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import fc from "fast-check";
import { parquetWriteBuffer } from "hyparquet-writer";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import {
  deepcoderId,
  describeSummary,
  epochOrder,
  type LoadOptions,
  loadDataset,
  type Problem,
  type TestsCheck,
} from "../../src/data/index.ts";
import { normalizeTests } from "../../src/grading/index.ts";
import { Hub } from "../../src/hub/hub.ts";
import { temporaryFolders } from "../support/folders.ts";
import { deepcoderFiles } from "./deepcoder.ts";
import { type StandInHub, startHub } from "./hub-stand-in.ts";

fc.configureGlobal({ seed: 1 });

const newFolder = temporaryFolders();

const checkTests: TestsCheck = (tests, context) => {
  const { reason, tests: normalized } = normalizeTests(tests, context);
  const first = normalized[0];
  return { reason, facts: first?.kind === "functional" ? { call: first.functionName } : {} };
};

/** Loads with a cache of its own. */
function load(specification: string, options: Partial<LoadOptions> = {}) {
  return loadDataset(specification, { split: "train", checkTests, indexFolder: newFolder(), ...options });
}

function writeLines(path: string, rows: unknown[]): string {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, rows.map((row) => `${typeof row === "string" ? row : JSON.stringify(row)}\n`).join(""));
  return path;
}

const goodTests = JSON.stringify([{ input: "1", output: "1", testtype: "stdin" }]);
const row = (id: string, more: object = {}) => ({ id, problem: `Problem ${id}`, tests: goodTests, ...more });

describe("DeepCoder from the hub", () => {
  let standIn: StandInHub;
  let hub: Hub;
  beforeEach(async () => {
    standIn = await startHub([
      { name: `datasets/${deepcoderId}`, files: deepcoderFiles({ largeTestsBytes: 100_000 }), token: "hf_x" },
    ]);
    hub = new Hub({ endpoint: standIn.endpoint, token: "hf_x", cacheFolder: newFolder(), retryDelayMs: 1 });
  });
  afterEach(() => standIn.close());

  test("train is primeintellect, taco and lcbv5, without what cannot be graded", async () => {
    const progress: string[] = [];
    const dataset = await load("deepcoder", { hub, onProgress: (event) => progress.push(event.stage) });
    expect(dataset.summary).toEqual({
      read: 19,
      kept: 12,
      dropped: { bad_tests: 1, no_tests: 3, no_question: 2, no_function_name: 1 },
      firstDropped: expect.objectContaining({
        no_question: expect.stringMatching(/\.parquet, row 3: problem is empty/),
      }),
      bySource: { primeintellect: 4, taco: 5, lcbv5: 3 },
    });
    expect(describeSummary(dataset.summary).split("\n")[0]).toBe(
      "12 problems (5 taco, 4 primeintellect, 3 lcbv5); 7 of 19 rows left out: 3 no_tests, 2 no_question, 1 bad_tests, 1 no_function_name",
    );
    expect(new Set(progress)).toEqual(new Set(["download", "read"]));
    // Rows are numbered over all files of their part.
    expect(dataset.problems.map((problem) => problem.id).slice(0, 5)).toEqual([
      "primeintellect/train/0",
      "primeintellect/train/1",
      "primeintellect/train/2",
      "primeintellect/train/3",
      "taco/train/0",
    ]);
  });

  test("test is codeforces and lcbv5, in file order", async () => {
    const dataset = await load("deepcoder", { hub, split: "test" });
    expect(dataset.batch(0, 6).map((problem) => problem.id)).toEqual([
      "codeforces/test/0",
      "codeforces/test/1",
      "lcbv5/test/0",
      "lcbv5/test/1",
      "lcbv5/test/2",
      "codeforces/test/0",
    ]);
  });

  test("every problem's tests, starter code, metadata and solutions come back whole", async () => {
    for (const split of ["train", "test"] as const) {
      const dataset = await load("deepcoder", { hub, split });
      for (const problem of dataset.problems) {
        const { tests, reason } = normalizeTests(await problem.loadTests(), problem);
        expect(reason, problem.id).toBeNull();
        expect(tests.length).toBeGreaterThan(0);
        expect(Buffer.byteLength(await problem.loadTests())).toBe(problem.testsBytes);
      }
      const functional = dataset.problems.find(
        (problem) => problem.source === "lcbv5" && problem.starterCode !== null,
      )!;
      expect(functional.metadata).toEqual({ func_name: "twice" });
      expect(functional.facts).toEqual({ call: "twice" });
    }
    const dataset = await load("deepcoder", { hub });
    expect(await dataset.byId("primeintellect/train/1")!.loadSolutions()).toEqual(["def twice(x):\n    return 2 * x"]);
    expect(await dataset.byId("taco/train/0")!.loadSolutions()).toEqual([]);
  });

  test("a second load downloads nothing and reads no tests again when the rules are the same", async () => {
    const indexFolder = newFolder();
    const first = await load("deepcoder", { hub, indexFolder, checkVersion: "1" });
    const sent = standIn.sentBytes;
    let checked = 0;
    const counting: TestsCheck = (tests, context) => {
      checked++;
      return checkTests(tests, context);
    };
    const second = await load("deepcoder", { hub, indexFolder, checkVersion: "1", checkTests: counting });
    expect(standIn.sentBytes).toBe(sent);
    expect(checked).toBe(0);
    expect(second.fingerprint).toBe(first.fingerprint);
    expect(second.summary).toEqual(first.summary);
    expect(second.problems.map(({ facts }) => facts)).toEqual(first.problems.map(({ facts }) => facts));
    expect(await second.problems.at(-1)!.loadTests()).toBe(await first.problems.at(-1)!.loadTests());
    await load("deepcoder", { hub, indexFolder, checkVersion: "2", checkTests: counting });
    expect(checked).toBeGreaterThan(10);
  });

  test("a repository without the expected files is named", async () => {
    const other = await startHub([{ name: `datasets/${deepcoderId}`, files: { "README.md": "#" } }]);
    const elsewhere = new Hub({ endpoint: other.endpoint, cacheFolder: newFolder() });
    await expect(load("deepcoder", { hub: elsewhere })).rejects.toMatchObject({
      code: "data/not-found",
      message: expect.stringContaining("primeintellect/train"),
    });
    await other.close();
  });

  test("any data set of the hub can be named", async () => {
    const other = await startHub([
      {
        name: "datasets/me/mine",
        files: { "data/train.jsonl": JSON.stringify(row("a")), "data/test.jsonl": JSON.stringify(row("b")) },
      },
    ]);
    const elsewhere = new Hub({ endpoint: other.endpoint, cacheFolder: newFolder() });
    expect((await load("me/mine", { hub: elsewhere, split: "test" })).problems.map(({ id }) => id)).toEqual(["b"]);
    await other.close();
  });
});

describe("local files", () => {
  test("JSON lines: tests as text or as values, blank lines, no newline at the end", async () => {
    const path = writeLines(join(newFolder(), "mine.jsonl"), [
      row("text"),
      row("value", { tests: [{ input: "1", output: "1", weight: 1.0 }] }),
      "",
      {
        question: "No id.",
        prompt: "ignored",
        tests: undefined,
        ground_truth: goodTests,
        metadata: '{"a": 1}',
        starter_code: " \n",
      },
    ]);
    appendFileSync(
      path,
      '{"id": 7, "prompt": "Last.", "tests": {"inputs": ["1.0"], "outputs": [2.50]}, "source": "taco", "solutions": ["s"]}',
    );
    const { problems } = await load(path);
    expect(problems.map(({ id, source }) => [id, source])).toEqual([
      ["text", "mine"],
      ["value", "mine"],
      ["mine/0", "mine"],
      ["7", "taco"],
    ]);
    expect(problems[2]).toMatchObject({ question: "No id.", metadata: { a: 1 }, starterCode: null });
    // Numbers keep their spelling.
    expect(await problems[3]!.loadTests()).toBe('{"inputs": ["1.0"], "outputs": [2.50]}');
    expect(await problems[3]!.loadSolutions()).toEqual(["s"]);
    expect(await problems[0]!.loadTests()).toBe(goodTests);
  });

  test("what cannot be used is counted by reason", async () => {
    const path = writeLines(join(newFolder(), "mixed.jsonl"), [
      row("good"),
      row("good"),
      row("blocked"),
      row("blank", { problem: " " }),
      row("none", { tests: null }),
      row("bad", { tests: "nonsense" }),
      row("big", { tests: JSON.stringify([{ input: "x".repeat(500), output: "1" }]) }),
      row("long", { problem: "long" }),
      '{"id": "torn", "problem": "x", "tests": ',
      "[1, 2]",
    ]);
    const { summary, problems } = await load(path, {
      maxTestsBytes: 300,
      blockedIds: ["blocked"],
      promptFits: async ({ question }: Problem) => question !== "long",
    });
    expect(problems.map(({ id }) => id)).toEqual(["good"]);
    expect(summary.dropped).toEqual({
      duplicate_id: 1,
      blocked: 1,
      no_question: 1,
      no_tests: 1,
      bad_tests: 1,
      tests_too_big: 1,
      prompt_too_long: 1,
      bad_row: 2,
    });
  });

  test("a folder: the files of the split, else all of them; several sources with commas", async () => {
    const folder = newFolder();
    writeLines(join(folder, "b", "train-00001-of-00002.jsonl"), [row("2")]);
    writeLines(join(folder, "b", "train-00000-of-00002.jsonl"), [row("1")]);
    writeLines(join(folder, "b", "test.jsonl"), [row("3")]);
    const plain = newFolder();
    writeLines(join(plain, "y.jsonl"), [row("5")]);
    writeLines(join(plain, "x.ndjson"), [row("4")]);
    const ids = async (specification: string, split: "train" | "test") =>
      (await load(specification, { split })).problems.map(({ id }) => id);
    expect(await ids(folder, "train")).toEqual(["1", "2"]);
    expect(await ids(folder, "test")).toEqual(["3"]);
    expect(await ids(`${plain}, ${folder}`, "test")).toEqual(["4", "5", "3"]);
    expect((await load(folder)).problems[0]!.source).toBe("b");
  });

  test("what cannot be found or read says so", async () => {
    const folder = newFolder();
    const code = (name: string) => expect.objectContaining({ code: `data/${name}` });
    await expect(load(join(folder, "none.jsonl"))).rejects.toThrow(code("not-found"));
    await expect(load("dep-coder")).rejects.toThrow(code("not-found"));
    await expect(load(" ")).rejects.toThrow(code("not-found"));
    await expect(load(folder)).rejects.toThrow(code("not-found"));
    writeLines(join(folder, "test.jsonl"), [row("a")]);
    await expect(load(folder)).rejects.toThrow(/only test.jsonl/);
    writeFileSync(join(folder, "x.csv"), "");
    await expect(load(join(folder, "x.csv"))).rejects.toThrow(code("bad-file"));
    writeFileSync(join(folder, "torn.parquet"), Object.values(deepcoderFiles())[3]!.slice(0, 400));
    await expect(load(join(folder, "torn.parquet"))).rejects.toThrow(code("bad-file"));
    await expect(load(writeLines(join(folder, "empty.jsonl"), [row("a", { tests: null })]))).rejects.toThrow(
      code("empty"),
    );
  });

  test("Parquet with tests as lists of structs, or under another name, is read too", async () => {
    const path = join(newFolder(), "nested.parquet");
    const tests = [
      [{ input: "1", output: "1" }],
      [
        { input: "2", output: "2" },
        { input: "3", output: "3" },
      ],
    ];
    const text = (name: string) =>
      ({ name, type: "BYTE_ARRAY", converted_type: "UTF8", repetition_type: "OPTIONAL" }) as const;
    const buffer = parquetWriteBuffer({
      columnData: [
        { name: "question", data: ["a", "b"] },
        { name: "ground_truth", data: tests },
      ],
      schema: [
        { name: "root", num_children: 2 },
        text("question"),
        { name: "ground_truth", num_children: 1, converted_type: "LIST", repetition_type: "OPTIONAL" },
        { name: "list", num_children: 1, repetition_type: "REPEATED" },
        { name: "element", num_children: 2, repetition_type: "OPTIONAL" },
        text("input"),
        text("output"),
      ],
    });
    writeFileSync(path, Buffer.from(buffer));
    const { problems } = await load(path);
    expect(JSON.parse(await problems[1]!.loadTests())).toEqual(tests[1]);
  });
});

describe("the starter set", () => {
  test.each(["train", "test"] as const)("loads, and every row of %s can be used", async (split) => {
    const { summary, problems } = await load("starter", { split });
    expect(summary.kept).toBe(summary.read);
    expect((await problems[0]!.loadTests()).length).toBe(problems[0]!.testsBytes);
  });
});

describe("memory", () => {
  /** Rows of about a megabyte each in one page, as some writers leave them. */
  function writeOnePage(path: string, rows: number): string[] {
    const tests = Array.from({ length: rows }, (_, index) =>
      JSON.stringify([{ input: `${index}`.repeat(1_000_000), output: "1" }]),
    );
    const columnData = [
      { name: "problem", data: tests.map((_, index) => `Problem ${index}`), type: "STRING" as const },
      { name: "tests", data: [...tests.slice(0, 3), null, ...tests.slice(3)], type: "STRING" as const },
    ];
    columnData[0]!.data.push("Without tests");
    writeFileSync(path, Buffer.from(parquetWriteBuffer({ columnData, pageSize: 1e9, rowGroupSize: 1e6 })));
    return tests;
  }

  test("rows that share a large page are copied to disk once, and read from there", async () => {
    const path = join(newFolder(), "one-page.parquet");
    const tests = writeOnePage(path, 10);
    const indexFolder = newFolder();
    const options = { indexFolder, checkVersion: "1", checkTests: () => ({ reason: null }) };
    for (const dataset of [await load(path, options), await load(path, options)]) {
      expect(dataset.summary.dropped).toEqual({ no_tests: 1 });
      for (const [index, problem] of dataset.problems.entries()) expect(await problem.loadTests()).toBe(tests[index]);
    }
    const [spilled] = readdirSync(indexFolder).filter((name) => name.endsWith(".tests"));
    expect(statSync(join(indexFolder, spilled!)).size).toBe(tests.join("").length);
    // A damaged copy is made again; one that is gone during a run is an error with a name.
    truncateSync(join(indexFolder, spilled!), 1000);
    const dataset = await load(path, options);
    expect(await dataset.problems[9]!.loadTests()).toBe(tests[9]);
    rmSync(join(indexFolder, spilled!));
    await expect(dataset.problems[9]!.loadTests()).rejects.toMatchObject({ code: "data/cache" });
  });

  test("rows that share a large dictionary are stored once each", async () => {
    const texts = ["a", "b", "c"].map((letter) => JSON.stringify([{ input: letter.repeat(4_000_000), output: "1" }]));
    const data = Array.from({ length: 12 }, (_, index) => (index === 5 ? null : texts[index % 3]!));
    const path = join(newFolder(), "dictionary.parquet");
    const columnData = [
      { name: "problem", data: data.map((_, index) => `Problem ${index}`), type: "STRING" as const },
      { name: "tests", data, type: "STRING" as const },
    ];
    writeFileSync(path, Buffer.from(parquetWriteBuffer({ columnData, rowGroupSize: 1e6 })));
    const indexFolder = newFolder();
    const { problems, summary } = await load(path, { indexFolder, checkTests: () => ({ reason: null }) });
    expect(summary.dropped).toEqual({ no_tests: 1 });
    const expected = data.filter((text) => text !== null);
    for (const [index, problem] of problems.entries())
      expect((await problem.loadTests()) === expected[index]).toBe(true);
    const [spilled] = readdirSync(indexFolder).filter((name) => name.endsWith(".tests"));
    expect(statSync(join(indexFolder, spilled!)).size).toBe(texts.join("").length);
    // Values over the limit are not even copied.
    const limited = newFolder();
    await expect(load(path, { indexFolder: limited, maxTestsBytes: 1_000_000 })).rejects.toThrow(/11 tests_too_big/);
    expect(readdirSync(limited)).toEqual([]);
  });

  test("a row that fills its page alone is read from its file", async () => {
    const path = join(newFolder(), "lcbv5-train.parquet");
    writeFileSync(path, deepcoderFiles({ largeTestsBytes: 12_000_000 })["lcbv5/test-00000-of-00001.parquet"]!);
    const indexFolder = newFolder();
    const large = (await load(path, { indexFolder, checkVersion: "1" })).problems.at(-1)!;
    expect(large.testsBytes).toBeGreaterThan(12_000_000);
    const text = await large.loadTests();
    expect(text.length).toBe(large.testsBytes);
    expect(normalizeTests(text).tests.length).toBeGreaterThan(100);
    expect(readdirSync(indexFolder).filter((name) => name.endsWith(".tests"))).toEqual([]);
  });

  test("a data set of large rows does not stay in memory", async () => {
    const row8 = JSON.stringify([{ input: "7".repeat(8_000_000), output: "1" }]);
    const path = join(newFolder(), "large.jsonl");
    writeLines(path, []);
    for (let index = 0; index < 6; index++)
      appendFileSync(path, `${JSON.stringify(row(`${index}`, { tests: row8 }))}\n`);
    const collect = await garbageCollector();
    const heldBytes = () => process.memoryUsage().heapUsed + process.memoryUsage().arrayBuffers;
    await collect(() => true);
    const before = heldBytes();
    const dataset = await load(path, {
      checkTests: (tests) => ({ reason: tests.length > 8_000_000 ? null : "bad_tests" }),
    });
    // 48 MB of tests went by; what stays is less than one row of them.
    expect(await collect(() => heldBytes() - before < 8_000_000)).toBe(true);
    expect(dataset.size).toBe(6);
  });
});

/** Collects garbage until `isDone`, a few times at most: buffers are given back a little after the collection that finds them. */
async function garbageCollector(): Promise<(isDone: () => boolean) => Promise<boolean>> {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  return async (isDone) => {
    for (let round = 0; round < 20; round++) {
      collect();
      await sleep(10);
      if (round >= 3 && isDone()) return true;
    }
    return false;
  };
}

describe("order", () => {
  const sizes = fc.integer({ min: 1, max: 300 });
  const seeds = fc.integer({ min: 0, max: 2 ** 31 });

  test("is a permutation, the same for the same seed and epoch, another for others", () => {
    fc.assert(
      fc.property(sizes, seeds, fc.nat(20), (size, seed, epoch) => {
        const order = epochOrder(size, seed, epoch);
        expect(Array.from(order).sort((a, b) => a - b)).toEqual(Array.from({ length: size }, (_, index) => index));
        expect(epochOrder(size, seed, epoch)).toEqual(order);
        if (size > 30) {
          expect(epochOrder(size, seed + 1, epoch)).not.toEqual(order);
          expect(epochOrder(size, seed, epoch + 1)).not.toEqual(order);
        }
      }),
    );
  });

  test("is pinned: a change would make checkpoints point at other problems", () => {
    expect(Array.from(epochOrder(10, 0, 0))).toEqual([0, 3, 2, 7, 1, 4, 5, 8, 6, 9]);
    expect(Array.from(epochOrder(10, 0, 1))).toEqual([7, 4, 5, 9, 6, 2, 0, 1, 3, 8]);
  });

  test("every position falls once into each place", () => {
    // A biased shuffle (swapping with any position) shows up here: 24 orders of 4, each expected 100 times in 2400.
    const counts = new Map<string, number>();
    for (let seed = 0; seed < 2400; seed++) {
      const key = epochOrder(4, seed, 0).join();
      counts.set(key, (counts.get(key) ?? 0) + 1);
    }
    expect(counts.size).toBe(24);
    const chiSquare = [...counts.values()].reduce((total, count) => total + (count - 100) ** 2 / 100, 0);
    expect(chiSquare).toBeLessThan(50);
  });

  test("batches wrap around, use every problem once an epoch, and depend on offset and seed alone", async () => {
    const path = writeLines(
      join(newFolder(), "ten.jsonl"),
      Array.from({ length: 10 }, (_, index) => row(`${index}`)),
    );
    const dataset = await load(path, { seed: 3 });
    const ids = (problems: Problem[]) => problems.map(({ id }) => id);
    const all = ids(dataset.batch(0, 40));
    for (let epoch = 0; epoch < 4; epoch++) {
      expect(new Set(all.slice(10 * epoch, 10 * epoch + 10)).size).toBe(10);
      expect(dataset.epochOf(10 * epoch + 9)).toBe(epoch);
    }
    expect(all.slice(0, 10)).not.toEqual(all.slice(10, 20));
    const again = await load(path, { seed: 3 });
    fc.assert(
      fc.property(fc.nat(35), fc.integer({ min: 1, max: 5 }), (offset, count) => {
        expect(ids(again.batch(offset, count))).toEqual(all.slice(offset, offset + count));
      }),
    );
    expect(ids((await load(path, { seed: 4 })).batch(0, 10))).not.toEqual(all.slice(0, 10));
  });

  test("the fingerprint follows content, order and filters, not places and seeds", async () => {
    const rows = [row("a"), row("b"), row("c")];
    const first = writeLines(join(newFolder(), "x.jsonl"), rows);
    const copy = writeLines(join(newFolder(), "x.jsonl"), rows);
    const changed = writeLines(join(newFolder(), "x.jsonl"), [rows[0], rows[1], row("c", { problem: "Other" })]);
    const { fingerprint } = await load(first);
    expect(fingerprint).toMatch(/^sha256:[0-9a-f]{32}$/);
    expect((await load(copy, { seed: 9 })).fingerprint).toBe(fingerprint);
    expect((await load(changed)).fingerprint).not.toBe(fingerprint);
    expect((await load(first, { blockedIds: ["b"] })).fingerprint).not.toBe(fingerprint);
  });
});
