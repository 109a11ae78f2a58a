// fill_batch, DAPO's dynamic sampling: a group whose answers all got the same reward teaches nothing, so the next problem of the data is
// asked in its place. A batch is then the shortest stretch of the data's order with prompts_per_step groups that teach, or ends at the
// bound. Every batch has a stretch of its own, as long as the bound: which problems it takes follows from its own answers, not from what
// the batches beside it took, so it is the same at every lag. The rest of the stretch comes up again in the next epoch.
import type { TrainConfig } from "./config.ts";

/** A batch takes at most so many times prompts_per_step problems. */
const maxFill = 4;

/** Problems of the data that belong to a batch: the most that it can take. More than there are would meet itself. */
export const maxProblemsOf = (
  { fill_batch: fills, prompts_per_step: prompts }: Pick<TrainConfig, "fill_batch" | "prompts_per_step">,
  datasetSize = Number.POSITIVE_INFINITY,
): number => (fills ? Math.max(prompts, Math.min(maxFill * prompts, datasetSize)) : prompts);

/** The problems that a batch asks before it looks at any verdict, where it may ask further ones. */
export const firstAsked = (config: Pick<TrainConfig, "fill_batch" | "prompts_per_step">): number | undefined =>
  config.fill_batch ? config.prompts_per_step : undefined;
