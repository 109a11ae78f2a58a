// `./whet grade` and `./whet certify` as people type them.
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { parquetWriteBuffer } from "hyparquet-writer";
import { expect, test, vi } from "vitest";
import { commands } from "../../src/cli/commands.ts";
import { chooseRenderer } from "../../src/renderers/index.ts";
import { presetConfig } from "../../src/rl/config.ts";
import { loadProblems } from "../../src/rl/tasks.ts";
import { loadTokenizer } from "../../src/tokenizer/index.ts";
import { temporaryFolders } from "../support/folders.ts";
import { startWhet, whet } from "./processes.ts";

const folder = temporaryFolders();

function file(rows: readonly (object | string)[], name = "rows.jsonl"): string {
  const path = join(folder(), name);
  const text = rows.map((row) => (typeof row === "string" ? row : JSON.stringify(row))).join("\n");
  writeFileSync(path, name.endsWith(".gz") ? gzipSync(text) : text);
  return path;
}

const lines = (text: string) =>
  text
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Record<string, unknown>);

const rendererOfNano = async () =>
  chooseRenderer("nano-coder", await loadTokenizer("nano-coder"), { name: "qwen3_instruct", thinking: "" }).renderer;

const sumTests = { inputs: ["1 2\n", "30 4\n"], outputs: ["3\n", "34\n"] };
const sum = "print(sum(map(int, input().split())))";

test("one verdict per line, in the order of the input, whatever takes longer", async () => {
  const rows = [
    { id: "slow", tests: sumTests, code: `import time; time.sleep(0.5)\n${sum}` },
    { id: "text", tests: JSON.stringify(sumTests), response: `Sure:\n\`\`\`python\n${sum}\n\`\`\`` },
    { id: "none", tests: sumTests, response: "I give up." },
    { id: "wrong", tests: sumTests, code: "print(3)" },
    {
      id: "call",
      tests: [{ input: "[1]", output: "[1]", testtype: "functional" }],
      metadata: { func_name: "f" },
      code: "def f(x): return x",
    },
    { id: "hack", tests: sumTests, code: "import os; os._exit(0)" },
    { id: "unusable", tests: "[]", code: sum },
  ];
  const { code, stdout, stderr } = await whet(["grade", file(rows), "reward_timeout=4"]).finished;
  expect(
    lines(stdout).map(({ id, verdict, reward, format_ok, status, tests_passed, tests_total }) => [
      id,
      verdict,
      reward,
      format_ok,
      status,
      `${tests_passed as number}/${tests_total as number}`,
    ]),
  ).toEqual([
    ["slow", "pass", 1, true, "pass", "2/2"],
    ["text", "pass", 1, true, "pass", "2/2"],
    ["none", "fail", -0.1, false, "format_error", "0/2"],
    ["wrong", "fail", 0, true, "wrong_answer", "1/2"],
    ["call", "pass", 1, true, "pass", "1/1"],
    ["hack", "fail", 0, true, "wrong_answer", "0/2"],
    // Without tests nothing is judged: it is an error, never a reward of 0.
    ["unusable", "ungraded", null, null, "bad_input", "0/0"],
  ]);
  expect(lines(stdout).every(({ time_ms }) => typeof time_ms === "number")).toBe(true);
  expect(lines(stdout).at(-1)!["message"]).toMatch(
    /line 7: the tests cannot be used \(no_tests\): there is no test with/,
  );
  expect(stderr).toContain("3 pass, 3 fail, 0 ungraded, 1 unusable");
  expect(code).toBe(1);
});

test("a byte-order mark hides no row, broken JSON is named with its column, missing tests with the columns", async () => {
  const row = JSON.stringify({ id: "a", tests: sumTests, code: sum });
  const input = `\uFEFF${row}\r\n\r\n{"id": "b", "tests": [}\n${JSON.stringify({ id: "c", test_cases: [], code: sum })}`;
  const { code, stdout } = await whet(["grade", "-"], { input }).finished;
  expect(code).toBe(1);
  expect(lines(stdout).map(({ verdict, message }) => [verdict, message])).toEqual([
    ["pass", undefined],
    ["ungraded", 'line 3: the line is no JSON object: column 23: "}" is no JSON value'],
    ["ungraded", expect.stringMatching(/line 4: .*the columns id, test_cases, code.*"test_cases" meant to be tests\?/)],
  ]);
});

