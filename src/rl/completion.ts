// From drawn turns to a completion: the sequences that training takes, each of the model's own tokens in one of them.
import type { Grade } from "../runs/events.ts";
import { turnPaths } from "../runs/turn-paths.ts";
import { joinTurns, type Sequence, type Turn } from "./datums.ts";
import type { Completion } from "./rollout.ts";

/** A turn with its tokens. */
export interface TurnRow {
  turn: number;
  parent: number | null;
  /** What the model was shown behind the turn that it goes on from; all of the prompt where it goes on from none. */
  context: Int32Array;
  tokens: Int32Array;
  logprobs: Float32Array;
  truncated: boolean;
  /** The one answer behind its prompt, where it was made already. */
  sequences?: readonly Sequence[];
}

type Trained = Pick<Completion, "sequences" | "tokens" | "logprobs">;

/** An answer behind its prompt. */
export function behind(prompt: Int32Array, tokens: Int32Array, logprobs: Float32Array): Trained {
  const sequence = joinTurns([{ context: prompt, tokens, logprobs }]);
  return {
    sequences: [sequence],
    tokens: sequence.tokens.subarray(prompt.length),
    logprobs: sequence.logprobs.subarray(prompt.length - 1),
  };
}

/** A sample's turns with its verdict. Without an episode the answer of the group's request is all there is. */
export function completionOf(rows: readonly TurnRow[], grade: Grade): Completion {
  const counted = grade.episode?.turns ?? [0];
  const [only] = rows;
  if (only && counted.length === 1 && only.turn === counted[0] && only.parent === null) {
    const { sequences, tokens, logprobs, truncated } = only;
    const trained = sequences ? { sequences, tokens, logprobs } : behind(only.context, tokens, logprobs);
    return { ...trained, truncated, grade };
  }
  const byTurn = new Map(rows.map((row) => [row.turn, row]));
  const nothing = { tokens: new Int32Array(), logprobs: new Float32Array() };
  const paths = turnPaths(
    rows,
    counted.filter((turn) => byTurn.has(turn)),
  );
  const sequences = paths.map(({ path, own }) =>
    joinTurns(
      path.flatMap((turn): Turn[] => {
        const row = byTurn.get(turn)!;
        return own.has(turn)
          ? [row]
          : [
              { ...nothing, context: row.context },
              { ...nothing, context: row.tokens },
            ];
      }),
    ),
  );
  const trained = paths.flatMap(({ path, own }) =>
    path.filter((turn) => own.has(turn)).map((turn) => byTurn.get(turn)!),
  );
  return {
    sequences: sequences.filter(({ mask }) => mask.length > 0),
    tokens: Int32Array.from(trained.flatMap(({ tokens }) => [...tokens])),
    logprobs: Float32Array.from(trained.flatMap(({ logprobs }) => [...logprobs])),
    truncated: grade.episode?.stop === "truncated",
    grade,
  };
}
