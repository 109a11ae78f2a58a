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
import { engineOfRun, findWeights, type NamedWeights } from "./find-weights.ts";

/** Weights, and the settings that they are asked with. */
export interface AskPlan {
  weights: NamedWeights;
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

/** What another run's weights keep of their run: the model and how it is asked. Problems, limits and rules are those of `config`. */
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

/** Engines with the weights on them; weights on the same engine share it. */
export class AskedWeights {
  readonly #scratch = scratchFolder("ask");
  readonly #benches: Workbench[] = [];
  readonly #engines = new Map<string, EngineConnection>();
  readonly #logger: Logger;
  readonly #signal: AbortSignal;

  constructor(logger: Logger, signal: AbortSignal) {
    this.#logger = logger;
    this.#signal = signal;
  }

  /** Gets the embedded engine's checkpoints ready, before anything is started. */
  find(plans: readonly AskPlan[]): void {
    for (const plan of plans) {
      const { weights, engine } = plan;
      const { stateDir } = this.#files(plan);
      mkdirSync(stateDir, { recursive: true });
      if (engine.kind === "embedded" && weights.path !== undefined)
        borrowCheckpoint(weights.path, weights.run, stateDir);
    }
  }

  async open(plan: AskPlan): Promise<Asked> {
    const { weights, config, engine: where } = plan;
    const { path, label, record } = weights;
    const bench = new Workbench(
      { ...config, base_url: where.baseUrl },
      {
        engineFiles: this.#files(plan),
        logger: this.#logger,
        signal: this.#signal,
        engineKind: where.kind,
      },
    );
    this.#benches.push(bench);
    await bench.environment();
    const key = keyOf(plan);
    const engine = this.#engines.get(key) ?? (await bench.engine());
    if (!this.#engines.has(key)) this.#logger.info(`engine   ${engine.description}`);
    this.#engines.set(key, engine);
    bench.model(engine);
    const { renderer } = await bench.renderer();
    const source = path === undefined ? { baseModel: config.model_name } : { modelPath: path };
    try {
      const { service } = engine;
      const signal = this.#signal;
      const state = path === undefined ? undefined : record?.state_path;
      const apart = state === undefined || (await keepsSamplers(engine, config.model_name, signal));
      const sampler = apart
        ? await service.createSamplingClient({ ...source, signal })
        : await (await service.createTrainingClientFromState(state, { signal })).saveWeightsAndGetSamplingClient({
            signal,
          });
      return { label, sampler, renderer, engine, bench };
    } catch (cause) {
      this.#signal.throwIfAborted();
      throw new ConfigError(
        "config/not-loadable",
        `${label} cannot be loaded: ${messageOf(cause)} Nothing was sampled.`,
        { cause },
      );
    }
  }

  async close(): Promise<void> {
    for (const bench of this.#benches.splice(0).reverse()) await bench.close();
    rmSync(this.#scratch, { recursive: true, force: true });
  }

  #files(plan: AskPlan) {
    // SkyRL finds checkpoints by the database that it began with.
    const own = plan.engine.kind === "skyrl" && plan.weights.run !== "";
    return engineFiles(own ? plan.weights.run : join(this.#scratch, keyOf(plan)));
  }
}

/** An engine of this machine has one model, and SkyRL one run's checkpoints. */
function keyOf({ engine: { kind, baseUrl }, config, weights }: AskPlan): string {
  const which = isLocal(kind) ? `${config.model_name} ${kind === "skyrl" ? weights.run : ""}` : baseUrl;
  // It names a folder too.
  return createHash("sha256").update(`${kind} ${which}`).digest("hex").slice(0, 16);
}