test("lines that cannot be read keep their place, and ids stay as they were written", async () => {
  const rows = ["not json", `{"id": 12345678901234567891, "tests": ${JSON.stringify(sumTests)}, "code": "${sum}"}`];
  const { code, stdout } = await whet(["grade", "-"], { input: rows.join("\n") }).finished;
  expect(code).toBe(1);
  expect(lines(stdout)[0]).toMatchObject({ id: 1, verdict: "ungraded", reward: null, status: "bad_input" });
  expect(stdout.split("\n")[1]).toContain('"id":12345678901234567891,"verdict":"pass"');
});

test("a comparator can be chosen, for all lines or by one", async () => {
  const tests = { inputs: [""], outputs: ["a\nb"] };
  const rows = [
    { id: 1, tests, code: "print('A B')" },
    { id: 2, tests, code: "print('A B')", comparator: "tokens" },
    { id: 3, tests, code: "print('a\\n\\nb')" },
    { id: 4, tests, code: "print('a\\n\\nb')", comparator: "tolerant" },
  ];
  const { stdout } = await whet(["grade", file(rows, "rows.jsonl.gz"), "comparator=lcb"]).finished;
  expect(lines(stdout).map(({ verdict }) => verdict)).toEqual(["fail", "pass", "fail", "pass"]);
});

test("over Sandbox Fusion the same; a server that is not there ends the command with a hint", async (context) => {
  const rows = [
    { id: 1, tests: sumTests, code: sum },
    { id: 2, tests: sumTests, code: "print(3)" },
  ];
  const server = await startWhet("sandbox", ["port=0"]);
  try {
    await vi.waitFor(() => expect(server.stderr()).toContain("programs run in"));
    if (server.stderr().includes("second level"))
      return context.skip("the jail of this machine cannot start processes, which the launcher needs");
    const env = { SANDBOX_URL: `${server.url}/run_code`, SANDBOX_MAX_CONCURRENCY: "2" };
    const { code, stdout, stderr } = await whet(["grade", file(rows)], { env }).finished;
    expect([code, lines(stdout).map(({ verdict }) => verdict)]).toEqual([0, ["pass", "fail"]]);
    expect(stderr).toContain(`Sandbox Fusion at ${server.url}`);
  } finally {
    expect(await server.stop("SIGINT")).toBe(130);
  }
  const missing = await whet(["grade", file(rows), `sandbox_url=${server.url}`]).finished;
  expect([missing.code, missing.stdout]).toEqual([1, ""]);
  expect(missing.stderr).toContain("sandbox/fusion-unreachable");
});

test("Ctrl-C ends the command with 130, and what was graded is printed", async () => {
  const rows = [
    { id: 1, tests: sumTests, code: sum },
    ...Array.from({ length: 20 }, (_, id) => ({
      id: id + 2,
      // Another problem: the verdicts of one come together.
      tests: { inputs: ["1\n"], outputs: ["2\n"] },
      code: `import time; time.sleep(${100 + id})`,
    })),
  ];
  const { child, finished } = whet(["grade", file(rows), "reward_timeout=200"]);
  await new Promise((resolve) => child.stdout!.once("data", resolve));
  child.kill("SIGINT");
  const { code, stdout, stderr } = await finished;
  expect([code, lines(stdout).map(({ id }) => id)]).toEqual([130, [1]]);
  expect(stderr).toContain("interrupted");
});

