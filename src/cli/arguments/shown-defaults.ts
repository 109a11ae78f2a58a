// What help shows of an invocation: not a schema's defaults but what this command line would use here, and where each value comes from.
import type { z } from "zod";
import { ConfigError } from "../../core/errors.ts";
import { whet } from "../../core/program.ts";
import { presetConfig, TrainConfig, validateConfig } from "../../rl/config.ts";
import { configKeys } from "../../rl/config-keys.ts";
import { keysWith } from "../../rl/config-roles.ts";
import { completionsPerStep, resolveSizes } from "../../rl/sizes.ts";
import { isRunDirectory, readRunConfig } from "../../runs/directory.ts";
import { redact } from "../../runs/log.ts";
import { engineKind, presetOfEngine } from "../parts/connect.ts";
import { describeOptions } from "./help.ts";
import type { ParsedArguments } from "./options.ts";
import { recordedSettings } from "./run-settings.ts";
import { parseArgumentsOfRun, TrainArguments, trainGroups } from "./train-config.ts";

type Values = Readonly<Record<string, unknown>>;

/** The preset that help shows, its settings, and why it is that one. Help asks no server. */
export function presetOf(
  given: TrainConfig["preset"] | undefined,
  asked: Partial<Pick<TrainConfig, "base_url" | "engine" | "model_name">> = {},
) {
  const kind = engineKind(asked);
  const unasked: Partial<Record<typeof kind, string>> = {
    embedded: "no TINKER_API_KEY and no server is named",
    hosted: "TINKER_API_KEY is set",
  };
  const why =
    kind === "server"
      ? "a server is named; one that offers only the bundled model gets nano"
      : ((asked.engine ? undefined : unasked[kind]) ?? `engine=${kind}`);
  const engine = kind === "server" ? "deepcoder" : presetOfEngine(kind, asked.model_name);
  const preset = given ?? engine;
  return { preset, usual: presetConfig(preset, engine), why: given ? "given" : why };
}

/** What `use` makes of the arguments; of arguments that are wrong, what it makes of none, and what is wrong with them. */
function orWithout<T>(args: readonly string[], use: (args: readonly string[]) => T): [T, mistake: string] {
  try {
    return [use(args), ""];
  } catch (error) {
    return [use([]), mistakeOf(error)];
  }
}

function mistakeOf(error: unknown): string {
  if (!(error instanceof ConfigError)) throw error;
  return `What was typed cannot be used: ${error.message} `;
}

/** By key, the variable that gives its value where nothing else does. */
const variables: Readonly<Record<string, string | undefined>> = Object.fromEntries(
  keysWith("variable").map((key) => [key, configKeys[key].variable]),
);

interface Invocation {
  given: ReadonlySet<string>;
  origins: ReadonlyMap<string, string>;
  preset: ReturnType<typeof presetOf>;
  /** What a run was recorded with; undefined where none is meant. */
  recorded: Values | undefined;
  values: Values;
  mistake: string;
}

/** The keys of a schema with the values that they would have, and where each that is not the preset's comes from. */
function describeInvocation(schema: z.ZodObject, invocation: Invocation): string {
  const { given, origins, recorded, mistake } = invocation;
  const { preset, usual, why } = invocation.preset;
  const ofPreset: Values = usual;
  const values: Record<string, unknown> = { ...invocation.values };
  const notes: Record<string, string> = {};
  for (const key of Object.keys(schema.shape))
    if (given.has(key)) notes[key] = origins.get(key) ?? "as typed";
    else if (recorded && key in recorded && key in ofPreset) {
      if (JSON.stringify(recorded[key]) !== JSON.stringify(ofPreset[key])) notes[key] = "the run's";
    } else if (!recorded) {
      const name = variables[key];
      const value = name && process.env[name];
      if (value) {
        values[key] = redact(value);
        notes[key] = name;
      }
    }
  const heading = `${mistake}Defaults shown are what this command would use here: preset=${preset} (${why}).`;
  return [heading, "", describeOptions(schema, { values, notes, groups: trainGroups })].join("\n");
}

/** The keys of a command that asks a run's model: the preset's values, the run's own, the environment's, what was typed. */
export function describeRunOptions<Schema extends z.ZodObject>(
  schema: Schema,
  args: readonly string[],
  parse: (args: readonly string[]) => ParsedArguments<Schema>,
  runFor: (parsed: ParsedArguments<Schema>) => string,
): string {
  const [{ options, given, origins, run }, mistake] = orWithout(args, (typed) => {
    const parsed = parse(typed);
    return { ...parsed, run: runFor(parsed) };
  });
  const recorded = run === "" ? undefined : readRunConfig(run);
  const named = (given.has("preset") ? options : recorded)?.["preset"];
  const typed: Values = Object.fromEntries(Object.entries(options).filter(([key]) => given.has(key)));
  const offered = presetOf(named === undefined ? undefined : TrainConfig.shape.preset.parse(named), {
    base_url: String(typed["base_url"] ?? recorded?.["base_url"] ?? ""),
    engine: (typed["engine"] ?? "") as TrainConfig["engine"],
    ...(typed["model_name"] !== undefined && { model_name: String(typed["model_name"]) }),
  });
  const preset = { ...offered, why: !given.has("preset") && recorded ? `of ${run}` : offered.why };
  const values = { ...offered.usual, ...recorded, ...typed, preset: offered.preset };
  const shown = Object.fromEntries(Object.entries(values).filter(([key]) => key in offered.usual || given.has(key)));
  return describeInvocation(schema, { given, origins, preset, recorded, values: shown, mistake });
}

/** The keys with what this invocation would use: after preset or run, environment, config files and what was typed. */
export function trainOptionsHelp(
  args: readonly string[],
  runNamed: (word: string) => string | undefined = () => undefined,
  schema: z.ZodObject = TrainArguments,
): string {
  const [{ parsed, run, recorded }, wrong] = orWithout(args, (words) => {
    const parsed = parseArgumentsOfRun(words, `${whet} train`);
    const { log_path: place = "" } = parsed.given;
    const run = runNamed(parsed.run) ?? (isRunDirectory(place) ? place : undefined);
    return { parsed, run, recorded: run === undefined ? undefined : recordedSettings(run, parsed.given).config };
  });
  const offered = presetOf(recorded?.preset ?? parsed.preset, parsed.given);
  const base = recorded ?? offered.usual;
  const config: TrainConfig = { ...base, ...parsed.given };
  let mistake = wrong;
  try {
    Object.assign(config, resolveSizes(base, parsed.layers));
    validateConfig(config);
  } catch (error) {
    mistake = mistakeOf(error);
  }
  return describeInvocation(schema, {
    given: new Set(parsed.layers.flatMap((layer) => Object.keys(layer))),
    origins: parsed.origins,
    preset: { ...offered, why: recorded ? `of ${run}` : offered.why },
    recorded,
    values: { ...config, group_size: config.prompts_per_step, batch_size: completionsPerStep(config) },
    mistake,
  });
}
