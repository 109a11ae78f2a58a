import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { temporaryFolders } from "../../test/support/folders.ts";
import { dropReasonTexts, normalizeTests, dropReasons as testReasons } from "../grading/index.ts";
import { describeSummary } from "./dataset.ts";
import { describeProblem, dropReasons } from "./left-out.ts";
import { type LoadOptions, loadDataset } from "./load.ts";
import { overlapWarning } from "./overlap.ts";

const folders = temporaryFolders();
const row = (id: string, more: object = {}) =>
  JSON.stringify({ id, question: `q ${id}`, tests: { inputs: ["1"], outputs: ["2"] }, ...more });

function load(content: string | Buffer, options: Partial<LoadOptions> = {}, name = "mine.jsonl") {
  const path = join(folders(), name);
  writeFileSync(path, content);
  return loadDataset(path, {
    split: "train",
    shuffle: false,
    indexFolder: join(path, "..", "indexes"),
    checkTests: (tests, context) => normalizeTests(tests, context),
    explainReason: (reason) => dropReasonTexts[reason as keyof typeof dropReasonTexts],
    ...options,
  });
}
const ids = async (content: string | Buffer) => (await load(content)).problems.map(({ id }) => id);

describe("files as editors write them keep every row", () => {
  test.each([
    ["a byte-order mark", `\uFEFF${row("a")}\n${row("b")}\n`],
    ["CRLF", `${row("a")}\r\n${row("b")}\r\n`],
    ["a byte-order mark and CRLF", `\uFEFF${row("a")}\r\n${row("b")}\r\n`],
    ["no newline at the end", `${row("a")}\n${row("b")}`],
    ["empty lines", `\n\n${row("a")}\n  \n\r\n${row("b")}\n\n`],
    ["a byte-order mark on a line of its own", `\uFEFF\n${row("a")}\n${row("b")}`],
  ])("%s", async (_, content) => {
    const dataset = await load(content);
    expect(dataset.problems.map(({ id }) => id)).toEqual(["a", "b"]);
    expect(dataset.summary.dropped).toEqual({});
    for (const problem of dataset.problems)
      expect(JSON.parse(await problem.loadTests())).toEqual({ inputs: ["1"], outputs: ["2"] });
  });

  test("any mixture of them", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.boolean(),
        fc.array(fc.tuple(fc.constantFrom("\n", "\r\n"), fc.nat(2)), { minLength: 1, maxLength: 6 }),
        async (mark, rows) => {
          const lines = rows.map(([end, blank], index) => `${end.repeat(blank)}${row(`p${index}`)}${end}`);
          const expected = rows.map((_, index) => `p${index}`);
          expect(await ids((mark ? "\uFEFF" : "") + lines.join(""))).toEqual(expected);
        },
      ),
      { numRuns: 25 },
    );
  });

  test("UTF-16 is named", async () => {
    await expect(load(Buffer.from(`\uFEFF${row("a")}`, "utf16le"))).rejects.toMatchObject({
      code: "data/bad-file",
      message: expect.stringMatching(/mine\.jsonl is UTF-16 text\. Save it as UTF-8/),
    });
  });
});

describe("a row that cannot be used is named with its place and its columns", () => {
  test.each([
    [
      '{"id": "x", "qestion": "q", "tests": "[]"}',
      "no_question",
      /line 3: it has the columns id, qestion, tests, but none of question, prompt, problem; is "qestion" meant to be question\?/,
    ],
    ['{"description": "q", "tests": "[]"}', "no_question", /is "description" meant to be question\?/],
    ['{"question": "  ", "tests": "[]"}', "no_question", /question is empty or no text/],
    [
      '{"question": "q", "test_cases": []}',
      "no_tests",
      /none of tests, ground_truth; is "test_cases" meant to be tests\?/,
    ],
    [
      '{"question": "q", "answer": 3}',
      "no_tests",
      /it has the columns question, answer, but none of tests, ground_truth$/,
    ],
    ['{"question": "q", "tests": []}', "no_tests", /there is no test with an input and an output/],
    ['{"question": "q", "tests": [{"input": "1", "expected": "2"}]}', "no_tests", /an input and an output/],
    ['{"question": "q", "tests": {"fn_name": "f", "inputs": [1], "outputs": [1]}}', "bad_args", /a list of arguments/],
    ['{"question": "q", "tests": "3 -> 4"}', "bad_tests", /not JSON in a known shape/],
    [
      '{"question": "q", "tests": [{"input": "1", "output": "2", "testtype": "functional"}]}',
      "no_function_name",
      /set fn_name/,
    ],
    ['{"question": "q", "tests": [1,}', "bad_row", /line 3: column 31: "}" is no JSON value/],
    ["[1, 2]", "bad_row", /it is no JSON object/],
    ["question,tests", "bad_row", /column 1: "question" is no JSON value/],
    [row("a"), "duplicate_id", /an earlier row has the same id/],
  ])("%s", async (line, reason, message) => {
    const { summary } = await load(`${row("a")}\n\n${line}\n${row("b")}`);
    expect(summary).toMatchObject({ read: 3, kept: 2, dropped: { [reason]: 1 } });
    expect(summary.firstDropped[reason]).toMatch(/mine\.jsonl, line 3: /);
    expect(summary.firstDropped[reason]).toMatch(message);
    expect(describeSummary(summary)).toContain(`\n  ${reason}: first `);
  });

  test("when no row is left, the error says all of it", async () => {
    await expect(load('{"text": "q"}\n{broken')).rejects.toMatchObject({
      code: "data/empty",
      message: expect.stringMatching(
        /None of the 2 rows.*1 no_question \(.*mine\.jsonl, line 1: .*"text" meant to be question.*1 bad_row \(.*line 2: column 2/,
      ),
    });
    await expect(load("\n")).rejects.toMatchObject({
      code: "data/empty",
      message: expect.stringMatching(/has no rows/),
    });
  });
});

test("every reason has words of its own, and stands in docs/data.md, or in docs/grading.md when it is about tests", () => {
  const page = (name: string) => readFileSync(new URL(`../../docs/${name}.md`, import.meta.url), "utf8");
  for (const reason of Object.keys(dropReasons)) expect(page("data")).toContain(`\`${reason}\``);
  for (const reason of testReasons) expect(page("grading")).toContain(`\`${reason}\``);
  for (const reason of [...Object.keys(dropReasons), ...testReasons]) {
    const head = { fields: {}, where: "line 1", columns: [] };
    expect(describeProblem(head, reason, (name) => dropReasonTexts[name as keyof typeof dropReasonTexts])).not.toBe(
      reason,
    );
  }
});

test("test problems that are also trained on are counted by their text, whatever their ids", async () => {
  const train = await load([row("a"), row("b"), row("c")].join("\n"));
  const other = await load([row("x"), row("y", { question: "q   b\n" })].join("\n"), { split: "test" });
  expect(overlapWarning(train, other)).toMatch(/^1 of 2 test problems is also trained on \(y\)/);
  expect(overlapWarning(train, train)).toMatch(/^every test problem is also trained on/);
  expect(overlapWarning(train, await load(row("z")))).toBeUndefined();
  const starter = { shuffle: false } as const;
  const [bundled, held] = await Promise.all([
    loadDataset("starter", { ...starter, split: "train" }),
    loadDataset("starter", { ...starter, split: "test" }),
  ]);
  expect(overlapWarning(bundled, held)).toBeUndefined();
});
