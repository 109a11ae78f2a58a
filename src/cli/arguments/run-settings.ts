// Settings of a command that looks at a run: the preset's, then the run's own, then what was given.
import { z } from "zod";
import { ConfigError } from "../../core/errors.ts";
import { presetConfig, presetConfigFor, TrainConfig } from "../../rl/config.ts";
import { configGroups } from "../../rl/config-keys.ts";
import { pickWith, roleOf } from "../../rl/config-roles.ts";
import { readRunConfig } from "../../runs/directory.ts";
import { isRedacted } from "../../runs/log.ts";
import { isLocal } from "../engines/index.ts";
import { presetFor } from "../parts/connect.ts";
import { findRun, newestRun } from "../weights/find-run.ts";
import { runNamedIn } from "../weights/find-weights.ts";

/** The keys of TrainConfig that every command takes which asks a model and grades what it answers. */
export const askingKeys = pickWith("asking");

/** The key of commands that can do without a run. */
export const askedRunKey = z
  .string()
  .default("")
  .describe(
    "a run: its name, its path or latest; unless named the newest. none, or model_name=, preset= or base_url= alone: no run",
  );

/** The key of what answers in such a command. */
export const checkpointKey = z
  .string()
  .default("")
  .describe(
    "a checkpoint's name in the run, a tinker:// path of sampler weights, RUN or RUN/NAME of another run, or base; the last unless named",
  );

/** The run whose model is asked; "" for none. A run that checkpoint= names is meant where run= names no other. */
export function askedRun(named: string, checkpoints: readonly string[], given: ReadonlySet<string>): string {
  if (named !== "") return named === "none" ? "" : findRun(named);
  for (const word of checkpoints) {
    const inside = runNamedIn(word);
    if (inside) return inside.run;
  }
  const chosen = ["model_name", "preset", "base_url", "engine"].some((key) => given.has(key));
  return chosen || checkpoints.some((word) => word.startsWith("tinker://")) ? "" : (newestRun() ?? "");
}

/**
 * The settings that a run was last trained with, with a notice for each that was not written down whole. A value that is refused today
 * does no harm where another one is `given`.
 */
export function recordedSettings(
  run: string,
  given: Readonly<Record<string, unknown>> = {},
): { config: TrainConfig; notices: string[] } {
  const recorded = readRunConfig(run);
  if (!recorded)
    throw new ConfigError("config/no-run", `${run} holds no run that can be read (no readable config.json).`);
  const entries = Object.entries(recorded).filter(([key]) => key in TrainConfig.shape && roleOf(key) !== "start");
  const known = Object.fromEntries(entries.filter(([, value]) => !isRedacted(value)));
  const preset = TrainConfig.shape.preset.catch("deepcoder").parse(known["preset"]);
  const settings: Record<string, unknown> = { ...presetConfig(preset), ...known };
  for (const { path, message } of TrainConfig.safeParse(settings).error?.issues ?? []) {
    const [key] = path as [keyof TrainConfig];
    if (Object.hasOwn(given, key)) settings[key] = presetConfig(preset)[key];
    else
      throw new ConfigError(
        "config/bad-value",
        `${run}/config.json: ${path.join(".")} is not valid: ${message}. Mend it, or give the key with the command.`,
      );
  }
  const notices = entries.flatMap(([key, value]) =>
    isRedacted(value) ? [`${key} was written down without its password and is left out; give it again`] : [],
  );
  const config = TrainConfig.parse(settings);
  // Servers are known by their addresses.
  const named = given["base_url"] === undefined && isLocal(config.engine) ? config.engine : "";
  return { config: { ...config, engine: named }, notices };
}

/** `options` are the command's own; those that TrainConfig has count only where they were given. Without a run, `run` is "". */
export async function settingsOfRun(
  run: string,
  options: Readonly<Record<string, unknown>>,
  given: ReadonlySet<string>,
): Promise<TrainConfig> {
  const chosen = Object.fromEntries(
    Object.entries(options).filter(([key]) => given.has(key) && key in TrainConfig.shape),
  ) as Partial<TrainConfig>;
  // Nothing is trained here, so recorded settings of training may hold values that are refused today.
  const base =
    run === ""
      ? await presetConfigFor(chosen.preset, () => presetFor(chosen))
      : recordedSettings(run, { ...configGroups.Learning, ...configGroups["Teachers and corrections"], ...chosen })
          .config;
  return { ...base, ...chosen };
}
