// What was probably meant by tests that cannot be used, and how to write it. Data sets spell tests in many ways; grading guesses at none, but its
// message should say what to change.
import { type Json, JsonNumber, readJson, toJson, writeJson } from "./json.ts";
import { readPythonLiteral } from "./python-literal.ts";

const inputNames = new Set(["stdin", "in", "std_in", "input", "inputs", "input_data", "args", "arguments"]);
const outputNames = new Set([
  ...["stdout", "out", "output", "outputs", "expected", "expected_output", "expected_outputs", "answer", "result"],
]);
const assertColumns = ["test_list", "test", "test_code", "unit_tests", "asserts"];

/** How to write the tests of a row, from what its tests are and which columns it has; undefined where nothing is recognized. */
export function testsHint(raw: unknown, columns: readonly string[]): string | undefined {
  // A file gives "null" for a row without tests.
  if (raw === undefined || raw === null || raw === "null") return columnsHint(columns);
  const tests = typeof raw === "string" ? (readJson(raw) ?? raw) : toJson(raw);
  return assertHint(tests) ?? namesHint(tests) ?? argumentsHint(tests);
}

function columnsHint(columns: readonly string[]): string | undefined {
  const input = columns.find((name) => inputNames.has(name.toLowerCase()));
  const output = columns.find((name) => outputNames.has(name.toLowerCase()));
  if (input !== undefined && output !== undefined)
    return `put ${input} and ${output} into one column: "tests": [{"input": …, "output": …}], with what stands in ${input} and in ${output}`;
  return columns.some((name) => assertColumns.includes(name.toLowerCase())) ? writeCalls(undefined) : undefined;
}

/** Tests written as Python. */
function assertHint(tests: Json | undefined): string | undefined {
  const text = textsIn(tests).find((line) => /^\s*(assert\b|def check\()/m.test(line));
  return text === undefined ? undefined : writeCalls(text);
}

const textsIn = (tests: Json | undefined): string[] => {
  if (typeof tests === "string") return [tests];
  if (Array.isArray(tests)) return tests.flatMap(textsIn);
  return tests instanceof Map ? [...tests.values()].filter((value) => typeof value === "string") : [];
};

function writeCalls(text: string | undefined): string {
  const [, name = "add", list, result] =
    /^\s*assert\s+([A-Za-z_]\w*)\((.*)\)\s*==\s*(.+?)\s*$/m.exec(text ?? "") ?? ([] as string[]);
  const args = list === undefined ? undefined : readPythonLiteral(`[${list}]`);
  const expected = result === undefined ? undefined : readPythonLiteral(result);
  const isRead = args !== undefined && expected !== undefined && name !== "candidate";
  const example = isRead
    ? `{"fn_name": "${name}", "inputs": [${writeJson(args)}], "outputs": [${writeJson(expected)}]}`
    : '{"fn_name": "add", "inputs": [[1, 2]], "outputs": [3]}';
  return `asserts are not run; write the calls and their results as data, ${isRead ? "here" : "such as"} "tests": ${example}`;
}

/** Inputs and outputs under other names. */
function namesHint(tests: Json | undefined): string | undefined {
  const first = Array.isArray(tests) ? tests[0] : tests;
  if (!(first instanceof Map) || first.has("output") || (first.has("inputs") && first.has("outputs"))) return undefined;
  const names = [...first.keys()];
  const input = names.find((name) => inputNames.has(name.toLowerCase()));
  const output = names.find((name) => outputNames.has(name.toLowerCase()));
  if (output === undefined) return undefined;
  const wanted =
    Array.isArray(first.get(output)) && !Array.isArray(tests) ? ["inputs", "outputs"] : ["input", "output"];
  const renamed = [input, output].flatMap((name, index) =>
    name === undefined || name === wanted[index]
      ? []
      : [`${JSON.stringify(name)} is not read: call it ${JSON.stringify(wanted[index])}`],
  );
  return renamed.join("; ");
}

/** Arguments that are no list. */
function argumentsHint(tests: Json | undefined): string | undefined {
  const inputs = tests instanceof Map ? tests.get("inputs") : undefined;
  if (!(tests instanceof Map) || !tests.has("fn_name") || !Array.isArray(inputs)) return undefined;
  const index = inputs.findIndex((input) => !Array.isArray(input) && typeof input !== "string");
  if (index < 0) return undefined;
  const shown = (value: Json) => (value instanceof JsonNumber || typeof value !== "object" ? writeJson(value) : "…");
  return `each input is the list of a call's arguments: write [${inputs
    .slice(0, 3)
    .map((input) => `[${shown(input)}]`)
    .join(", ")}] for "inputs", not [${inputs.slice(0, 3).map(shown).join(", ")}]`;
}
