// Weights that are asked: a run's checkpoint, another run's, or a base model, each with its settings and on the engine that has it. All
// of them are found before anything is started, and opened before the first sample.
import { createHash } from "node:crypto";
import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { SamplingClient } from "../../client/index.ts";
import { ConfigError, messageOf } from "../../core/errors.ts";
import { scratchFolder } from "../../core/files.ts";
import type { Renderer } from "../../renderers/index.ts";
import type { TrainConfig } from "../../rl/config.ts";
import { keepsSamplers } from "../../rl/frozen-samplers.ts";
import type { EngineName } from "../../rl/prices.ts";
import type { Logger } from "../../runs/log.ts";
import { settingsOfRun } from "../arguments/run-settings.ts";
import { isLocal } from "../engines/index.ts";
import { type EngineConnection, engineFiles, engineKind } from "../parts/connect.ts";
import { Workbench } from "../parts/workbench.ts";
import { borrowCheckpoint } from "./borrow-checkpoint.ts";
import { engineOfRun, type FoundWeights, findWeights } from "./find-weights.ts";

/** Weights, and the settings that they are asked with. */
export interface AskPlan {
  weights: FoundWeights;
  config: TrainConfig;
  engine: { kind: EngineName; baseUrl: string };
}

/** Weights that are ready to be asked. */
export interface Asked {
  label: string;
  sampler: SamplingClient;
  renderer: Renderer;
  engine: EngineConnection;
  bench: Workbench;
}

/** Settings that another run's weights bring along: the model and how it is asked. Problems, limits and rules are those of `config`. */
const ownKeys = ["model_name", "renderer_name", "thinking", "tokenizer", "base_url", "context_window"] as const;

/** Finds the weights that a word names beside `run`, whose settings are `config`; `options` are the command's own. */
export async function planAsking(
  which: string,
  run: string,
  config: TrainConfig,
  options: Readonly<Record<string, unknown>> & { base_url: string },
  given: ReadonlySet<string>,
): Promise<AskPlan> {
  const weights = findWeights(which, run, config.model_name);
  const { baseUrl, kind = engineKind({ base_url: baseUrl, engine: config.engine }) } = engineOfRun(
    weights.run,
    given.has("base_url") ? options.base_url : undefined,
  );
  const engine = { kind, baseUrl };
  if (weights.run === run) return { weights, config, engine };
  const own = await settingsOfRun(weights.run, options, given);
  return { weights, config: { ...config, ...Object.fromEntries(ownKeys.map((key) => [key, own[key]])) }, engine };
}

/** Opens the weights of the plans, those on the same engine on one connection, for `work`; everything is closed after it. */
export async function withWeights<T>(
  plans: readonly AskPlan[],
  logger: Logger,
  signal: AbortSignal,
  work: (asked: readonly Asked[]) => Promise<T>,
): Promise<T> {
  const scratch = scratchFolder("ask");
  const benches: Workbench[] = [];
  const engines = new Map<string, EngineConnection>();
  const open = async (plan: AskPlan): Promise<Asked> => {
    const { weights, config, engine: where } = plan;
    const bench = new Workbench(
      { ...config, base_url: where.baseUrl },
      { ...filesOf(plan, scratch), logger, signal, kind: where.kind },
    );
    benches.push(bench);
    await bench.environment();
    const key = keyOf(plan);
    const engine = engines.get(key) ?? (await bench.engine());
    if (!engines.has(key)) logger.info(`engine   ${engine.description}`);
    engines.set(key, engine);
    bench.model(engine);
    const { renderer } = await bench.renderer();
    const sampler = await samplerOf(plan, engine, signal);
    return { label: weights.label, sampler, renderer, engine, bench };
  };
  try {
    // The embedded engine's checkpoints are found before anything is started.
    for (const plan of plans) {
      const { stateDir } = filesOf(plan, scratch);
      mkdirSync(stateDir, { recursive: true });
      const { weights, engine } = plan;
      if (engine.kind === "embedded" && weights.path !== undefined)
        borrowCheckpoint(weights.path, weights.run, stateDir);
    }
    const asked: Asked[] = [];
    for (const plan of plans) asked.push(await open(plan));
    return await work(asked);
  } finally {
    for (const bench of benches.reverse()) await bench.close();
    rmSync(scratch, { recursive: true, force: true });
  }
}

async function samplerOf({ weights, config }: AskPlan, engine: EngineConnection, signal: AbortSignal) {
  const { path, label, record } = weights;
  const { service } = engine;
  try {
    const state = path === undefined ? undefined : record?.state_path;
    if (state !== undefined && !(await keepsSamplers(engine, config.model_name, signal))) {
      const training = await service.createTrainingClientFromState(state, { signal });
      return await training.saveWeightsAndGetSamplingClient({ signal });
    }
    const source = path === undefined ? { baseModel: config.model_name } : { modelPath: path };
    return await service.createSamplingClient({ ...source, signal });
  } catch (cause) {
    signal.throwIfAborted();
    throw new ConfigError(
      "config/not-loadable",
      `${label} cannot be loaded: ${messageOf(cause)} Nothing was sampled.`,
      {
        cause,
      },
    );
  }
}

function filesOf(plan: AskPlan, scratch: string) {
  // SkyRL finds checkpoints by the database that it began with.
  const isOwn = plan.engine.kind === "skyrl" && plan.weights.run !== "";
  return engineFiles(isOwn ? plan.weights.run : join(scratch, keyOf(plan)));
}

/** An engine of this machine has one model, and SkyRL one run's checkpoints. */
function keyOf({ engine: { kind, baseUrl }, config, weights }: AskPlan): string {
  const which = isLocal(kind) ? `${config.model_name} ${kind === "skyrl" ? weights.run : ""}` : baseUrl;
  // Short and plain: it also names a folder.
  return createHash("sha256").update(`${kind} ${which}`).digest("hex").slice(0, 16);
}
