// Rows in the forms in which sets with languages of their own are published: what is read of them, and what is counted as left out. The rows are
// made here, in the columns and the ways of writing tests that those sets have.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { deflateSync } from "node:zlib";
import { parquetWriteBuffer } from "hyparquet-writer";
import { expect, test } from "vitest";
import { type LoadOptions, loadDataset } from "../../src/data/index.ts";
import { createGrader, normalizeTests, openSandbox } from "../../src/grading/index.ts";
import { temporaryFolders } from "../support/folders.ts";

const newFolder = temporaryFolders();
const checkTests: NonNullable<LoadOptions["checkTests"]> = (tests, context) => {
  const { reason } = normalizeTests(tests, context);
  return { reason };
};

const load = (file: string) => loadDataset(file, { split: "test", checkTests, indexFolder: newFolder() });

function lines(rows: readonly object[]): string {
  const file = join(newFolder(), "rows.jsonl");
  writeFileSync(file, rows.map((row) => `${JSON.stringify(row)}\n`).join(""));
  return file;
}

/** What was read of each problem: its languages, its tests, how many solutions. */
async function readAll(file: string) {
  const { problems, summary } = await load(file);
  const read = problems.map(async ({ question, languages, metadata, source, loadTests, loadSolutions }) => ({
    ...{ question, languages, solutions: await loadSolutions() },
    tests: normalizeTests(await loadTests(), { source, metadata }).tests,
  }));
  return { problems: await Promise.all(read), dropped: summary.dropped };
}

const jsTests = (body: string) =>
  `const assert = require('node:assert');\n\nfunction test() {\n  let candidate = add;\n${body}}\n\ntest();`;

test("MultiPL-E: a language for each row, asserts as calls, what is more than that counted", async () => {
  const rows = [
    {
      name: "X_0_add",
      language: "js",
      prompt: "//Adds.\nfunction add(a, b){\n",
      tests: jsTests("  assert.deepEqual(candidate(1, 2),3);\n  assert.deepEqual(candidate(-1, 1),0);\n"),
    },
    {
      name: "X_0_add",
      language: "ts",
      prompt: "//Adds.\nfunction add(a: number, b: number): number {\n",
      tests: `declare var require: any;\n${jsTests("  assert.deepEqual(candidate(1, 2),3);\n")}`,
    },
    {
      name: "X_1_near",
      language: "js",
      prompt: "//Near.\n",
      tests: jsTests("  assert(Math.abs(candidate(1) - 0.5) < 1e-6);\n"),
    },
    { name: "X_0_add", language: "d", prompt: "//Adds.\n", tests: "unittest {}" },
  ];
  const columnData = ["name", "language", "prompt", "tests"].map((name) => ({
    name,
    data: rows.map((row) => row[name as keyof (typeof rows)[0]]),
    type: "STRING" as const,
  }));
  const file = join(newFolder(), "test-00000-of-00001.parquet");
  writeFileSync(file, new Uint8Array(parquetWriteBuffer({ columnData })));
  const { problems, dropped } = await readAll(file);
  expect(problems.map(({ languages, tests }) => [languages, tests.length])).toEqual([
    [["javascript"], 2],
    [["typescript"], 1],
  ]);
  expect(problems[0]!.tests[0]).toMatchObject({ kind: "functional", functionName: "add" });
  expect(dropped).toEqual({ bad_tests: 1, unknown_language: 1 });
});

test("HumanEval and HumanEval-X: solutions are behind their declarations, and pass", async () => {
  const file = lines([
    {
      ...{ task_id: "HumanEval/0", entry_point: "double", prompt: 'def double(a):\n    """Twice a."""\n' },
      ...{
        canonical_solution: "    return 2 * a\n",
        test: "def check(candidate):\n    assert candidate(2) == 4\n    assert candidate(-1) == -2\n",
      },
    },
    {
      ...{
        task_id: "JavaScript/0",
        prompt: "/* Twice a. */\nconst double = (a) => {\n",
        declaration: "\nconst double = (a) => {\n",
      },
      canonical_solution: "  return 2 * a;\n}\n",
      test: "const testDouble = () => {\n  console.assert(double(2) === 4)\n  console.assert(double(-1) === -2)\n}\n\ntestDouble()\n",
    },
    {
      ...{
        task_id: "CPP/0",
        prompt: "/* Twice a. */\n",
        declaration: "int twice(int a){\n",
        canonical_solution: "    return 2*a;\n}",
      },
      test: "#undef NDEBUG\n#include<assert.h>\nint main(){\n    vector<int> a={2};\n    assert (twice(a[0])==4);\n}\n",
    },
  ]);
  const { problems, dropped } = await readAll(file);
  expect(problems.map(({ languages, tests }) => [languages, tests.length])).toEqual([
    [undefined, 2],
    [["javascript"], 2],
  ]);
  expect(dropped).toEqual({ bad_tests: 1 });
  const sandbox = await openSandbox({ sandboxUrl: null });
  try {
    const grader = createGrader({ sandbox });
    for (const { tests, languages, solutions } of problems) {
      expect(solutions).toHaveLength(1);
      const { verdict, failure } = await grader.grade({ problem: { tests, languages }, code: solutions[0]! });
      expect(verdict, JSON.stringify(failure)).toBe("pass");
    }
  } finally {
    await sandbox.close();
  }
});

