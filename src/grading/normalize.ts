// Turns the test formats found in data sets into one: DeepCoder's four sources, LiveCodeBench (encoded or not) and single tests.
// Pure and total: whatever the input is, the answer is a list of tests that can be graded and a count of what was left out and why.
import { readAsserts } from "./asserts.ts";
import { type Json, JsonNumber, type JsonObject, readJson, toJson, writeJson } from "./json.ts";
import { decodePrivateTests } from "./lcb.ts";
import { readPythonLiteral } from "./python-literal.ts";

/** One test: input for a program, or arguments for a function, with what is expected. */
export type NormalizedTest =
  | { kind: "stdin"; input: string; expected: string }
  | {
      kind: "functional";
      functionName: string;
      args: Json[];
      expected: Json;
      /** TACO wraps results in a one-element list; the element alone is right too. */
      expectedAlt?: Json;
    };

/** Every reason for which tests are left out, and what is wrong then. */
export const dropReasonTexts = {
  bad_tests: 'the tests are not JSON in a known shape, such as {"inputs": ["1 2\\n"], "outputs": ["3\\n"]}',
  bad_test: "a test is no JSON object",
  bad_args: "the arguments of a call cannot be read: write a list of arguments for each test",
  no_function_name: "the tests call a function that has no name: set fn_name in tests, or func_name in metadata",
  null_output: "a test has no output",
  length_mismatch: "inputs and outputs have different lengths",
  mixed_kinds: "some tests read standard input and others call a function",
  no_tests: 'there is no test with an input and an output, as in {"inputs": ["1 2\\n"], "outputs": ["3\\n"]}',
} as const;
/** Why a problem's tests cannot be used. */
export type DropReason = keyof typeof dropReasonTexts;
/** Every reason for which tests are left out. */
export const dropReasons: readonly DropReason[] = Object.keys(dropReasonTexts) as DropReason[];

/** The tests of one problem in one form, whatever they came in. */
export interface NormalizedTests {
  /** The tests, in their order. */
  tests: NormalizedTest[];
  /** Whether a program reads standard input or a function is called. */
  mode: "stdin" | "functional";
  /** Tests left out, per reason; a reason that drops the whole row counts once. */
  dropped: Partial<Record<DropReason, number>>;
  /** Why there are no tests; null when there are some. */
  reason: DropReason | null;
}

/** What is known of a problem besides its tests. */
export interface TestContext {
  /** Where the row comes from, for example "taco", "primeintellect" or "lcbv5"; without it the shape decides. */
  source?: string | null | undefined;
  /** The row's metadata: an object, or its JSON text. */
  metadata?: unknown;
}

type Family = "lcb" | "taco" | "primeintellect";

/** A whole row cannot be used. */
class RowDropped extends Error {
  readonly reason: DropReason;

  constructor(reason: DropReason) {
    super(reason);
    this.reason = reason;
  }
}

const namePattern = /^[A-Za-z_][A-Za-z0-9_]*$/;

/** Normalizes a row's tests: a JSON text (also encoded as LiveCodeBench does), or a value. Never throws. */
export function normalizeTests(raw: unknown, context: TestContext = {}): NormalizedTests {
  const value = parseTests(raw);
  if (value instanceof Map && (value.has("public_test_cases") || value.has("private_test_cases"))) {
    const [first, rest] = [value.get("public_test_cases"), value.get("private_test_cases")];
    return normalizeLiveCodeBench({ public_test_cases: first, private_test_cases: rest, metadata: context.metadata });
  }
  const dropped: Partial<Record<DropReason, number>> = {};
  const drop = (reason: DropReason, count = 1) => {
    dropped[reason] = (dropped[reason] ?? 0) + count;
  };
  let tests: NormalizedTest[] = [];
  let reason: DropReason | null = null;
  try {
    tests = readCalls(value ?? raw, context) ?? sameKind(readTests(value, context, drop), drop);
    if (tests.length === 0) throw new RowDropped("no_tests");
  } catch (error) {
    if (!(error instanceof RowDropped)) throw error;
    tests = [];
    reason = error.reason;
    drop(reason);
  }
  return { tests, mode: tests[0]?.kind ?? "stdin", dropped, reason };
}

/** The calls of tests that are asserts: a text, or a list of them. */
function readCalls(value: unknown, { metadata }: TestContext): NormalizedTest[] | undefined {
  const lines = Array.isArray(value) ? value : [value];
  if (!lines.every((line) => typeof line === "string")) return undefined;
  const name = functionNameIn(metadataOf(metadata));
  return readAsserts(lines.join("\n"))?.map((call) => {
    const functionName = call.name === "candidate" ? name : call.name;
    if (functionName === undefined) throw new RowDropped("no_function_name");
    return { kind: "functional", functionName, args: call.args, expected: call.expected };
  });
}

/** LiveCodeBench's own rows: public tests, then private ones (plain or encoded). */
export function normalizeLiveCodeBench(row: {
  public_test_cases?: unknown;
  private_test_cases?: unknown;
  metadata?: unknown;
}): NormalizedTests {
  const lists = [row.public_test_cases, row.private_test_cases].map((field) => parseTests(field));
  const all = lists.flatMap((list) => (Array.isArray(list) ? list : list instanceof Map ? [list] : []));
  return normalizeTests(all, { source: "lcb", metadata: row.metadata });
}

/** The value behind `raw`: a text is read as JSON, at most twice, or decoded. */
function parseTests(raw: unknown): Json | undefined {
  let value: Json | undefined = typeof raw === "string" ? parseText(raw) : toJson(raw);
  if (typeof value === "string") value = parseText(value);
  return value;
}

