// The table of `./whet certify`: a row for each problem, and below it what is wrong.
import type { Certificate } from "../../grading/certify.ts";
import { describeFailed } from "./certify-text.ts";

export interface CertifyRow {
  cells: string[];
  good: boolean;
  /** Why training leaves it out; undefined when it does not. */
  leftOut?: string;
  /** What is printed below it. */
  details: string[];
}

const widths = [28, 6, 6, 6, 6, 9, 7];
export const header = ["problem", "tests", "gold", "empty", "echo", "constant", "repeat", "verdict"];

export function rowOf(name: string, tests: number, certificate: Certificate, limitS: number): CertifyRow {
  const fails = (program: string) => (certificate.fooledBy.includes(program) ? "PASSES" : "fails");
  const good = certificate.problems.length === 0;
  return {
    good,
    details: certificate.failed.flatMap((failed) => describeFailed(failed, limitS)),
    cells: [
      name,
      String(tests),
      `${certificate.goldPassed}/${certificate.gold}`,
      fails("empty"),
      fails("echo"),
      fails("constant"),
      certificate.repeatable ? "same" : "DIFFER",
      good ? "good" : `bad: ${certificate.problems.join("; ")}`,
    ],
  };
}

export const tableLine = (cells: readonly string[]) =>
  cells
    .map((cell, index) => (widths[index] === undefined ? cell : cell.slice(0, widths[index]).padEnd(widths[index])))
    .join("  ");
