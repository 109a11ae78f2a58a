// rollouts/step_000012.jsonl: every completion of a step with its verdict. Tests and expected outputs are not in it; the journal
// keeps the first failing test of a wrong program.
import type { EventOf } from "./events.ts";

export interface RolloutRecord {
  step: number;
  problem_id: string;
  source: string;
  group: number;
  /** Of a group that was carried over into the step: the step whose batch it is of. */
  carried_from?: number;
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
  /** Of an episode: how many turns it had, and why it ended. */
  turns?: number;
  stop?: string;
  response: string;
}

/** A group as the journal has it: its answers, and the verdicts so far. */
export interface RecordedGroup {
  sampled: EventOf<"group-sampled">;
  /** By sample. */
  graded: (EventOf<"graded"> | undefined)[];
  /** The further turns of all samples, as they came; also those that do not count. */
  turns: readonly { sampled: EventOf<"turn-sampled"> }[];
}

/** A sample's turns that count, or, until it is judged, all of them. */
export function turnsOf<Turn extends RecordedGroup["turns"][number]>(
  { graded, turns }: { graded: RecordedGroup["graded"]; turns: readonly Turn[] },
  sample: number,
): Turn[] {
  const counted = graded[sample]?.grade.episode?.turns;
  return turns.filter(
    ({ sampled }) => sampled.sample === sample && (counted === undefined || counted.includes(sampled.turn)),
  );
}

/** Whether the answer of the group's request counts. */
export const countsFirst = ({ graded }: Pick<RecordedGroup, "graded">, sample: number): boolean =>
  graded[sample]?.grade.episode?.turns.includes(0) ?? true;

/** What the model wrote of a sample, in all turns that count. */
export function writtenOf(group: RecordedGroup, sample: number): { tokens: number; truncated: boolean; text: string } {
  const first = group.sampled.samples[sample]!;
  const turns = turnsOf(group, sample).map(({ sampled }) => sampled);
  const tokens = turns.reduce((sum, turn) => sum + turn.tokens, countsFirst(group, sample) ? first.tokens : 0);
  const last = turns.at(-1) ?? first;
  return { tokens, truncated: last.truncated, text: last.text };
}

/** An answer is kept up to here as text; its tokens are kept whole. */
export const maxResponseCharacters = 32_768;
/** A question is kept up to here with every group that answers it. */
export const maxQuestionCharacters = 16_384;

/** A group's completions as records; those without a verdict are left out. */
export function rolloutRecords(
  step: number,
  group: RecordedGroup,
  advantages: readonly (number | null)[],
): RolloutRecord[] {
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
        ...(sampled.phase === "train" && sampled.batch !== step && { carried_from: sampled.batch }),
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
        ...(episode && { turns: episode.turns.length, stop: episode.stop }),
        response: text,
      },
    ];
  });
}

/** `step_000012.jsonl`. */
export const stepFile = (step: number) => `step_${String(step).padStart(6, "0")}.jsonl`;
