// Overlong shaping: the last stretch before the longest answer allowed costs, more with every token, so that answers learn to end in time
// (the soft zone of DAPO, arXiv 2503.14476, equation 13).
import type { Grade } from "../runs/events.ts";
import type { TrainConfig } from "./config.ts";

export type Zone = Pick<TrainConfig, "max_tokens" | "overlong_buffer" | "overlong_penalty">;

/** What is taken off the reward of an answer: nothing up to max_tokens − overlong_buffer, from there linearly up to the penalty. */
export function overlongCost(tokens: number, { max_tokens, overlong_buffer, overlong_penalty }: Zone): number {
  if (overlong_buffer === 0) return 0;
  const over = tokens - (max_tokens - overlong_buffer);
  return overlong_penalty * Math.min(1, Math.max(0, over / overlong_buffer));
}

/** A verdict with that taken off its reward; one without a reward stays as it is. */
export function shapeOverlong(grade: Grade, tokens: number, zone: Zone): Grade {
  const cost = overlongCost(tokens, zone);
  return grade.reward === null || cost === 0 ? grade : { ...grade, reward: grade.reward - cost };
}
