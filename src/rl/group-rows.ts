// The turns of a group that were drawn so far, and which of them answers a prompt.
import type { Message } from "../renderers/index.ts";
import { behind, type TurnRow } from "./completion.ts";
import type { Draw } from "./conversation.ts";
import type { RememberedGroup } from "./remembered-groups.ts";

/** A turn of a sample; `isClaimed`: the episode has asked for it since it began. */
export interface Row extends TurnRow {
  isClaimed: boolean;
  truncated: boolean;
  answer: Message | undefined;
}

/** When the last answer of a recorded group came. */
export const sampledUntil = ({ sampled, turns }: Pick<RememberedGroup, "sampled" | "turns">): number =>
  turns.reduce((last, turn) => Math.max(last, turn.sampled.end), sampled.end);

/** A recorded group's turns, by sample. */
export function rowsOf({ sampled, arrays, turns }: Pick<RememberedGroup, "sampled" | "arrays" | "turns">): Row[][] {
  const { prompt, tokens, logprobs } = arrays() as { prompt: Int32Array; tokens: Int32Array; logprobs: Float32Array };
  const anew = { isClaimed: false, answer: undefined };
  let offset = 0;
  const rows = sampled.samples.map(({ tokens: count, truncated }): Row[] => {
    if (count === 0) return [];
    const arraysOf = behind(prompt, tokens.subarray(offset, offset + count), logprobs.subarray(offset, offset + count));
    offset += count;
    return [{ turn: 0, parent: null, context: prompt, ...arraysOf, truncated, ...anew }];
  });
  for (const { sampled: event, arrays } of turns) {
    const own = arrays() as { context: Int32Array; tokens: Int32Array; logprobs: Float32Array };
    const { turn, parent, truncated } = event;
    rows[event.sample]?.push({ turn, parent, ...own, truncated, ...anew });
  }
  return rows;
}

export const isEqual = (a: Int32Array, b: Int32Array): boolean =>
  a === b || (a.length === b.length && a.every((id, at) => id === b[at]));

/** Rows are mostly in the order of their turns. */
function rowOf(rows: readonly Row[], turn: number | null): Row | undefined {
  if (turn === null) return undefined;
  return rows[turn]?.turn === turn ? rows[turn] : rows.find((row) => row.turn === turn);
}

/** What is known of prompts' lengths: of a thousand turns that all say the same, one is as long as what is asked. */
const lengths = new WeakMap<Row, number>();

function promptLength(rows: readonly Row[], row: Row): number {
  const known = lengths.get(row);
  if (known !== undefined) return known;
  const before = rowOf(rows, row.parent);
  const length = row.context.length + (before ? promptLength(rows, before) + before.tokens.length : 0);
  lengths.set(row, length);
  return length;
}

/** Whether a turn's prompt, from its root on, is this one. */
export function isPrompt(prompt: Int32Array, rows: readonly Row[], row: Row): boolean {
  if (promptLength(rows, row) !== prompt.length) return false;
  const { parent, context } = row;
  const start = prompt.length - context.length;
  if (start < 0 || !isEqual(prompt.subarray(start), context)) return false;
  if (parent === null) return start === 0;
  const before = rowOf(rows, parent);
  if (!before) return false;
  const end = start - before.tokens.length;
  return (
    end >= 0 && isEqual(prompt.subarray(end, start), before.tokens) && isPrompt(prompt.subarray(0, end), rows, before)
  );
}

/** The prompt that most ask for; of several, the first. */
export function mostCommon(asks: readonly Draw[]): Draw | undefined {
  const counts = asks.map(({ prompt }) => asks.filter((ask) => isEqual(ask.prompt, prompt)).length);
  return asks[counts.indexOf(Math.max(...counts))];
}