test("certify: good problems pass, bad ones are named and end the command with 1", async () => {
  const good = [
    { id: "sum", problem: "Add.", tests: sumTests, solutions: [sum, "a, b = map(int, input().split())\nprint(a + b)"] },
    {
      id: "double",
      question: "Double it.",
      tests: { fn_name: "f", inputs: [[2], [5]], outputs: [[4], [10]] },
      solution: "def f(x): return 2 * x",
    },
  ];
  const bad = [
    { id: "no question", qestion: "Add.", tests: sumTests, solution: sum },
    { id: "wrong gold", tests: sumTests, solutions: [sum, "print(3)"] },
    { id: "echo", tests: { inputs: ["1", "2"], outputs: ["1", "2"] }, solution: "print(input())" },
    { id: "constant", tests: { inputs: ["4", "5"], outputs: ["same", "same"] }, solution: "print('same')" },
    { id: "empty", tests: { inputs: ["4", "5"], outputs: ["", "\n"] }, solution: "pass" },
    { id: "no gold", tests: sumTests },
    { id: "no tests", tests: [], solution: sum },
    // Passes both tests about every second time.
    { id: "chance", tests: sumTests, solution: `import os\nif os.urandom(1)[0] < 181: ${sum}` },
  ];
  const fine = await whet(["certify", file(good)]).finished;
  expect([fine.code, fine.stdout.trim().split("\n").length]).toEqual([0, 3]);
  expect(fine.stdout).toMatch(/^sum +2 +2\/2 +fails +fails +fails +same +good$/m);
  expect(fine.stderr).toContain("train would use 2 problems; it would leave out none");
  const asked = bad.map((row) => ("qestion" in row ? row : { question: "What?", ...row }));
  const repeats = ["show=bad", "repeats=16"];
  const { code, stdout, stderr } = await whet(["certify", file([...good, ...asked, good[0]!]), ...repeats]).finished;
  expect(code).toBe(1);
  const table = Object.fromEntries(
    stdout
      .trim()
      .split("\n")
      .slice(1)
      .filter((line) => !line.startsWith(" "))
      .map((line) => [line.slice(0, 28).trim(), line.slice(28)]),
  );
  expect(Object.keys(table)).toEqual([...bad.map(({ id }) => id), "sum"]);
  expect(table["no question"]).toMatch(/train leaves it out, no_question: .*is "qestion" meant to be question\?/);
  expect(table["sum"]).toContain("duplicate_id");
  expect(stderr).toMatch(/2 good, 9 bad/);
  expect(stderr).toMatch(
    /train would use 8 problems, 6 of them bad: .*; it would leave out 1 no_question, 1 no_tests, 1 duplicate_id/,
  );
  expect(table["wrong gold"]).toContain("solution 2: wrong_answer on test 2");
  expect(table["echo"]).toContain("PASSES");
  expect(table["constant"]).toContain("knows nothing (constant)");
  expect(table["empty"]).toContain("empty");
  expect(table["no gold"]).toContain("no reference solution");
  expect(table["no tests"]).toContain("no_tests");
  expect(table["chance"]).toContain("DIFFER");
});

test("certify: below a solution that fails stand the call, the exception, the module, and what may be meant", async () => {
  const two = { inputs: ["1\n", "2\n"], outputs: ["2\n", "3\n"] };
  const call = (inputs: unknown[], outputs: unknown[]) => ({ fn_name: "f", inputs, outputs });
  const rows = [
    {
      id: "bare list",
      tests: call([[1, 2], [3]], [[2, 4], [6]]),
      solution: "def f(a):\n    return [2 * x for x in a]",
    },
    { id: "raises", tests: call([[null, "a"]], [1]), solution: "def f(a, b):\n    return {}[b]" },
    { id: "module", tests: two, solution: "import pandas\nprint(int(input()) + 1)" },
    { id: "slow", tests: two, solution: "import time\ntime.sleep(3)\nprint(int(input()) + 1)" },
    { id: "other name", tests: call([[1]], [1]), solution: "def g(a): return a" },
    { id: "no name", tests: { inputs: [[1, 2]], outputs: [3] }, solution: "def add(a, b): return a + b" },
    { id: "columns", stdin: "1", expected_output: "2", solution: "print(2)" },
    { id: "asserts", tests: ["assert abs(f(1, 2) - 3) < 1e-9"], solution: "def f(a, b): return a + b" },
    { id: "no list", tests: call([1, 2], [2, 3]), solution: "def f(a): return a + 1" },
  ].map((row) => ({ question: "What?", ...row }));
  const path = file(rows);
  const { stdout, stderr } = await whet(["certify", path, "repeats=1"]).finished;
  const below = Object.fromEntries(
    stdout
      .split(/^(?=\S)/m)
      .slice(1)
      .map((text) => [text.slice(0, 28).trim(), text.slice(28)]),
  );
  expect(stderr).toContain("; 1 s per test (preset=nano)");
  expect(below["bare list"]).toMatch(
    /call +f\(1, 2\)\n[\s\S]*raised +TypeError: f\(\) takes 1 positional argument but 2 were/,
  );
  expect(below["bare list"]).toContain("if [1, 2] is one argument, write [[1, 2]]");
  expect(below["raises"]).toMatch(/call +f\(None, "a"\)\n[\s\S]*raised +KeyError: 'a' \(line 2 of the solution\)/);
  expect(below["module"]).toMatch(/missing_module[\s\S]*hint +No module named pandas.*sandbox_packages=pandas/);
  expect(below["slow"]).toMatch(/time_limit[\s\S]*hint +the limit is 1 s per test/);
  expect(below["other name"]).toContain("the tests call f, and the solution defines g");
  expect(below["no name"]).toContain('name it: "fn_name": "add" in tests');
  expect(below["columns"]).toContain("put stdin and expected_output into one column");
  expect(below["asserts"]).toContain('such as "tests": {"fn_name": "add", "inputs": [[1, 2]], "outputs": [3]}');
  expect(below["no list"]).toContain('write [[1], [2]] for "inputs", not [1, 2]');

  // A run's own words about rows that it leaves out say the same.
  const { firstDropped } = (
    await loadProblems({ ...presetConfig("nano"), train_data: path }, "train", {
      renderer: await rendererOfNano(),
    })
  ).summary;
  expect(firstDropped["bad_args"]).toContain('write [[1], [2]] for "inputs"');
  expect(firstDropped["no_tests"]).toContain("put stdin and expected_output into one column");
});

