// What `./whet train` is to train: the settings of a new run, or those of the run in its folder, with what was given over them.
import { presetConfigFor, type TrainConfig } from "../../rl/config.ts";
import type { EngineName } from "../../rl/prices.ts";
import type { RunView } from "../../runs/view.ts";
import { engineKind, presetFor } from "../parts/connect.ts";
import { engineOfRun } from "../weights/find-weights.ts";
import { type NamedWeights, resolveNames, settingsOfStart } from "../weights/named-weights.ts";
import { recordedSettings } from "./run-settings.ts";
import { type ParsedTrainArguments, resolveConfig } from "./train-config.ts";

/** What is trained, and where. */
export interface Plan {
  config: TrainConfig;
  kind: EngineName;
  /** What from=, teacher= and kl_reference= name. */
  weights: NamedWeights;
  notices: string[];
}

export async function planNew(parsed: ParsedTrainArguments): Promise<Plan> {
  const { given, weights } = resolveNames(parsed.given);
  const kept = settingsOfStart(given, weights);
  const preset = await presetConfigFor(parsed.preset, () => presetFor({ ...kept, ...given }));
  const { config, warnings } = resolveConfig({ ...parsed, given }, { ...preset, ...kept });
  return { config, kind: engineKind(config), weights, notices: [...parsed.notices, ...warnings] };
}

/** On the engine that has the run's checkpoints, whatever the environment names now. */
export function planToGoOn(parsed: ParsedTrainArguments, path: string): Plan {
  const recorded = recordedSettings(path, parsed.given);
  const { base_url: given, engine: named } = parsed.given;
  const engine =
    given === undefined && named === undefined
      ? engineOfRun(path, undefined)
      : { kind: undefined, baseUrl: given ?? "" };
  const base = { ...recorded.config, base_url: engine.baseUrl };
  const { given: settings, weights } = resolveNames(parsed.given, path);
  const { config, warnings } = resolveConfig({ ...parsed, given: settings }, base);
  const notices = recorded.notices.filter((notice) => !Object.keys(parsed.given).some((key) => notice.startsWith(key)));
  return {
    config,
    kind: engine.kind ?? engineKind(config),
    weights,
    notices: [...parsed.notices, ...notices, ...warnings],
  };
}

/** Saved as final, at the steps asked for, and measured if it was to be. */
export function isFinished(view: RunView, config: TrainConfig): boolean {
  const last = view.newest;
  if (!last?.final || config.max_steps < 0 || last.step < config.max_steps) return false;
  const measured = Number(view.config["eval_problems"] ?? 0) > 0 && config.eval_every > 0;
  return !measured || view.evaluations.has(last.step);
}
