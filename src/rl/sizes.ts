// The two sizes of a step, by either pair of names: prompts and completions per prompt, or the older group_size, which shares batch_size.
import { z } from "zod";
import { ConfigError } from "../core/errors.ts";

/** The plain names; the config itself keeps the older ones. */
export const sizeKeys = {
  prompts_per_step: z.int().min(1).optional().describe("problems per step"),
  completions_per_prompt: z.int().min(1).optional().describe("answers sampled for each of them: the G of GRPO"),
};

export interface Sizes {
  batch_size: number;
  group_size: number;
}

type GivenSizes = { [key in keyof Sizes | keyof typeof sizeKeys]?: number | undefined };

/** The sizes after one layer of keys. By their plain names they are set one by one; by the older ones, group_size shares a batch_size that stays. */
export function applySizes(before: Sizes, layer: GivenSizes): Sizes {
  const { prompts_per_step: prompts, completions_per_prompt: perPrompt, group_size: group, batch_size: batch } = layer;
  if (prompts !== undefined && group !== undefined && prompts !== group)
    throw conflict(`prompts_per_step=${prompts} and group_size=${group} are two names of one setting.`);
  const groupSize = prompts ?? group ?? before.group_size;
  if (prompts === undefined && perPrompt === undefined)
    return { group_size: groupSize, batch_size: batch ?? before.batch_size };
  const each = perPrompt ?? (batch === undefined ? before.batch_size / before.group_size : batch / groupSize);
  const batchSize = each * groupSize;
  if (batch !== undefined && batch !== batchSize)
    throw conflict(
      `completions_per_prompt=${each} times prompts_per_step=${groupSize} is ${batchSize}, but batch_size=${batch} was given too.`,
    );
  return { group_size: groupSize, batch_size: batchSize };
}

const conflict = (what: string) => new ConfigError("config/conflict", `${what} Leave one of them out.`);
