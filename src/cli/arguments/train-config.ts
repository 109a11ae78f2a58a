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
import { completionsPerStep, olderSizes, resolveSizes } from "../../rl/sizes.ts";
import { isRunDirectory } from "../../runs/directory.ts";
import { runKey } from "../weights/find-run.ts";
import { describeOptions, type ShownDefaults } from "./help.ts";
import { type ParsedArguments, parseArguments, refuseWords } from "./options.ts";
import { recordedSettings } from "./run-settings.ts";
import { fromEnvironment, headingOf, mistakeOf, orWithout, presetOf } from "./shown-defaults.ts";

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
  /** What a run may cost was agreed to. */
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
  const { options, layers, words, ...parsed } = parseArguments(TrainArguments.extend({ run: runKey }), args);
  const { run, ...others } = options;
  refuseWords(run === "" ? words.slice(1) : words, usage);
  const ownLayers = layers.map(({ run: _, ...layer }) => layer);
  return { ...trainArguments({ ...parsed, options: others, layers: ownLayers }), run: run || (words[0] ?? "") };
}

function trainArguments({
  options,
  given,
  layers,
  origins,
  notices,
}: Omit<ParsedArguments<typeof TrainArguments>, "words">): ParsedTrainArguments {
  const { batch_size: _, group_size: __, dry_run: dryRun, yes, ...config } = options;
  const onlyGiven = Object.fromEntries(Object.entries(config).filter(([key]) => given.has(key)));
  const preset = given.has("preset") ? options.preset : undefined;
  return { preset, dryRun, yes, given: onlyGiven, layers, origins, notices };
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

/** A file or folder that is there, behind what says what it is of. */
function fileFromAnywhere(named: string): string {
  const prefix = named.startsWith(verifiersPrefix) ? verifiersPrefix : "";
  const path = named.slice(prefix.length);
  return /\/|\.(gguf|py|[cm]?[jt]s)$/.test(path) && existsSync(path) ? prefix + resolve(path) : named;
}

/** Tests have names that are known; what a module's reward function gives is known when it does. */
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

/** The keys with what this invocation would use: after preset or run, environment, config files and what was typed. */
export function trainOptionsHelp(
  args: readonly string[] = [],
  run: (named: string) => string | undefined = () => undefined,
  schema: z.ZodObject = TrainArguments,
): string {
  const { shown, heading } = invocation(args, run);
  return [heading, "", describeOptions(schema, { ...shown, groups: trainGroups })].join("\n");
}

function invocation(
  args: readonly string[],
  runOf: (named: string) => string | undefined,
): { shown: ShownDefaults; heading: string } {
  const [parsed, wrong] = orWithout(args, (words) => {
    const typed = parseArgumentsOfRun(words, `${whet} train`);
    const { log_path: place = "" } = typed.given;
    const run = runOf(typed.run) ?? (isRunDirectory(place) ? place : undefined);
    return { ...typed, run, recorded: run === undefined ? undefined : recordedSettings(run, typed.given).config };
  });
  let mistake = wrong;
  const { run, recorded } = parsed;
  const offered = presetOf(recorded?.preset ?? parsed.preset, parsed.given);
  const { preset, usual } = offered;
  const why = recorded ? `of ${run}` : offered.why;
  const base = recorded ?? usual;
  const config: TrainConfig = { ...base, ...parsed.given };
  try {
    Object.assign(config, resolveSizes(base, parsed.layers));
    validateConfig(config);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    mistake = mistakeOf(error);
  }
  const values: Record<string, unknown> = {
    ...config,
    group_size: config.prompts_per_step,
    batch_size: completionsPerStep(config),
  };
  const notes: Record<string, string> = {};
  if (recorded) {
    const ofPreset: Readonly<Record<string, unknown>> = usual;
    for (const [key, value] of Object.entries(recorded))
      if (JSON.stringify(value) !== JSON.stringify(ofPreset[key])) notes[key] = "the run's";
  } else
    for (const { key, value, note } of fromEnvironment((name) => name in parsed.given)) {
      values[key] = value;
      notes[key] = note;
    }
  for (const key of Object.keys(parsed.layers.at(-1) ?? {})) notes[key] = "as typed";
  for (const [key, origin] of parsed.origins) notes[key] = origin;
  return { shown: { values, notes }, heading: headingOf(mistake, preset, why) };
}
