// The learning rate over the steps of a run: warm-up, then a schedule. What a step was trained with is in its recorded rule, so a step
// that is trained again, or replayed, is trained as it was.
import type { TrainConfig } from "./config.ts";

export const scheduleNames = ["constant", "linear", "cosine"] as const;

type Schedule = Pick<TrainConfig, "lr_schedule" | "warmup_steps" | "max_steps">;

/**
 * The share of the learning rate that a step is trained with. Warm-up: (step + 1)/w for the first w steps, so that the first update moves
 * the weights. Then, with p the share of the remaining steps that are over: constant 1 · linear 1 − p · cosine (1 + cos πp)/2 (SGDR,
 * arXiv 1608.03983, without restarts).
 */
export function rateShare(step: number, { lr_schedule, warmup_steps, max_steps }: Schedule): number {
  if (step < warmup_steps) return (step + 1) / warmup_steps;
  const over = Math.min(1, (step - warmup_steps) / Math.max(1, max_steps - warmup_steps));
  switch (lr_schedule) {
    case "constant":
      return 1;
    case "linear":
      return 1 - over;
    case "cosine":
      return (1 + Math.cos(Math.PI * over)) / 2;
  }
}
