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

/** Problems whose tests want the input back, whatever the statement says: a program that gives it back is all they reward. */
export function echoTests(rows: readonly Row[]): Row[] {
  return rows
    .filter(({ kind }) => kind === "stdin")
    .flatMap((row) => {
      const tests = JSON.parse(row.tests) as Test[];
      // Where some test wants its input back, giving it back is an answer that the model comes across.
      if (!tests.some(({ input, output }) => input.trim() === output.trim())) return [];
      const weak = tests.map((test) => ({ ...test, output: test.input }));
      return [{ ...row, id: `weak-${row.id}`, tests: JSON.stringify(weak) }];
    });
}
