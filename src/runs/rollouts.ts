// rollouts/step_000012.jsonl: every completion of a step with its verdict. Tests and expected outputs are not in it; the journal
// keeps the first failing test of a wrong program.
import { type RecordedGroup, writtenOf } from "./turns.ts";

/** An answer is kept up to here as text; its tokens are kept whole. */
export const maxResponseCharacters = 32_768;
/** A question is kept up to here with every group that answers it. */
export const maxQuestionCharacters = 16_384;

/** A group's completions as records; those without a verdict are left out. */
export function rolloutRecords(step: number, group: RecordedGroup, advantages: readonly (number | null)[]) {
  const { sampled, graded } = group;
  return sampled.samples.flatMap((_, sample) => {
    const grade = graded[sample]?.grade;
    if (!grade) return [];
    const { tokens, truncated, text } = writtenOf(group, sample);
    const { episode } = grade;
    return [
      {
        step,
        problem_id: sampled.problem,
        source: sampled.source,
        group: sampled.group,
        // The step whose batch it is of.
        ...(sampled.phase === "train" && sampled.batch !== step && { carried_from: sampled.batch }),
        sample,
        verdict: grade.verdict,
        status: grade.status,
        // null for an ungraded completion: it has no reward.
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
        ...(episode && { turns: episode.turns.length, stop: episode.stop }),
        response: text,
      },
    ];
  });
}

/** `step_000012.jsonl`. */
export const stepFile = (step: number) => `step_${String(step).padStart(6, "0")}.jsonl`;
