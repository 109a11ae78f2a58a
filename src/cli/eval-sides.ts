// The sides of an evaluation: one set of weights, or two to compare. Everything that can be wrong with either is found before the first
// sample: both must be there, load, and answer the same problems.
import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { SamplingClient } from "../client/index.ts";
import { ConfigError } from "../core/errors.ts";
import { scratchFolder } from "../core/files.ts";
import { type Dataset, describeSummary } from "../data/index.ts";
import type { Renderer } from "../renderers/index.ts";
import type { TrainConfig } from "../rl/config.ts";
import { evaluationTasks, type Task } from "../rl/tasks.ts";
import type { ProblemOutcome } from "../runs/events.ts";
import type { Logger } from "../runs/log.ts";
import { borrowCheckpoint } from "./borrow-checkpoint.ts";
import { type EngineConnection, type EngineKind, engineFiles, engineKind } from "./connect.ts";
import type { NamedWeights } from "./find-weights.ts";
import { Workbench } from "./workbench.ts";

/** Weights, and the settings that they are asked with. */
export interface SidePlan {
  weights: NamedWeights;
  config: TrainConfig;
  engine: { kind?: EngineKind | undefined; baseUrl: string };
}

/** A side that is ready to be asked. */
export interface Side {
  label: string;
  sampler: SamplingClient;
  renderer: Renderer;
  engine: EngineConnection;
  tasks: Task[];
}

interface Opened {
  bench: Workbench;
  engine: EngineConnection;
}

export class Sides {
  readonly #scratch = scratchFolder("eval");
  readonly #benches = new Map<string, Opened>();
  readonly #logger: Logger;
  readonly #signal: AbortSignal;

  constructor(logger: Logger, signal: AbortSignal) {
    this.#logger = logger;
    this.#signal = signal;
  }

  /** Looks for checkpoints of the embedded engine, before anything is started. */
  find(plans: readonly SidePlan[]): void {
    for (const plan of plans) this.#borrow(plan);
  }

  /** Opens every side, all on the same problems. `known` are outcomes of an earlier evaluation to compare with. */
  async open(plans: readonly SidePlan[], known: readonly ProblemOutcome[] | undefined): Promise<Side[]> {
    const sides: Side[] = [];
    for (const plan of plans) sides.push(await this.#openSide(plan, sides));
    const shared = sharedProblems(sides, known);
    this.#checkShared(plans, sides, shared, known);
    return sides.map((side) => ({ ...side, tasks: side.tasks.filter(({ id }) => shared.has(id)) }));
  }

  async close(): Promise<void> {
    for (const { bench } of [...this.#benches.values()].reverse()) await bench.close();
    rmSync(this.#scratch, { recursive: true, force: true });
  }

  #key({ engine: { kind, baseUrl } }: SidePlan): string {
    return `${kind ?? engineKind(baseUrl)} ${baseUrl}`;
  }

  #files(plan: SidePlan) {
    return engineFiles(join(this.#scratch, encodeURIComponent(this.#key(plan))));
  }

  #borrow(plan: SidePlan): void {
    const { weights, engine } = plan;
    const files = this.#files(plan);
    mkdirSync(files.stateDir, { recursive: true });
    if ((engine.kind ?? engineKind(engine.baseUrl)) === "embedded" && weights.path !== undefined)
      borrowCheckpoint(weights.path, weights.run, files.stateDir);
  }

  async #openSide(plan: SidePlan, before: readonly Side[]): Promise<Side> {
    const { weights, config } = plan;
    const { bench, engine } = await this.#bench(plan);
    bench.model(engine);
    const { renderer } = await bench.renderer();
    const dataset = await bench.problems("test", renderer);
    if (before.length === 0) this.#logger.info(`test     ${describeSummary(dataset.summary)}`);
    const sampler = await this.#sampler(engine, weights, config);
    return { label: weights.label, sampler, renderer, engine, tasks: tasksOf(dataset, bench.config, renderer) };
  }

  /** One engine for all sides that use it; each side has settings of its own. */
  async #bench(plan: SidePlan): Promise<Opened> {
    const key = this.#key(plan);
    const config = { ...plan.config, base_url: plan.engine.baseUrl };
    const options = {
      engineFiles: this.#files(plan),
      logger: this.#logger,
      signal: this.#signal,
      engineKind: plan.engine.kind,
    };
    const open = this.#benches.get(key);
    const bench = new Workbench(config, options);
    if (open) return { bench, engine: open.engine };
    // Kept before it is open, so that it is closed whatever happens.
    const opened = { bench, engine: undefined as unknown as EngineConnection };
    this.#benches.set(key, opened);
    opened.engine = await bench.engine();
    this.#logger.info(`engine   ${opened.engine.description}`);
    return opened;
  }

  async #sampler(
    engine: EngineConnection,
    { path, label }: NamedWeights,
    config: TrainConfig,
  ): Promise<SamplingClient> {
    const source = path === undefined ? { baseModel: config.model_name } : { modelPath: path };
    try {
      return await engine.service.createSamplingClient({ ...source, signal: this.#signal });
    } catch (error) {
      this.#signal.throwIfAborted();
      const reason = error instanceof Error ? error.message : String(error);
      throw new ConfigError("config/not-loadable", `${label} cannot be loaded: ${reason} Nothing was sampled.`, {
        cause: error,
      });
    }
  }

  #checkShared(
    plans: readonly SidePlan[],
    sides: readonly Side[],
    shared: ReadonlySet<string>,
    known: readonly ProblemOutcome[] | undefined,
  ): void {
    const most = Math.max(...sides.map(({ tasks }) => tasks.length));
    if (shared.size === 0)
      throw new ConfigError(
        "config/other-problems",
        known
          ? `None of the ${most} test problems is among the ${known.length} of the file to compare with. Evaluate on the same test_data and seed.`
          : "There is no test problem that every side can answer. Choose other test_data, or another context_window.",
      );
    if (shared.size < most)
      this.#logger.warn(`only ${shared.size} of ${most} test problems can be compared: the others are not in both`);
    const [first, second] = plans;
    if (first && second && second.config.model_name !== first.config.model_name)
      this.#logger.warn(`two base models are compared: ${first.config.model_name} and ${second.config.model_name}`);
  }
}

const tasksOf = (dataset: Dataset, config: TrainConfig, renderer: Renderer) =>
  evaluationTasks(dataset, config, renderer);

function sharedProblems(sides: readonly Side[], known: readonly ProblemOutcome[] | undefined): Set<string> {
  const lists = [...sides.map(({ tasks }) => tasks.map(({ id }) => id)), ...(known ? [known.map(({ id }) => id)] : [])];
  const [first = [], ...others] = lists.map((ids) => new Set(ids));
  return new Set([...first].filter((id) => others.every((other) => other.has(id))));
}
