// The parts a command works with, opened one by one and closed together: the sandbox and grader, the engine, the renderer, the data or
// the environment. What is learned on the way (the server's context window, the renderer's name) goes into `config`.

import type { TrainingClient } from "../../client/index.ts";
import type { Dataset, LoadProgress, Split } from "../../data/index.ts";
import type { Renderer } from "../../renderers/index.ts";
import type { TrainConfig } from "../../rl/config.ts";
import { codeEnvironment } from "../../rl/environment/code.ts";
import { verifiersPrefix } from "../../rl/environment/environment.ts";
import { type LoadedEnvironment, loadEnvironment, withReminders } from "../../rl/environment/module.ts";
import type { CodeServices } from "../../rl/environment/roll-outs.ts";
import { withinServer } from "../../rl/frozen-samplers.ts";
import { type JudgeOptions, judgeByTests } from "../../rl/judge.ts";
import { withinWindow } from "../../rl/offered.ts";
import { openRenderer } from "../../rl/open-renderer.ts";
import { loadProblems } from "../../rl/tasks.ts";
import { type ConnectOptions, checkModel, connectEngine, type EngineConnection } from "./connect.ts";
import { type GraderConnection, openGrader } from "./grader.ts";
import { tellStrayErrors } from "./stray-errors.ts";
import { loadVerifiers } from "./verifiers-environment.ts";
import { dataWork, ownWork, supervisedWork, type Work, type WorkOptions } from "./work.ts";

type WorkbenchOptions = ConnectOptions & { signal: AbortSignal };

export class Workbench {
  readonly #options: WorkbenchOptions;
  readonly #open: { close(): Promise<void> }[] = [];
  #environment: LoadedEnvironment | undefined;
  #config: TrainConfig;

  constructor(config: TrainConfig, options: WorkbenchOptions) {
    this.#config = config;
    this.#options = options;
  }

  /** The config with what is known by now. */
  get config(): TrainConfig {
    return this.#config;
  }

  async grading(): Promise<GraderConnection> {
    return this.#keep(await openGrader(this.#config));
  }

  /** What grades and runs programs, opened when it is first asked for. */
  code(judging: Omit<JudgeOptions, "grader">): () => Promise<CodeServices & { grading: GraderConnection }> {
    const open = async () => {
      const grading = await this.grading();
      const { grader } = grading;
      return { grading, grader, judge: judgeByTests({ comparator: this.#config.comparator, ...judging, grader }) };
    };
    let opened: ReturnType<typeof open> | undefined;
    return () => {
      opened ??= open();
      return opened;
    };
  }

  /** What runs programs, with the languages of the problems; undefined where an environment of somebody's own may ask for none. */
  async programs(
    { languages }: Work,
    code: () => Promise<{ grading: GraderConnection }>,
  ): Promise<GraderConnection | undefined> {
    if (this.#environment) return undefined;
    const { grading } = await code();
    for (const language of languages) await grading.sandbox.supports(language);
    return grading;
  }

  /** Loads the module that env= names, if it names one: true where what is asked and judged is its own. */
  async environment(): Promise<boolean> {
    const { env } = this.#config;
    if (env === "" || codeEnvironment(env)) return false;
    const warn = (line: string) => this.#options.logger.warn(line);
    const loaded = env.startsWith(verifiersPrefix) ? await this.#python(warn) : await this.#module(env, warn);
    this.#environment = loaded;
    const isMeasured = loaded.testProblems.length > 0;
    const { eval_every } = this.#config;
    this.#config = { ...this.#config, train_data: "", test_data: "", eval_every: isMeasured ? eval_every : 0 };
    return true;
  }

  async #module(env: string, warn: (line: string) => void): Promise<LoadedEnvironment> {
    const loaded = await loadEnvironment(env, warn);
    const stop = tellStrayErrors(loaded.file, warn);
    this.#keep({ close: async () => stop() });
    return loaded;
  }

  async #python(warn: (line: string) => void): Promise<LoadedEnvironment> {
    return this.#keep(await withReminders(this.#config.env, warn, () => loadVerifiers(this.#config, warn)));
  }

  /** What is asked of the model. */
  work(renderer: Renderer, options: WorkOptions): Promise<Work> {
    const environment = this.#environment;
    if (!environment) {
      const workOf = this.#config.method === "sft" ? supervisedWork : dataWork;
      return workOf(this, renderer, options);
    }
    return Promise.resolve(ownWork(environment, this.#config, renderer, options));
  }

  /** Connects to the engine; refuses a model it does not offer. */
  async engine(): Promise<EngineConnection> {
    return this.#keep(await connectEngine(this.#config, this.#options));
  }

  /** Checks that the engine has the model; the smaller context window counts from here on. */
  model(engine: EngineConnection): number {
    const offer = checkModel(engine, this.#config.model_name);
    this.#config = withinWindow(this.#config, offer, this.#options.logger);
    return offer?.maxContextLength ?? this.#config.context_window;
  }

  /** Whether the engine's samplers are frozen; where they are not, no lag is left from here on. */
  async samplers(engine: EngineConnection, runPath: string): Promise<boolean> {
    const { logger, signal } = this.#options;
    const { config, frozenSamplers } = await withinServer(this.#config, engine, { runPath, logger, signal });
    this.#config = config;
    return frozenSamplers;
  }

  /** `run`: one that is to be trained on this engine, which is asked for the tokenizer where nothing is named. */
  async renderer(run?: { engine: EngineConnection; path: string }): Promise<{
    renderer: Renderer;
    made: TrainingClient | undefined;
  }> {
    const { logger, signal } = this.#options;
    // Tokenizers of the embedded engine's models are found by the models' names.
    const ask = run && run.engine.kind !== "embedded" ? { service: run.engine.service, runPath: run.path } : undefined;
    const { renderer, config, made } = await openRenderer(this.#config, { logger, signal, ask });
    this.#config = config;
    return { renderer, made };
  }

  problems(
    split: Split,
    renderer: Renderer,
    onProgress?: (split: Split, progress: LoadProgress) => void,
  ): Promise<Dataset> {
    const { signal } = this.#options;
    return loadProblems(this.#config, split, { renderer, signal, ...(onProgress ? { onProgress } : {}) });
  }

  /** Closes everything, the last opened first. */
  async close(): Promise<void> {
    for (const part of this.#open.splice(0).reverse()) await part.close();
  }

  #keep<Part extends { close(): Promise<void> }>(part: Part): Part {
    this.#open.push(part);
    return part;
  }
}
