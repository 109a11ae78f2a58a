// The config of `./whet train` from its command line: preset, then what was given, then the checks between fields.

import { z } from "zod";
import { ConfigError } from "../core/errors.ts";
import { whet } from "../core/program.ts";
import { configAliases, presetConfig, TrainConfig, validateConfig } from "../rl/config.ts";
import { describeOptions, parseArguments } from "./options.ts";

/** The config's keys, and the other way to say batch_size. */
const TrainArguments = TrainConfig.extend({
  completions_per_prompt: z
    .int()
    .min(1)
    .optional()
    .describe("another way to set batch_size: this many times group_size"),
});

export interface TrainArguments {
  /** Undefined: the engine decides. */
  preset: TrainConfig["preset"] | undefined;
  /** The given keys only. */
  given: Partial<TrainConfig>;
  completionsPerPrompt: number | undefined;
  notices: string[];
}

export const trainOptionsHelp = () => describeOptions(TrainArguments);

export function parseTrainArguments(args: readonly string[]): TrainArguments {
  const { options, given, words } = parseArguments(TrainArguments, args, configAliases);
  const notices: string[] = [];
  if (words[0] === "main") {
    words.shift();
    notices.push('the word "main" is not needed and is ignored');
  }
  if (words.length > 0)
    throw new ConfigError(
      "config/stray-word",
      `"${words[0]}" is not written as key=value. ${whet} train --help lists the keys.`,
    );
  const { completions_per_prompt: completionsPerPrompt, ...config } = options;
  const onlyGiven = Object.fromEntries(Object.entries(config).filter(([key]) => given.has(key)));
  return { preset: given.has("preset") ? options.preset : undefined, given: onlyGiven, completionsPerPrompt, notices };
}

/** The whole config and what is worth a warning. */
export function resolveConfig(
  { given, completionsPerPrompt }: Pick<TrainArguments, "given" | "completionsPerPrompt">,
  preset: TrainConfig["preset"],
): { config: TrainConfig; warnings: string[] } {
  const config: TrainConfig = { ...presetConfig(preset), ...given, preset };
  if (completionsPerPrompt !== undefined) {
    const batchSize = completionsPerPrompt * config.group_size;
    if (given.batch_size !== undefined && given.batch_size !== batchSize) {
      throw new ConfigError(
        "config/conflict",
        `completions_per_prompt=${completionsPerPrompt} times group_size=${config.group_size} is ${batchSize}, but batch_size=${given.batch_size} was given too. Leave one of them out.`,
      );
    }
    config.batch_size = batchSize;
  }
  return { config, warnings: validateConfig(config) };
}
