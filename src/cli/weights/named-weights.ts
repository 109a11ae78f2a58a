// Weights that a run's settings name: those it begins with (from=), and those of its references (teacher=, kl_reference=). A word names a
// run, a checkpoint of one, or a tinker:// path. What the run gets is the path: it goes on with the same weights whatever becomes of the
// other run. config.json says in `weights` what the words were.
import { resolve } from "node:path";
import { z } from "zod";
import { parseTinkerPath } from "../../client/index.ts";
import { ConfigError } from "../../core/errors.ts";
import { whet } from "../../core/program.ts";
import type { TrainConfig } from "../../rl/config.ts";
import type { EngineName } from "../../rl/prices.ts";
import { readRunConfig } from "../../runs/directory.ts";
import { recordedSettings } from "../arguments/run-settings.ts";
import { isLocal } from "../engines/index.ts";
import { borrowCheckpoint } from "./borrow-checkpoint.ts";
import { findRun } from "./find-run.ts";
import { engineOfRun, findWeights, runNamedIn } from "./find-weights.ts";

/** The keys that name weights. */
const namingKeys = ["from", "teacher", "kl_reference"] as const;
type NamingKey = (typeof namingKeys)[number];

/** What a key named. */
const Named = z.object({
  /** As it was written. */
  word: z.string(),
  /** The run that has them; "" for a path alone. */
  run: z.string(),
  checkpoint: z.string(),
  path: z.string(),
});
type Named = z.output<typeof Named>;
export type NamedWeights = Partial<Record<NamingKey, Named>>;

const Recorded = z.partialRecord(z.enum(namingKeys), Named).catch({});

/** Settings with paths in place of words. */
interface Resolved {
  given: Partial<TrainConfig>;
  weights: NamedWeights;
}

/** Finds what the given words name. What the run in `path` recorded of the same words stays. */
export function resolveNames(given: Partial<TrainConfig>, path?: string): Resolved {
  const recorded = Recorded.parse((path === undefined ? undefined : readRunConfig(path))?.["weights"]);
  const weights: NamedWeights = {};
  const paths: Partial<TrainConfig> = {};
  for (const key of namingKeys) {
    const word = given[key];
    const before = recorded[key];
    const known = before && (word === undefined || [before.word, before.path].includes(word)) ? before : undefined;
    const named = known ?? (word ? find(key, word) : undefined);
    if (!named) continue;
    weights[key] = named;
    paths[key] = named.path;
  }
  // Without a reference of its own the penalty is for the distance from the start.
  const { kl_coef: coefficient = 0, kl_reference: reference = "" } = given;
  if (weights.from && coefficient > 0 && reference === "" && !weights.kl_reference) {
    weights.kl_reference = { ...weights.from, path: samplerOf(weights.from) };
    paths.kl_reference = weights.kl_reference.path;
  }
  return { given: { ...given, ...paths }, weights };
}

function find(key: NamingKey, word: string): Named | undefined {
  if (word.startsWith("tinker://")) {
    const { kind, name } = parseTinkerPath(word);
    if (key === "from" && kind === "sampler")
      throw new ConfigError(
        "config/sampler-weights",
        `from=${word} are weights to sample from, which cannot be trained on. Name the state of the same checkpoint: checkpoints.jsonl of its run has it as state_path.`,
      );
    return { word, run: "", checkpoint: name, path: word };
  }
  const inside = runNamedIn(word);
  // A reference that names no run is a model.
  if (!inside && key !== "from") return undefined;
  const { run, checkpoint } = inside ?? { run: findRun(word), checkpoint: "" };
  const { record } = findWeights(checkpoint, run, "");
  const path = key === "from" ? record?.state_path : record?.sampler_path;
  if (!record || path === undefined)
    throw new ConfigError("config/no-checkpoint", `${key}=${word}: ${run} has no checkpoint to begin from.`);
  return { word, run, checkpoint: record.name, path };
}

function samplerOf({ word, run, checkpoint }: Named): string {
  const record = run === "" ? undefined : findWeights(checkpoint, run, "").record;
  if (record?.sampler_path !== undefined) return record.sampler_path;
  throw new ConfigError(
    "config/no-reference",
    `kl_coef is a penalty for the distance from the start, and from=${word} does not say where its sampler weights are. Name them with kl_reference=.`,
  );
}

/** Settings that weights keep from their training. */
const kept = ["model_name", "lora_rank", "train_unembed", "renderer_name", "thinking", "tokenizer"] as const;

/** The settings that a run takes over from the one whose weights it begins with, and its engine; refuses others that are given. */
export function settingsOfStart(given: Partial<TrainConfig>, { from }: NamedWeights): Partial<TrainConfig> {
  if (!from || from.run === "") return {};
  const { config } = recordedSettings(from.run);
  for (const key of kept) {
    const asked = given[key];
    if (asked === undefined || asked === "" || [asked, resolve(String(asked))].includes(config[key])) continue;
    throw new ConfigError(
      "config/other-start",
      `from=${from.word} was trained with ${key}=${config[key]}, and ${key}=${asked} is asked for. Weights keep what they were trained with: leave ${key} out, or from.`,
    );
  }
  const { kind, baseUrl } = engineOfRun(from.run, given.base_url);
  const settings = Object.fromEntries(kept.map((key) => [key, config[key]])) as Partial<TrainConfig>;
  return given.engine !== undefined || given.base_url !== undefined
    ? settings
    : { ...settings, ...(kind ? { engine: kind } : { base_url: baseUrl }) };
}

/** Copies the weights to the engine of the run in `path`, before it is started. `begun`: the run goes on from its own checkpoint. */
export function borrowWeights(
  weights: NamedWeights,
  path: string,
  { kind, stateDir, begun }: { kind: EngineName; stateDir: string; begun: boolean },
): void {
  for (const key of namingKeys) {
    const named = weights[key];
    if (!named || (key === "from" && begun)) continue;
    const other = named.run === "" ? undefined : readRunConfig(named.run)?.["engine"];
    if (other !== undefined && (isLocal(other) || isLocal(kind)) && (other !== kind || kind === "skyrl"))
      throw new ConfigError(
        "config/other-engine",
        other === kind
          ? `${key}=${named.word} lies with the SkyRL of that run, which no other run's can read. Go on with it (${whet} resume), or train on a SkyRL server of your own with base_url=.`
          : `${key}=${named.word} lies with engine=${String(other)}, and this run is trained with engine=${kind}. Train it on the same one.`,
      );
    if (kind === "embedded") borrowCheckpoint(named.path, named.run || path, stateDir);
  }
}
