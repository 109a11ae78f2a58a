// The sizes of a step: problems, and answers to each. Two older keys are understood where settings come in, and nowhere else: batch_size
// is the answers of a step in all, group_size the problems that share them.
import { z } from "zod";
import { ConfigError } from "../core/errors.ts";

/** What the command line, config files and `runTraining` take besides the config's own keys. */
export const olderSizes = {
  batch_size: z.int().min(2).optional().describe("answers per step in all: another way to set completions_per_prompt"),
  group_size: z
    .int()
    .min(1)
    .optional()
    .describe("older name of prompts_per_step, whose problems share the answers of a step"),
};

export interface Sizes {
  prompts_per_step: number;
  completions_per_prompt: number;
}

type GivenSizes = { [key in keyof Sizes | keyof typeof olderSizes]?: number | undefined };

export const completionsPerStep = (sizes: Sizes): number => sizes.prompts_per_step * sizes.completions_per_prompt;

/** The sizes after layers of keys, of which a later one wins. */
export function resolveSizes(before: Sizes, layers: readonly GivenSizes[]): Sizes {
  let prompts = before.prompts_per_step;
  let completions = completionsPerStep(before);
  for (const { prompts_per_step, completions_per_prompt, group_size, batch_size } of layers) {
    if (prompts_per_step !== undefined && group_size !== undefined && prompts_per_step !== group_size)
      throw conflict(`prompts_per_step=${prompts_per_step} and group_size=${group_size} are two names of one setting.`);
    // By its plain name the number of problems leaves what each gets; by its older name they share what there is.
    const kept = prompts_per_step !== undefined && batch_size === undefined ? completions / prompts : undefined;
    const each = completions_per_prompt ?? kept;
    prompts = prompts_per_step ?? group_size ?? prompts;
    completions = each === undefined ? (batch_size ?? completions) : each * prompts;
    if (batch_size !== undefined && batch_size !== completions)
      throw conflict(
        `completions_per_prompt=${each} times prompts_per_step=${prompts} is ${completions}, but batch_size=${batch_size} was given too.`,
      );
  }
  if (completions % prompts === 0) return { prompts_per_step: prompts, completions_per_prompt: completions / prompts };
  const below = Math.max(prompts, completions - (completions % prompts));
  throw new ConfigError(
    "config/batch-size",
    `batch_size=${completions} answers cannot be shared evenly by ${prompts} problems (prompts_per_step). ` +
      `Set batch_size to a multiple of ${prompts}, for example ${below} or ${below + prompts}; or completions_per_prompt instead.`,
  );
}

const conflict = (what: string) => new ConfigError("config/conflict", `${what} Leave one of them out.`);
