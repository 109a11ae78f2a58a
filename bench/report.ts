// What a benchmark returns, and how it is shown. Figures are ratios or limits measured in one run on one machine; absolute times
// are printed only so that a ratio can be read.
import type { mixNames } from "./learning-mixes.ts";

export interface BenchRow {
  /** What was measured. */
  what: string;
  /** Ours, and what it is compared with, as short texts with units. */
  ours: string;
  other: string;
  /** The figure that counts, e.g. "14.2×". */
  figure: string;
  /** What it should be, e.g. "≥ 10×"; and whether it is. */
  target?: string;
  met?: boolean;
}

export interface BenchReport {
  title: string;
  /** The heads of the two middle columns. */
  columns: readonly [ours: string, other: string];
  rows: readonly BenchRow[];
  /** What a reader must know to judge the figures: load, versions, sizes. */
  notes: readonly string[];
}

export interface BenchOptions {
  /** A small version that shows that the benchmark works; its figures mean little. */
  quick: boolean;
  /** engine: a model of a real size instead of the bundled one; "" for that. */
  model: string;
  /** learning: the problems, and the Pass@1 to reach where it is not the model's and 0.4. */
  mix: (typeof mixNames)[number];
  target?: number | undefined;
  /** learning: how many seeds. */
  seeds: number;
  /** learning, groups: which rules; none named: all. */
  rules: readonly string[];
  /** learning: whether the other trainer runs too. */
  peer: boolean;
  /** recipes: where its runs are kept; "" for a folder that is gone afterwards. */
  folder: string;
}

/** The module of a benchmark: bench/NAME.ts exports `benchmark`. */
export interface Benchmark {
  /** Runs it; `say` shows progress. `missing` says why it cannot run here. */
  run(say: (line: string) => void, options: BenchOptions): Promise<BenchReport | { missing: string }>;
}

/** The report as a table of plain text. */
export function formatReport({ title, columns, rows, notes }: BenchReport): string {
  const table = [
    ["", ...columns, "figure", "target"],
    ...rows.map(({ what, ours, other, figure, target, met }) => [
      what,
      ours,
      other,
      figure,
      target === undefined ? "" : `${target}  ${met ? "met" : "MISSED"}`,
    ]),
  ];
  const widths = table[0]!.map((_, column) => Math.max(...table.map((row) => row[column]!.length)));
  const lines = table.map((row) =>
    row
      .map((cell, column) => (column === 0 ? cell.padEnd(widths[column]!) : cell.padStart(widths[column]!)))
      .join("  ")
      .trimEnd(),
  );
  return [title, "", ...lines.map((line) => `  ${line}`), "", ...notes.map((note) => `  ${note}`)].join("\n");
}
