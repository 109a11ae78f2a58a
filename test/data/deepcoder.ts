// A small data set in the layout of DeepCoder on the hub: four configs, their columns and types, and every shape of `tests` that is
// found there, good and bad. The problems are real and solvable.
import { parquetWriteBuffer } from "hyparquet-writer";

interface Row {
  problem: string | null;
  /** Raw, as the column holds it. */
  tests: string | null;
  starter_code?: string | null;
  func_name?: string | null;
  solutions?: string[];
}

export interface DeepcoderOptions {
  /** Adds to lcbv5 (train and test) a problem whose tests have about this many bytes. */
  largeTestsBytes?: number;
}

const json = JSON.stringify;
const sum = "Read two integers from one line and print their sum.";
const double = "Write a function that returns twice its argument.";
const starter = "class Solution:\n    def twice(self, x: int) -> int:\n        ";

const stdin = (pairs: [string, string][]) => pairs.map(([input, output]) => ({ input, output, testtype: "stdin" }));
const sums: [string, string][] = [
  ["1 2\n", "3\n"],
  ["-5 5\n", "0\n"],
  ["10 20\n", "30\n"],
  ["7 8\n", "15\n"],
  ["0 0\n", "0\n"],
];

function largeTests(bytes: number): string {
  const numbers = Array.from({ length: 1000 }, (_, index) => (index * 7919) % 1000);
  const input = `${numbers.join(" ")}\n`;
  const test = { input, output: `${numbers.reduce((total, value) => total + value, 0)}\n`, testtype: "stdin" };
  return json(Array.from({ length: Math.ceil(bytes / json(test).length) }, () => test));
}

const primeintellect: Row[] = [
  {
    problem: sum,
    tests: json(sums.map(([input, output]) => ({ type: "stdin_stdout", fn_name: null, input, output }))),
    solutions: ["a, b = map(int, input().split())\nprint(a + b)"],
  },
  {
    problem: double,
    tests: json([1, 2, 3, 4, 5].map((x) => ({ type: "function_call", fn_name: "twice", input: [x], output: 2 * x }))),
    solutions: ["def twice(x):\n    return 2 * x"],
  },
  {
    problem: "Its argument is text.",
    tests: json([{ type: "function_call", fn_name: "twice", input: "4", output: "8" }]),
  },
  {
    problem: "Its tests are JSON in JSON.",
    tests: json(json([{ type: "stdin_stdout", fn_name: null, input: "1 2", output: "3" }])),
  },
  { problem: "Its tests are no JSON.", tests: "[{" },
  { problem: "It has no tests.", tests: "[]" },
  { problem: "Its output is null.", tests: json([{ type: "stdin_stdout", fn_name: null, input: "x", output: null }]) },
  { problem: "   ", tests: json(stdin(sums)) },
  { problem: null, tests: json(stdin(sums)) },
];

const taco: Row[] = [
  { problem: sum, tests: json({ inputs: sums.map(([input]) => input), outputs: sums.map(([, output]) => output) }) },
  { problem: double, tests: json({ fn_name: "twice", inputs: [[1], [2], [3]], outputs: [[2], [4], [6]] }) },
  { problem: "Its lines are lists.", tests: json({ inputs: [["1 2", "3 4"]], outputs: [["3", "7"]] }) },
  { problem: "Its lists differ in length.", tests: json({ inputs: ["1 2", "3 4", "5 6"], outputs: ["3", "7"] }) },
  { problem: "Its function has no name.", tests: json({ fn_name: null, inputs: ["1 2"], outputs: ["3"] }) },
  { problem: "Its tests are null.", tests: null },
];

const lcbTrain: Row[] = [
  { problem: sum, tests: json(stdin(sums)), starter_code: "", func_name: null },
  {
    problem: double,
    tests: json([1, 2, 3].map((x) => ({ input: `${x}`, output: `${2 * x}`, testtype: "functional" }))),
    starter_code: starter,
    func_name: "twice",
  },
  {
    problem: "Its function has no name.",
    tests: json([{ input: "1", output: "2", testtype: "functional" }]),
    starter_code: starter,
    func_name: null,
  },
];

const lcbTest: Row[] = [
  {
    problem: double,
    tests: json([5, 6].map((x) => ({ input: `${x}`, output: `${2 * x}`, testtype: "functional" }))),
    starter_code: starter,
    func_name: "twice",
  },
  { problem: sum, tests: json(stdin(sums)), starter_code: null, func_name: null },
];

const codeforces: Row[] = [
  { problem: sum, tests: json(stdin(sums)) },
  { problem: "It has one test, not in a list.", tests: json(stdin(sums)[0]) },
];

/** The files of the repository by path. */
export function deepcoderFiles({ largeTestsBytes = 0 }: DeepcoderOptions = {}): Record<string, Uint8Array | string> {
  const large: Row[] =
    largeTestsBytes > 0 ? [{ problem: "Print the sum of all numbers.", tests: largeTests(largeTestsBytes) }] : [];
  return {
    "README.md": "---\nconfigs: []\n---\n# A small DeepCoder\n",
    "primeintellect/train-00000-of-00002.parquet": write(primeintellect.slice(0, 5), { solutions: true }),
    "primeintellect/train-00001-of-00002.parquet": write(primeintellect.slice(5), { solutions: true }),
    "taco/train-00000-of-00001.parquet": write(taco, {}),
    "lcbv5/train-00000-of-00001.parquet": write([...lcbTrain, ...large], { metadata: "struct" }),
    "lcbv5/test-00000-of-00001.parquet": write([...lcbTest, ...large], { metadata: "text" }),
    "codeforces/test-00000-of-00001.parquet": write(codeforces, {}),
  };
}

function write(rows: Row[], options: { metadata?: "struct" | "text"; solutions?: boolean }): Uint8Array {
  const text = (name: string) =>
    ({ name, type: "BYTE_ARRAY", converted_type: "UTF8", repetition_type: "OPTIONAL" }) as const;
  const columnData: { name: string; data: unknown[] }[] = [
    { name: "problem", data: rows.map((row) => row.problem) },
    { name: "tests", data: rows.map((row) => row.tests) },
  ];
  const schema: Schema = [text("problem"), text("tests")];
  if (options.metadata) {
    columnData.push({ name: "starter_code", data: rows.map((row) => row.starter_code ?? null) });
    schema.push(text("starter_code"));
    const metadata = rows.map((row) => ({ func_name: row.func_name ?? null }));
    columnData.push({
      name: "metadata",
      data: options.metadata === "struct" ? metadata : metadata.map((value) => json(value)),
    });
    if (options.metadata === "text") schema.push(text("metadata"));
    else schema.push({ name: "metadata", num_children: 1, repetition_type: "OPTIONAL" }, text("func_name"));
  }
  if (options.solutions) {
    columnData.push({ name: "solutions", data: rows.map((row) => row.solutions ?? []) });
    schema.push(
      { name: "solutions", num_children: 1, converted_type: "LIST", repetition_type: "OPTIONAL" },
      { name: "list", num_children: 1, repetition_type: "REPEATED" },
      text("element"),
    );
  }
  const root = { name: "root", num_children: columnData.length };
  // Two rows per group: a file has several, as the real ones do.
  return new Uint8Array(parquetWriteBuffer({ columnData, schema: [root, ...schema], rowGroupSize: 2 } as WriteOptions));
}

type WriteOptions = Parameters<typeof parquetWriteBuffer>[0];
type Schema = NonNullable<WriteOptions["schema"]>;
