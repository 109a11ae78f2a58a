// What was said in an episode, turn by turn, for people: the view that the dashboard, the report and `./whet show` share.
import type { Episode } from "./events.ts";
import type { RecordedGroup } from "./rollouts.ts";

/** One answer of the model, and what was said to it before. */
export interface SaidTurn {
  turn: number;
  /** The turn that it goes on from; null: its tokens begin a sequence. */
  parent: number | null;
  /** Whether it counts; others are trained on nowhere. */
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
export function talkOf({ sampled, graded, turns }: RecordedGroup, sample: number): SaidTurn[] {
  const episode = graded[sample]?.grade.episode;
  const answer = sampled.samples[sample]!;
  const further = turns.filter((turn) => turn.sampled.sample === sample);
  const known = { turn: 0, parent: null, added: [], rewritten: null };
  const first: SaidTurn = { ...known, ...countsAs(episode, 0), ...said(answer), ...secondsOf(sampled) };
  return [
    // One that asked for something else than the others has its first answer among the further turns.
    ...(answer.tokens > 0 || further.length === 0 ? [first] : []),
    ...further.map(({ sampled: event }): SaidTurn => {
      const { turn, parent, added, rewritten = null } = event;
      return { ...countsAs(episode, turn), turn, parent, added, rewritten, ...said(event), ...secondsOf(event) };
    }),
  ];
}

/** Until an episode is judged, all of its turns count. */
function countsAs(episode: Episode | undefined, turn: number): Pick<SaidTurn, "counts" | "reward"> {
  const place = episode?.turns.indexOf(turn) ?? 0;
  return { counts: place >= 0, reward: episode?.rewards[place] ?? null };
}

const said = ({ text, calls = [], tokens, truncated }: RecordedGroup["sampled"]["samples"][number]) => ({
  text,
  calls,
  tokens,
  truncated,
});

const secondsOf = ({ start, end }: { start: number; end: number }) => ({ seconds: (end - start) / 1000 });

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
