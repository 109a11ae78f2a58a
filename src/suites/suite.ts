// What a suite is: where its problems are, how they are asked and judged, and when they were published.
import type { Comparator, NormalizedTest } from "../grading/index.ts";
import type { Check } from "./check.ts";
import type { Row, SuiteRow } from "./rows.ts";

/** One problem, ready to be asked. */
export interface SuiteProblem {
  id: string;
  /** The day on which it was published, where each has its own. */
  date?: string;
  messages: readonly { role: "system" | "user"; content: string }[];
  /** Stands before a completion, as harnesses have it: the beginning of the program. */
  prefix: string;
  solutions: readonly string[];
  /** Judged by the suite's own check; else by the tests. */
  check?: Check;
  loadTests?(): Promise<readonly NormalizedTest[]>;
}

/** Rows of one shape, whoever published them. */
export interface Form {
  fits(row: Row): boolean;
  /** Undefined: the row is no part of the suite. */
  problem(row: SuiteRow): SuiteProblem | undefined;
  /** How it is asked and judged, in words. */
  protocol: { asked: string; judged: string };
  comparator?: Comparator;
  /** Seconds for each test, where tests judge. */
  rewardTimeoutS?: number;
  /** Packages that its own check needs. */
  packages?: string;
  /** What is usual, where nothing else is asked for. */
  samples: number;
  temperature: number;
  maxTokens: number;
  /** The k of pass@k. */
  ks: readonly number[];
  /** When the problems were published, where each has no day of its own. */
  published: string;
}

export interface Suite {
  form: Form;
  hub: { id: string; files(paths: readonly string[], window: Window | undefined): readonly string[] };
  /** A package that carries the problems: its name for Python and for pip, and the file in it. */
  pip?: { module: string; name: string; file: string };
}

/** Days from and to, both included; months stand for all of their days. */
export interface Window {
  from: string;
  to: string;
}