test("certify: a folder is read as training reads it, JSON lines and Parquet", async () => {
  const place = folder();
  const row = (id: string) => ({ id, question: "Add.", tests: JSON.stringify(sumTests), solutions: [sum] });
  mkdirSync(join(place, "more"));
  writeFileSync(join(place, "train-1.jsonl"), `${JSON.stringify(row("a"))}\n${JSON.stringify(row("b"))}\n`);
  writeFileSync(join(place, "test.jsonl"), `${JSON.stringify(row("a"))}\n`); // another split: no second a
  writeFileSync(join(place, "notes.txt"), "no problems");
  const columns = { id: ["c", "a"], question: ["Add.", "Add."], tests: [row("").tests, row("").tests] };
  const columnData = [
    ...Object.entries(columns).map(([name, data]) => ({ name, data })),
    { name: "solutions", data: [[sum], ["print(3)"]] },
  ];
  writeFileSync(join(place, "more", "train-2.parquet"), Buffer.from(parquetWriteBuffer({ columnData })));
  const { code, stdout, stderr } = await whet(["certify", place]).finished;
  const rows = stdout
    .split("\n")
    .slice(1)
    .filter((line) => /^\S/.test(line));
  expect(rows.map((line) => line.replace(/ .*(good|bad.*)$/, " $1"))).toEqual([
    `${join(place, "more/train-2.parquet")}:`,
    "c good",
    "a bad: solution 1: wrong_answer on test 2",
    `${join(place, "train-1.jsonl")}:`,
    "a bad: train leaves it out, duplicate_id: an earlier row has the same id",
    "b good",
    `${join(place, "test.jsonl")}:`,
    "a good",
  ]);
  expect(stderr).toMatch(/3 good, 2 bad\n.*train would use 4 problems, 1 of them bad/);
  expect(code).toBe(1);
  expect(await whet(["certify", "/nowhere"]).finished).toMatchObject({ code: 2, stdout: "" });
});

test.each([
  ["grade", [], "config/one-file"],
  ["grade", ["a", "b"], "config/one-file"],
  ["certify", [], "config/one-file"],
  ["grade", ["x", "comparater=lcb"], "config/unknown-key"],
  ["sandbox", ["port=99999"], "config/bad-value"],
])("%s %j is refused with %s", async (name, args, code) => {
  const { command } = await commands[name]!.load();
  await expect((async () => command.run(args))()).rejects.toMatchObject({ name: "ConfigError", code });
});

test("a file that is not there ends the command with 2", async () => {
  const { code, stderr } = await whet(["grade", "/nothing/here.jsonl"]).finished;
  expect([code, stderr]).toEqual([2, expect.stringContaining("config/no-file")]);
});
