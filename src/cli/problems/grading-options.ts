// What the commands that grade files share: their keys, the grader that follows from them, and reading a row's tests and comparator.

import { z } from "zod";
import { ConfigError } from "../../core/errors.ts";
import { languageNames, languagesNamed } from "../../core/languages/languages.ts";
import { whet } from "../../core/program.ts";
import { describeProblem } from "../../data/left-out.ts";
import { languagesOf } from "../../data/problem.ts";
import { halvesOfTests, testsNames } from "../../data/rows.ts";
import { testsHint } from "../../grading/hints.ts";
import {
  type Comparator,
  comparatorNames,
  createGrader,
  type DropReason,
  dropReasonTexts,
  type GraderOptions,
  type Json,
  JsonNumber,
  type JsonObject,
  type NormalizedTests,
  normalizeTests,
  testSelections,
  writeJson,
} from "../../grading/index.ts";
import { openPrograms } from "../parts/grader.ts";

export const gradingShape = {
  comparator: z.enum(comparatorNames).default("tolerant").describe("how outputs are compared; a row may name its own"),
  reward_timeout: z.number().positive().default(6).describe("wall seconds per test"),
  language: z
    .string()
    .refine((text) => languagesNamed(text) !== undefined, `no language; there are ${languageNames.join(", ")} and any`)
    .default("python")
    .describe(
      `language of the programs (${languageNames.join(", ")}), several with commas, or any; a row may name its own`,
    ),
  typecheck: z.boolean().default(false).describe("programs in TypeScript have to type-check"),
  sandbox_url: z
    .string()
    .nullable()
    .optional()
    .describe("Sandbox Fusion's address, or several with commas; default SANDBOX_URL, none for the embedded jail"),
  sandbox_python: z.string().optional().describe("interpreter or virtual environment of the embedded jail"),
  sandbox_packages: z
    .string()
    .default("")
    .describe("packages that programs may import in the embedded jail, separated by commas; installed on first use"),
  concurrency: z.int().positive().optional().describe("programs at the same moment; default the sandbox's"),
  max_tests: z.int().min(0).default(0).describe("tests per problem, 0 for all"),
  test_selection: z.enum(testSelections).default("first").describe("which tests when there are more than max_tests"),
  memory_mb: z.int().positive().default(4096).describe("memory of a program, all its processes together, in MiB"),
};

type GradingOptions = z.output<z.ZodObject<Omit<typeof gradingShape, "reward_timeout">>>;

/** The sandbox that the keys ask for, with a grader over it; `rules` are the command's own. */
export async function openGrading(options: GradingOptions, rewardTimeoutS: number, rules: Partial<GraderOptions>) {
  const { concurrency } = options;
  const { sandbox, languages } = await openPrograms(
    {
      sandboxUrl: options.sandbox_url,
      sandboxPython: options.sandbox_python,
      sandboxPackages: options.sandbox_packages,
      typecheck: options.typecheck,
      maxConcurrency: concurrency,
    },
    options.language,
  );
  const grader = createGrader({
    sandbox,
    languages,
    comparator: options.comparator,
    limits: { rewardTimeoutS, memoryBytes: options.memory_mb * 1024 ** 2 },
    tests: { maxTests: options.max_tests, selection: options.test_selection },
    ...(concurrency !== undefined && { concurrency }),
    ...rules,
  });
  return { sandbox, grader, programsAtOnce: concurrency ?? sandbox.description.programsAtOnce ?? 4 };
}

/** The languages that a row names; undefined where it names none, null where it names one in which no programs are run. */
export const languagesOfRow = (row: JsonObject) =>
  languagesOf({ language: row.get("language"), task_id: row.get("task_id") });

/** The one file that `command` is given. */
export function oneFile([file, ...more]: readonly string[], command: string, what: string): string {
  if (file !== undefined && more.length === 0) return file;
  throw new ConfigError("config/one-file", `${whet} ${command} wants one file of ${what}, or - for stdin.`);
}

export const textField = (row: JsonObject, key: string): string | undefined => {
  const value = row.get(key);
  return typeof value === "string" ? value : undefined;
};

/** What a row has for tests, in the first of the columns that data sets call them. */
export function rawTestsOf(row: JsonObject): Json | undefined {
  for (const name of testsNames) {
    const value = row.get(name);
    if (value !== undefined && value !== null) return value;
  }
  const halves = halvesOfTests.flatMap((name): [string, Json][] => (row.has(name) ? [[name, row.get(name)!]] : []));
  return halves.length > 0 ? new Map(halves) : undefined;
}

/** A row's tests. `source`: where the row itself does not say. */
export function testsOfRow(row: JsonObject, source?: string): NormalizedTests {
  // A row without tests has none, as a run's loader says; tests that cannot be read are something else.
  const entry = row.get("entry_point");
  return normalizeTests(rawTestsOf(row) ?? [], {
    source: textField(row, "source") ?? source,
    metadata: row.get("metadata") ?? (typeof entry === "string" ? { func_name: entry } : undefined),
  });
}

/** What is wrong with a row's tests, in words that name its columns where none holds tests, and how to write them. */
export function whyNoTests(row: JsonObject, reason: DropReason): string {
  const columns = [...row.keys()];
  const hint = testsHint(rawTestsOf(row), columns);
  return describeProblem(
    { fields: {}, where: "", columns },
    reason,
    (name) => dropReasonTexts[name as DropReason],
    hint,
  );
}

/** A row's id as JSON text; its line number where it has none. */
export const idOfRow = (row: JsonObject | undefined, line: number): string => {
  const id = row?.get("id");
  return id === undefined ? String(line) : writeJson(id);
};

/** The comparator that a row names: `comparator`, or a contest package's `checker`. */
export function comparatorOfRow(row: JsonObject): Comparator | undefined {
  const name = row.get("comparator");
  const named = comparatorNames.find((known) => known === name);
  if (named) return named;
  const rules = name instanceof Map ? name : row.get("checker");
  if (!(rules instanceof Map)) return undefined;
  return {
    kind: "tokens",
    caseSensitive: rules.get("case_sensitive") === true,
    spaceSensitive: rules.get("space_change_sensitive") === true,
    absolute: numberOf(rules.get("float_abs")),
    relative: numberOf(rules.get("float_rel")),
  };
}

const numberOf = (value: Json | undefined) => (value instanceof JsonNumber ? Number(value.text) : undefined);
