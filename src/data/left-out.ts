// Why rows are left out, in words that say what to change: where the row stands, what it has, and what was expected.
import { nearest } from "../core/nearest.ts";
import { fieldNames, questionNames, type RowHead, testsNames } from "./rows.ts";

/** The reasons of loading itself; the check of tests has further ones. */
export const dropReasons = {
  bad_row: "the line is no JSON object",
  no_question: "there is no text in question, prompt or problem",
  no_tests: "there are no tests in tests or ground_truth",
  tests_too_big: "the tests are larger than max_tests_bytes",
  prompt_too_long: "the prompt leaves no room for an answer: see context_window and min_generation",
  blocked: "its id is one of blocked_ids",
  unknown_language: "its language is none that programs are run in: docs/grading.md lists them",
  no_calls: "its tests call a function, and programs of its language (language=) only read stdin",
  duplicate_id: "an earlier row has the same id",
} as const;

/** What is wrong with a row that is left out for `reason`. */
export function describeProblem(
  head: RowHead,
  reason: string,
  explain: (reason: string) => string | undefined = () => undefined,
  hint?: string,
): string {
  const what = head.problem ?? missing(head, reason, hint === undefined) ?? explain(reason) ?? known(reason) ?? reason;
  return hint === undefined ? what : `${what}; ${hint}`;
}

/** Whether the reason is about the tests, and not about the row or the run. */
export const isAboutTests = (reason: string) => reason === "no_tests" || known(reason) === undefined;

const known = (reason: string) =>
  Object.hasOwn(dropReasons, reason) ? dropReasons[reason as keyof typeof dropReasons] : undefined;

/** What is said of a row that lacks a column: those it has, and the one that was probably meant. */
function missing({ columns }: RowHead, reason: string, guesses: boolean): string | undefined {
  const expected = reason === "no_question" ? questionNames : reason === "no_tests" ? testsNames : undefined;
  if (!expected) return undefined;
  const present = expected.filter((name) => columns.includes(name));
  // Those to choose from; the others are other data sets' own.
  const usual = reason === "no_question" ? questionNames.slice(0, 3) : testsNames.slice(0, 2);
  if (present.length > 0) return reason === "no_tests" ? undefined : `${present.join(" and ")} is empty or no text`;
  const seen = columns.length === 0 ? "no columns" : `the columns ${columns.slice(0, 12).join(", ")}`;
  return `it has ${seen}${columns.length > 12 ? ", …" : ""}, but none of ${usual.join(", ")}${guesses ? guess(columns, usual) : ""}`;
}

/** "; is "qestion" meant to be question?" */
function guess(columns: readonly string[], expected: readonly string[]): string {
  const strangers = columns.filter((column) => !knownNames.has(column));
  const usual = strangers.find((column) => expected.includes(otherNames.get(column.toLowerCase()) ?? ""));
  const column = usual ?? strangers.find((name) => nearest(name, expected) !== undefined);
  if (column === undefined) return "";
  const name = otherNames.get(column.toLowerCase()) ?? nearest(column, expected);
  return `; is ${JSON.stringify(column)} meant to be ${name}?`;
}

const knownNames: ReadonlySet<string> = new Set([...fieldNames, ...testsNames, "solutions"]);

/** What other data sets call the columns. */
const otherNames: ReadonlyMap<string, string> = new Map([
  ...["text", "statement", "description", "instruction", "task", "content", "question_content", "input"].map(
    (name): [string, string] => [name, "question"],
  ),
  ...["test", "test_cases", "testcases", "cases", "input_output", "io", "examples", "test_list", "unit_tests"].map(
    (name): [string, string] => [name, "tests"],
  ),
]);