/** Private tests as LiveCodeBench packs them: a pickle of one text, deflated, in base64. */
function packed(tests: readonly object[]): string {
  const text = Buffer.from(JSON.stringify(tests));
  const length = Buffer.alloc(4);
  length.writeUInt32LE(text.length);
  return deflateSync(Buffer.concat([Buffer.from([0x80, 0x04, 0x58]), length, text, Buffer.from(".")])).toString(
    "base64",
  );
}

test("LiveCodeBench's own rows, which Multi-LCB asks in any language: public tests, then private ones", async () => {
  const row = {
    ...{
      question_title: "Sum",
      question_content: "Print the sum.",
      platform: "codeforces",
      question_id: "1_A",
      starter_code: "",
    },
    public_test_cases: JSON.stringify([{ input: "1 2\n", output: "3\n", testtype: "stdin" }]),
    private_test_cases: packed([{ input: "2 2\n", output: "4\n", testtype: "stdin" }]),
    metadata: "{}",
  };
  const { problems } = await readAll(lines([row, { ...row, question_id: "1_B", language: "rust" }]));
  expect(problems.map(({ languages, tests }) => [languages, tests])).toEqual(
    [undefined, ["rust"]].map((languages) => [
      languages,
      [
        { kind: "stdin", input: "1 2\n", expected: "3\n" },
        { kind: "stdin", input: "2 2\n", expected: "4\n" },
      ],
    ]),
  );
});

test("AutoCodeBench: asserts of calls are read, those of objects are counted", async () => {
  const common = { difficulty: "easy", demo_test_func: "", canonical_solution: "function inc(a) { return a + 1; }" };
  const rows = [
    {
      ...common,
      question: "Increase.",
      language: "javascript",
      full_test_func:
        "const assert = require('assert');\n(() => {\n  assert.strictEqual(inc(1), 2);\n  assert.deepStrictEqual(inc(-1), 0);\n})();",
    },
    {
      ...common,
      question: "Increase, in Python.",
      language: "python",
      full_test_func:
        "def test():\n    assert inc(1) == 2\n    assert inc(2) == 3\n\nif __name__ == '__main__':\n    test()\n",
    },
    {
      ...common,
      question: "A box.",
      language: "javascript",
      full_test_func: "const box = new Box();\nassert.strictEqual(box.size(), 0);",
    },
    { ...common, question: "Increase, in Elixir.", language: "elixir", full_test_func: "assert inc(1) == 2" },
  ];
  const { problems, dropped } = await readAll(lines(rows));
  expect(problems.map(({ languages, tests, solutions }) => [languages, tests.length, solutions.length])).toEqual([
    [["javascript"], 2, 1],
    [["python"], 2, 1],
  ]);
  expect(dropped).toEqual({ bad_tests: 1, unknown_language: 1 });
});

test("a source named with a language: a row's own goes before, and starter code in Python is not shown", async () => {
  const file = lines([
    { id: "a", question: "A", tests: [{ input: "1", output: "1" }], starter_code: "def f():" },
    { id: "b", question: "B", tests: [{ input: "1", output: "1" }], language: "go", starter_code: "func f() {" },
  ]);
  const plain = await load(file);
  const named = await load(`${file}:javascript`);
  expect(named.problems.map(({ languages, starterCode }) => [languages, starterCode])).toEqual([
    [["javascript"], null],
    [["go"], "func f() {"],
  ]);
  expect(named.fingerprint).not.toBe(plain.fingerprint);
  expect((await load(`${file}:any`)).problems[0]!.languages).toContain("rust");
  await expect(load(`${file}:cobol`)).rejects.toMatchObject({ code: "data/not-found" });
});