const parseText = (text: string): Json | undefined => {
  const value = readJson(text);
  if (value !== undefined) return value;
  const decoded = decodePrivateTests(text);
  return decoded === undefined ? undefined : readJson(decoded);
};

function readTests(
  value: Json | undefined,
  context: TestContext,
  drop: (reason: DropReason) => void,
): NormalizedTest[] {
  const rowName = functionNameIn(metadataOf(context.metadata));
  const tests: NormalizedTest[] = [];
  if (value instanceof Map && value.has("inputs") && value.has("outputs")) {
    const inputs = value.get("inputs");
    const outputs = value.get("outputs");
    if (!Array.isArray(inputs) || !Array.isArray(outputs)) throw new RowDropped("bad_tests");
    const name = textOf(value.get("fn_name")) ?? functionNameIn(metadataOf(value.get("metadata")));
    const count = Math.min(inputs.length, outputs.length);
    if (inputs.length !== outputs.length) {
      drop("length_mismatch");
      if (count === 0) throw new RowDropped("no_tests");
    }
    for (let index = 0; index < count; index++) {
      const [input, output] = [inputs[index]!, outputs[index]!];
      // Argument lists are TACO's own; a text of argument lines means that LiveCodeBench's tests were put in this shape.
      const family = familyOf(context.source) ?? (typeof input === "string" ? "lcb" : "taco");
      if (name !== undefined) tests.push(functionalTest(validName(name), input, output, family));
      else pushStdin(tests, input, output, drop);
    }
    return tests;
  }
  const list = value instanceof Map ? [value] : value;
  if (!Array.isArray(list)) throw new RowDropped("bad_tests");
  for (const test of list) {
    if (!(test instanceof Map)) {
      drop("bad_test");
      continue;
    }
    const name = functionNameIn(metadataOf(test.get("metadata"))) ?? textOf(test.get("fn_name"));
    const isFunctional =
      test.get("testtype") === "functional" || test.get("type") === "function_call" || name !== undefined;
    const output = test.get("output");
    if (output === undefined) drop("null_output");
    else if (!isFunctional) pushStdin(tests, test.get("input") ?? "", output, drop);
    else {
      const family = familyOf(context.source) ?? (test.has("type") ? "primeintellect" : "lcb");
      tests.push(functionalTest(validName(name ?? rowName), test.get("input") ?? null, output, family));
    }
  }
  return tests;
}

function pushStdin(tests: NormalizedTest[], input: Json, output: Json, drop: (reason: DropReason) => void): void {
  if (output === null) drop("null_output");
  else tests.push({ kind: "stdin", input: input === null ? "" : plainText(input), expected: plainText(output) });
}

function functionalTest(functionName: string, input: Json, output: Json, family: Family): NormalizedTest {
  const args = Array.isArray(input) ? input : typeof input === "string" ? argumentLines(input, family) : undefined;
  if (!args) throw new RowDropped("bad_args");
  if (family === "taco") {
    const wrapped = Array.isArray(output) && output.length === 1;
    return {
      kind: "functional",
      functionName,
      args,
      expected: output,
      ...(wrapped ? { expectedAlt: output[0]! } : {}),
    };
  }
  if (typeof output !== "string") return { kind: "functional", functionName, args, expected: output };
  const expected = readJson(output);
  if (expected !== undefined) return { kind: "functional", functionName, args, expected };
  if (family === "lcb") throw new RowDropped("bad_args");
  return { kind: "functional", functionName, args, expected: output };
}

/** One argument per line that is not blank. */
function argumentLines(text: string, family: Family): Json[] | undefined {
  const args: Json[] = [];
  for (const line of text.split("\n")) {
    if (line.trim() === "") continue;
    const value = readJson(line) ?? (family === "lcb" ? undefined : readPythonLiteral(line));
    if (value === undefined) return undefined;
    args.push(value);
  }
  return args;
}

/** A row is graded in one way: the kind of its first test. */
function sameKind(tests: NormalizedTest[], drop: (reason: DropReason, count: number) => void): NormalizedTest[] {
  const kept = tests.filter((test) => test.kind === tests[0]!.kind);
  if (kept.length < tests.length) drop("mixed_kinds", tests.length - kept.length);
  return kept;
}

/** Text of a stdin field; scalars as Python prints them, a list one element per line. */
function plainText(value: Json): string {
  if (typeof value === "string") return value;
  if (Array.isArray(value))
    return value.map((item) => (Array.isArray(item) ? writeJson(item) : plainText(item))).join("\n");
  if (value === null) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  return value instanceof JsonNumber ? value.text : writeJson(value);
}

function familyOf(source: string | null | undefined): Family | undefined {
  if (!source) return undefined;
  if (/taco/i.test(source)) return "taco";
  if (/prime/i.test(source)) return "primeintellect";
  return /lcb|livecode|codeforces/i.test(source) ? "lcb" : undefined;
}

function metadataOf(value: unknown): JsonObject | undefined {
  const json = typeof value === "string" ? readJson(value) : toJson(value);
  return json instanceof Map ? json : undefined;
}

const functionNameIn = (metadata: JsonObject | undefined) =>
  textOf(metadata?.get("func_name")) ?? textOf(metadata?.get("fn_name"));

const textOf = (value: Json | undefined) => (typeof value === "string" && value !== "" ? value : undefined);

function validName(name: string | undefined): string {
  if (name === undefined || !namePattern.test(name)) throw new RowDropped("no_function_name");
  return name;
}
