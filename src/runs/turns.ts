// What the model wrote for a sample, turn by turn, for people: the view that files, the dashboard, the report and `./whet show` share.
import type { Episode, EventOf } from "./events.ts";

/** A group as the journal has it: its answers, and the verdicts so far. */
export interface RecordedGroup {
  sampled: EventOf<"group-sampled">;
  /** By sample. */
  graded: (EventOf<"graded"> | undefined)[];
  /** The further turns of all samples, as they came; also those that do not count. */
  turns: readonly { sampled: EventOf<"turn-sampled"> }[];
}

/** One answer of the model, and what was said to it before. */
export interface SampleTurn {
  turn: number;
  /** The turn that it goes on from; null: its tokens begin a sequence. */
  parent: number | null;
  /** Whether it counts; others are trained on nowhere. Until the episode is judged, all do. */
  counts: boolean;
  /** Said since the turn that it goes on from; empty for the answer to the group's prompt. */
  added: readonly { role: string; content: string }[];
  /** Why it begins a sequence although the conversation goes on. */
  rewritten: string | null;
  text: string;
  /** Calls of tools, as the model made them. */
  calls: readonly string[];
  tokens: number;
  truncated: boolean;
  /** Given for this turn alone, beside the verdict. */
  reward: number | null;
  /** From the request to the answer. */
  seconds: number;
}

/** The turns of a sample, in the order in which they came. */
export function turnsOf({ sampled, graded, turns }: RecordedGroup, sample: number): SampleTurn[] {
  const episode = graded[sample]?.grade.episode;
  const answer = sampled.samples[sample]!;
  const further = turns.flatMap(({ sampled: event }) => (event.sample === sample ? [event] : []));
  const { start, end } = sampled;
  const first = { ...answer, turn: 0, parent: null, added: [], rewritten: undefined, start, end };
  // One that asked for something else than the others has its first answer among the further turns.
  const all = answer.tokens > 0 || further.length === 0 ? [first, ...further] : further;
  return all.map(({ turn, parent, added, rewritten, text, calls, tokens, truncated, start, end }) => {
    const place = episode?.turns.indexOf(turn) ?? 0;
    return {
      turn,
      parent,
      counts: place >= 0,
      added,
      rewritten: rewritten ?? null,
      text,
      calls: calls ?? [],
      tokens,
      truncated,
      reward: episode?.rewards[place] ?? null,
      seconds: (end - start) / 1000,
    };
  });
}

/** What the model wrote of a sample, in all turns that count: the tokens of all, the text of the last. */
export function writtenOf(group: RecordedGroup, sample: number): { tokens: number; truncated: boolean; text: string } {
  const counted = turnsOf(group, sample).filter(({ counts }) => counts);
  const { truncated, text } = counted.at(-1) ?? group.sampled.samples[sample]!;
  return { tokens: counted.reduce((sum, { tokens }) => sum + tokens, 0), truncated, text };
}

/** How an episode went, in a line: how long, what it called, how it ended. */
export function episodeLine({ stop, turns, toolCalls, toolErrors, malformed, rewrites, diverged }: Episode): string {
  const many = (count: number, one: string, more = `${one}s`) => `${count} ${count === 1 ? one : more}`;
  return [
    many(turns.length, "turn"),
    stop === "done" ? "done" : `ended by ${stop}`,
    toolCalls > 0 ? `${many(toolCalls, "tool call")}${toolErrors > 0 ? `, ${toolErrors} of them failed` : ""}` : "",
    malformed > 0 ? `${many(malformed, "answer")} with a call that could not be read` : "",
    rewrites.length > 0 ? `${many(rewrites.length + 1, "sequence")}: ${[...new Set(rewrites)].join("; ")}` : "",
    diverged > 0 ? `${many(diverged, "turn")} of an earlier beginning not asked for again` : "",
  ]
    .filter(Boolean)
    .join(" · ");
}
