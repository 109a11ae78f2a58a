// The config of `./whet train` from its command line: preset, then config files, then what was given, then the checks between fields.

import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { z } from "zod";
import { ConfigError } from "../../core/errors.ts";
import { whet } from "../../core/program.ts";
import { fromAnywhere } from "../../data/sources.ts";
import { TrainConfig, validateConfig } from "../../rl/config.ts";
import { configGroups, configKeys } from "../../rl/config-keys.ts";
import { keysWith } from "../../rl/config-roles.ts";
import { codeEnvironment } from "../../rl/environment/code.ts";
import { verifiersPrefix } from "../../rl/environment/environment.ts";
import { olderSizes, resolveSizes } from "../../rl/sizes.ts";
import { runKey } from "../weights/find-run.ts";
import { type ParsedArguments, parseArguments, parseWithRun, refuseWords } from "./options.ts";

/** What a person types: the config's keys, older names of two of them, and switches of the command itself. */
export const TrainArguments = TrainConfig.extend({
  ...olderSizes,
  dry_run: z
    .boolean()
    .default(false)
    .describe("check everything up to the first billed call, show the forecast, and end; --dry-run for short"),
  yes: z.boolean().default(false).describe("begin a run that is billed without the question that a terminal is asked"),
});
type TrainArguments = z.output<typeof TrainArguments>;

/** Keys about the command itself, not about what it trains. */
export const switches = ["dry_run", "yes"] as const;

const namesOf = (keys: object) => Object.keys(keys) as (keyof TrainArguments)[];

/** The keys in the order of help and docs/config.md, under the titles of their groups. */
export const trainGroups: Readonly<Record<string, readonly (keyof TrainArguments)[]>> = {
  ...Object.fromEntries(Object.entries(configGroups).map(([title, keys]) => [title, namesOf(keys)])),
  Steps: [...namesOf(configGroups.Steps), ...namesOf(olderSizes)],
  "This command": switches,
};

export interface ParsedTrainArguments {
  /** Undefined: the engine decides. */
  preset: TrainConfig["preset"] | undefined;
  dryRun: boolean;
  /** The cost is agreed to without a question. */
  yes: boolean;
  /** The given keys of the config only. */
  given: Partial<TrainConfig>;
  /** The given keys of each config file and, last, of the command line. */
  layers: readonly Partial<TrainArguments>[];
  /** Where keys of config files stand. */
  origins: ReadonlyMap<string, string>;
  notices: string[];
}

/** Parses what follows `usage`, the command. */
export function parseTrainArguments(args: readonly string[], usage = `${whet} train`): ParsedTrainArguments {
  const { words, ...parsed } = parseArguments(TrainArguments, args);
  if (words[0] === "main") {
    words.shift();
    parsed.notices.push('the word "main" is not needed and is ignored');
  }
  refuseWords(words, usage);
  return trainArguments(parsed);
}

/** The same with a run, `run=` or the one word; "" where none is named. */
export function parseArgumentsOfRun(args: readonly string[], usage: string): ParsedTrainArguments & { run: string } {
  const parsed = parseWithRun(TrainArguments.extend({ run: runKey }), args, usage);
  return { ...trainArguments(parsed), run: parsed.options.run };
}

function trainArguments({
  options,
  given,
  layers,
  origins,
  notices,
}: Omit<ParsedArguments<typeof TrainArguments>, "words">): ParsedTrainArguments {
  const ofConfig = Object.entries(options).filter(([key]) => given.has(key) && key in TrainConfig.shape);
  const preset = given.has("preset") ? options.preset : undefined;
  const { dry_run: dryRun, yes } = options;
  return { preset, dryRun, yes, given: Object.fromEntries(ofConfig), layers, origins, notices };
}

/** The whole config, what is given over `base`, and what is worth a warning. Files are named so that the run finds them from any folder. */
export function resolveConfig(
  { given, layers }: Pick<ParsedTrainArguments, "given" | "layers">,
  base: TrainConfig,
): { config: TrainConfig; warnings: string[] } {
  const config: TrainConfig = { ...base, ...given, ...resolveSizes(base, layers) };
  const data = (["train_data", "test_data"] as const).find((key) => given[key]);
  if (data && config.env !== "" && !codeEnvironment(config.env))
    throw new ConfigError(
      "config/conflict",
      `env=${config.env} has problems of its own, and ${data}=${given[data]} names others. Leave one of them out.`,
    );
  for (const key of keysWith("path"))
    if (configKeys[key].path === "data") config[key] = fromAnywhere(config[key]);
    else config[key] = fileFromAnywhere(config[key]);
  checkRewardNames(config);
  return { config, warnings: validateConfig(config) };
}

/** The absolute path of a file or folder that is there, with its prefix (verifiers:) kept. */
function fileFromAnywhere(named: string): string {
  const prefix = named.startsWith(verifiersPrefix) ? verifiersPrefix : "";
  const path = named.slice(prefix.length);
  return /\/|\.(gguf|py|[cm]?[jt]s)$/.test(path) && existsSync(path) ? prefix + resolve(path) : named;
}

/** Refuses names of rewards that tests do not give; those of a module's reward function are known only when it runs. */
function checkRewardNames({ env, reward_weights: weights, format_coef }: TrainConfig): void {
  if (env !== "" && !codeEnvironment(env)) return;
  const name = Object.keys(weights).find((name) => !["tests", "length"].includes(name));
  if (name === undefined) return;
  throw new ConfigError(
    "config/no-such-reward",
    name === "format"
      ? `reward_weights has format, whose weight is format_coef (${format_coef}). Set format_coef=${weights[name]} in its place.`
      : `reward_weights has ${name}, and programs are judged by tests and length. Weigh these, or give a reward of your own with env=.`,
  );
}
