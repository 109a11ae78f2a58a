// The batches of a session, from where it begins to where it ends: which problems each is about, and how much of it the journal has.
import { teaches } from "./batch.ts";
import type { TrainConfig } from "./config.ts";
import { maxProblemsOf } from "./fill.ts";
import { versionFor } from "./pipeline.ts";
import type { Recovered } from "./recovery.ts";
import { endOf, type Start } from "./resume.ts";
import type { Group, Place } from "./rollout.ts";
import type { Task, TaskSource } from "./tasks.ts";

type PlanConfig = Pick<TrainConfig, "prompts_per_step" | "fill_batch" | "max_lag" | "max_steps">;

export class BatchPlan {
  readonly first: number;
  /** The step at which training ends. */
  readonly end: number;
  /** Batches before it were trained on before: they are repeated as they were. */
  readonly frontier: number;
  /** The step that the run was last rewound to. */
  readonly floor: number;
  readonly #config: PlanConfig;
  readonly #recovered: Recovered;
  readonly #source: TaskSource;
  readonly #frontierOffset: number;
  /** Problems of the data that belong to a batch. */
  readonly #maxProblems: number;

  constructor({ position, recovered }: Start, config: PlanConfig, source: TaskSource) {
    const frontier = recovered.frontier(position);
    this.first = position.step;
    this.end = endOf(config, position.step);
    this.frontier = frontier.step;
    this.floor = recovered.floor;
    this.#config = config;
    this.#recovered = recovered;
    this.#source = source;
    this.#frontierOffset = frontier.datasetOffset;
    this.#maxProblems = maxProblemsOf(config, source.size);
  }

  /** The version that a batch is sampled from. */
  versionFor(batch: number): number {
    return versionFor(batch, this.#config.max_lag, this.floor);
  }

  async tasksOf(batch: number): Promise<readonly Task[]> {
    if (batch < this.frontier) return recordedTasks(this.#recovered, batch);
    return this.#source.batch(this.offsetOf(batch), this.#config.prompts_per_step);
  }

  /** What to ask as group `next` of a batch in place of one that was judged; undefined when that taught, or enough was asked. */
  further(batch: number, { completions }: Pick<Group, "completions">, next: number): Promise<Task> | undefined {
    if (batch < this.frontier || next >= this.#maxProblems || teaches(completions)) return undefined;
    return this.#source.batch(this.offsetOf(batch) + next, 1).then(([task]) => task!);
  }

  /** Where in the order of the data a batch begins. */
  offsetOf(batch: number): number {
    const recorded = this.#recovered.offsetAfter(batch - 1);
    return recorded ?? this.#frontierOffset + (batch - this.frontier) * this.#maxProblems;
  }

  /** Whether nothing of a batch is to be sampled or graded. */
  isComplete(batch: number): boolean {
    return batch < this.frontier || this.#recovered.isComplete(batch, this.#config.prompts_per_step, this.#maxProblems);
  }

  /** Groups of a batch that are still to be sampled, at most. */
  missing(batch: number): number {
    return batch < this.frontier ? 0 : this.#missing("train", batch, this.#maxProblems);
  }

  /** The same of an evaluation of `problems` problems. */
  missingOfEvaluation(version: number, problems: number): number {
    return this.#missing("eval", version, problems);
  }

  #missing(phase: Place["phase"], batch: number, groups: number): number {
    return Array.from({ length: groups }, (_, group) => this.#recovered.group({ phase, batch, group })).filter(
      (known) => !known,
    ).length;
  }
}

/** Groups that were trained on already, as tasks: they are rolled out from the journal, so they need neither data nor tests. */
const recordedTasks = (recovered: Recovered, batch: number): Task[] =>
  (recovered.trainedGroups(batch) ?? []).map(({ sampled }) => ({
    id: sampled.problem,
    source: sampled.source,
    datasetIndex: sampled.datasetIndex,
    prompt: new Int32Array(),
    maxTokens: 0,
    loadTests: () => Promise.reject(new Error(`${sampled.problem} was graded already`)),
  }));
