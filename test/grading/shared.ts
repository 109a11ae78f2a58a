// What the grading tests use from ../shared, the read-only folder beside the repository. A checkout without it skips those tests and
// says so.
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { gunzipSync } from "node:zlib";
import type { Comparator } from "../../src/grading/index.ts";

const shared = fileURLToPath(new URL("../../../shared/", import.meta.url));
export const casesAreThere = existsSync(`${shared}spec/grading-cases.json`);
export const problemsAreThere = existsSync(`${shared}data/problems/stdio.jsonl.gz`);
if (!casesAreThere) console.warn(`skipping the grading cases: ${shared}spec is not there`);
if (!problemsAreThere) console.warn(`skipping the reference solutions: ${shared}data/problems is not there`);

export interface GradingCase {
  id: string;
  kind: "stdin" | "functional";
  fn_name: string | null;
  tests: { input: string; output: string }[];
  code: string;
  expect: "pass" | "fail" | "either";
  status: string;
}

export interface ExtractionCase {
  id: string;
  text: string;
  expect: string | null;
  expect_thinking_renderer?: string | null;
}

export function gradingCases(): { cases: GradingCase[]; extraction: ExtractionCase[] } {
  if (!casesAreThere) return { cases: [], extraction: [] };
  const data = JSON.parse(readFileSync(`${shared}spec/grading-cases.json`, "utf8")) as {
    cases: (GradingCase & { tests: { output_python?: string }[] })[];
    extraction: ExtractionCase[];
  };
  for (const { tests } of data.cases) {
    for (const test of tests) {
      // A long expected output is written as the expression that makes it.
      if (test.output_python === undefined) continue;
      const script = `import sys; sys.stdout.write(${test.output_python})`;
      test.output = spawnSync("python3", ["-c", script], { encoding: "utf8", maxBuffer: 1 << 26 }).stdout;
    }
  }
  return data;
}

/** Records of one file under data/problems. */
export function problemRecords<T>(name: string): T[] {
  if (!problemsAreThere) return [];
  const bytes = readFileSync(`${shared}data/problems/${name}`);
  const text = (name.endsWith(".gz") ? gunzipSync(bytes) : bytes).toString("utf8");
  return text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as T);
}

export interface StdioRecord {
  id: string;
  time_limit_s: number | null;
  checker: {
    case_sensitive: boolean;
    space_change_sensitive: boolean;
    float_abs: number | null;
    float_rel: number | null;
  };
  tests: { name: string; input: string; output: string }[];
  solutions: { code: string; max_test_seconds: number }[];
  labelled_submissions: { expected: string; observed: string; code: string }[];
}

/** The comparator that a contest package declares. */
export function comparatorOf({ checker }: StdioRecord): Comparator {
  return {
    kind: "tokens",
    caseSensitive: checker.case_sensitive,
    spaceSensitive: checker.space_change_sensitive,
    absolute: checker.float_abs ?? undefined,
    relative: checker.float_rel ?? undefined,
  };
}
