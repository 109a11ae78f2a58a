// Weights that are asked: a run's checkpoint, another run's, or a base model, each with its settings and on the engine that has it. All
// of them are found before anything is started, and opened before the first sample.
import { createHash } from "node:crypto";
import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { SamplingClient } from "../client/index.ts";
import { ConfigError, messageOf } from "../core/errors.ts";
import { scratchFolder } from "../core/files.ts";
import type { Renderer } from "../renderers/index.ts";
import type { TrainConfig } from "../rl/config.ts";
import { keepsSamplers } from "../rl/frozen-samplers.ts";
import type { Logger } from "../runs/log.ts";
import { borrowCheckpoint } from "./borrow-checkpoint.ts";
import { type EngineConnection, type EngineKind, engineFiles, engineKind } from "./connect.ts";
import { engineOfRun, findWeights, type NamedWeights } from "./find-weights.ts";
import { settingsOfRun } from "./run-settings.ts";
import { Workbench } from "./workbench.ts";

/** Weights, and the settings that they are asked with. */
export interface AskPlan {
  weights: NamedWeights;
  config: TrainConfig;
  engine: { kind?: EngineKind; baseUrl: string };
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
  const engine = engineOfRun(weights.run, given.has("base_url") ? options.base_url : undefined);
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
    for (const { weights, config, engine } of plans) {
      const { stateDir } = this.#files(engine, config.model_name);
      mkdirSync(stateDir, { recursive: true });
      if ((engine.kind ?? engineKind(engine.baseUrl)) === "embedded" && weights.path !== undefined)
        borrowCheckpoint(weights.path, weights.run, stateDir);
    }
  }

  async open({ weights: { path, label, record }, config, engine: where }: AskPlan): Promise<Asked> {
    const bench = new Workbench(
      { ...config, base_url: where.baseUrl },
      {
        engineFiles: this.#files(where, config.model_name),
        logger: this.#logger,
        signal: this.#signal,
        engineKind: where.kind,
      },
    );
    this.#benches.push(bench);
    await bench.environment();
    const key = keyOf(where, config.model_name);
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
      const apart = state === undefined || (await keepsSamplers(service, config.model_name, signal));
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

  #files(engine: AskPlan["engine"], model: string) {
    return engineFiles(join(this.#scratch, keyOf(engine, model)));
  }
}

/** An embedded engine has one model. */
function keyOf({ kind: given, baseUrl }: AskPlan["engine"], model: string): string {
  const kind = given ?? engineKind(baseUrl);
  // It names a folder too.
  return createHash("sha256")
    .update(`${kind} ${kind === "embedded" ? model : baseUrl}`)
    .digest("hex")
    .slice(0, 16);
}
