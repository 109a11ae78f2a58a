// Problem sets with a fault, made from the bundled ones.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { root } from "./whet.ts";

export interface Row {
  id: string;
  problem: string;
  tests: string;
  solutions: string[];
  kind: string;
  part: string;
  [column: string]: unknown;
}

interface Test {
  input: string;
  output: string;
  testtype: string;
}

export const starter = (split: "train" | "test"): Row[] =>
  readFileSync(join(root, "data/starter", `${split}.jsonl`), "utf8")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Row);

/** Writes a problem set and returns its path. */
export function write(path: string, rows: readonly Row[]): string {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, rows.map((row) => `${JSON.stringify(row)}\n`).join(""));
  return path;
}

/** Problems with only those of their tests that a program passes which gives its input back. */
export function echoTests(rows: readonly Row[]): Row[] {
  return rows.flatMap((row) => {
    const tests = (JSON.parse(row.tests) as Test[]).filter(({ input, output }) => input.trim() === output.trim());
    return tests.length === 0 ? [] : [{ ...row, id: `weak-${row.id}`, tests: JSON.stringify(tests) }];
  });
}
