// rollouts/step_000012.jsonl: every completion of a step with its verdict. Tests and expected outputs are never written.
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { writeFileAtomic } from "../core/files.ts";
import { toJsonLine } from "../core/jsonl.ts";
import { runFiles } from "./directory.ts";

export interface RolloutRecord {
  step: number;
  problem_id: string;
  source: string;
  group: number;
  sample: number;
  verdict: "pass" | "fail" | "ungraded";
  status: string;
  /** null for an ungraded completion: it has no reward. */
  reward: number | null;
  advantage: number | null;
  format_ok: boolean;
  truncated: boolean;
  tokens: number;
  tests_passed: number;
  tests_total: number;
  grade_ms: number;
  code_sha256: string | null;
  flags: readonly string[];
  response: string;
}

const maxResponseCharacters = 32_768;

/** Writes a step's file in one piece, replacing one that an interrupted attempt at the same step left. */
export function writeRollouts(runPath: string, step: number, records: readonly RolloutRecord[]): void {
  const folder = join(runPath, runFiles.rollouts);
  mkdirSync(folder, { recursive: true });
  const lines = records.map((record) =>
    toJsonLine({ ...record, response: record.response.slice(0, maxResponseCharacters) }),
  );
  writeFileAtomic(join(folder, stepFile(step)), lines.join(""));
}

/** `step_000012.jsonl`. */
export const stepFile = (step: number) => `step_${String(step).padStart(6, "0")}.jsonl`;
