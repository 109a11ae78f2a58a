// rollouts/step_000012.jsonl: every completion of a step with its verdict. Tests and expected outputs are not in it; the journal
// keeps the first failing test of a wrong program.
import type { EventOf } from "./events.ts";

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

/** A group as the journal has it: its answers, and the verdicts so far. */
export interface RecordedGroup {
  sampled: EventOf<"group-sampled">;
  /** By sample. */
  graded: (EventOf<"graded"> | undefined)[];
}

/** An answer is kept up to here as text; its tokens are kept whole. */
export const maxResponseCharacters = 32_768;
/** A question is kept up to here with every group that answers it. */
export const maxQuestionCharacters = 16_384;

/** A group's completions as records; those without a verdict are left out. */
export function rolloutRecords(
  step: number,
  { sampled, graded }: RecordedGroup,
  advantages: readonly (number | null)[],
): RolloutRecord[] {
  return sampled.samples.flatMap(({ tokens, truncated, text }, sample) => {
    const grade = graded[sample]?.grade;
    if (!grade) return [];
    return [
      {
        step,
        problem_id: sampled.problem,
        source: sampled.source,
        group: sampled.group,
        sample,
        verdict: grade.verdict,
        status: grade.status,
        reward: grade.reward,
        advantage: advantages[sample] ?? null,
        format_ok: grade.formatOk,
        truncated,
        tokens,
        tests_passed: grade.passed,
        tests_total: grade.total,
        grade_ms: Math.round(grade.wallMs),
        code_sha256: grade.codeHash,
        flags: grade.flags,
        response: text,
      },
    ];
  });
}

/** `step_000012.jsonl`. */
export const stepFile = (step: number) => `step_${String(step).padStart(6, "0")}.jsonl`;
