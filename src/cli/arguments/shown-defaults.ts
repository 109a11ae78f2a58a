// What help shows of an invocation: not a schema's defaults but what this command line would use here, and where each value comes from.
import type { z } from "zod";
import { ConfigError } from "../../core/errors.ts";
import { presetConfig, TrainConfig } from "../../rl/config.ts";
import { configKeys } from "../../rl/config-keys.ts";
import { keysWith } from "../../rl/config-roles.ts";
import { readRunConfig } from "../../runs/directory.ts";
import { redact } from "../../runs/log.ts";
import { engineKind, presetOfEngine } from "../parts/connect.ts";
import { describeOptions } from "./help.ts";
import { parseArguments } from "./options.ts";
import { trainGroups } from "./train-config.ts";

/** The values that come from the environment: those of keys that were not given. */
export function fromEnvironment(given: (key: string) => boolean): { key: string; value: string; note: string }[] {
  return keysWith("variable").flatMap((key) => {
    const note = configKeys[key].variable;
    const value = process.env[note];
    return value && !given(key) ? [{ key, value: redact(value), note }] : [];
  });
}

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
export function orWithout<T>(args: readonly string[], use: (args: readonly string[]) => T): [T, mistake: string] {
  try {
    return [use(args), ""];
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return [use([]), mistakeOf(error)];
  }
}

export const mistakeOf = ({ message }: ConfigError) => `What was typed cannot be used: ${message} `;

export const headingOf = (mistake: string, preset: string, why: string) =>
  `${mistake}Defaults shown are what this command would use here: preset=${preset} (${why}).`;

/** The keys of a command that asks a run's model: the preset's values, the run's own, the environment's, what was typed. */
export function describeRunOptions<Schema extends z.ZodObject>(
  schema: Schema,
  args: readonly string[],
  runFor: (options: z.output<Schema>, given: ReadonlySet<string>, words: readonly string[]) => string,
): string {
  const [{ options, given, origins, run }, mistake] = orWithout(args, (typed) => {
    const parsed = parseArguments(schema, typed);
    return { ...parsed, run: runFor(parsed.options, parsed.given, parsed.words) };
  });
  const recorded = run === "" ? undefined : readRunConfig(run);
  const named = (given.has("preset") ? options : recorded)?.["preset"];
  const asked = named === undefined ? undefined : TrainConfig.shape.preset.parse(named);
  const baseUrl = given.has("base_url") ? String(options["base_url"]) : String(recorded?.["base_url"] ?? "");
  const model = given.has("model_name") ? String(options["model_name"]) : undefined;
  const engine = given.has("engine") ? (options["engine"] as TrainConfig["engine"]) : "";
  const { preset, usual, why } = presetOf(asked, {
    base_url: baseUrl,
    engine,
    ...(model !== undefined && { model_name: model }),
  });

  const values: Record<string, unknown> = {};
  const notes: Record<string, string> = {};
  const ofPreset: Record<string, unknown> = usual;
  for (const key of Object.keys(schema.shape)) {
    if (given.has(key)) {
      values[key] = options[key];
      notes[key] = origins.get(key) ?? "as typed";
    } else if (key in ofPreset) {
      const ofRun = recorded && key in recorded;
      values[key] = ofRun ? recorded[key] : ofPreset[key];
      if (ofRun && JSON.stringify(recorded[key]) !== JSON.stringify(ofPreset[key])) notes[key] = "the run's";
    }
  }
  values["preset"] = preset;
  if (!recorded)
    for (const { key, value, note } of fromEnvironment((name) => given.has(name) || !(name in schema.shape))) {
      values[key] = value;
      notes[key] = note;
    }
  const reason = !given.has("preset") && recorded ? `of ${run}` : why;
  return [headingOf(mistake, preset, reason), "", describeOptions(schema, { values, notes, groups: trainGroups })].join(
    "\n",
  );
}
