// The batches of a session, from where it begins to where it ends: which problems each is about, and how much of it the journal has.
import { teaches } from "./batch.ts";
import type { TrainConfig } from "./config.ts";
import { maxProblemsOf } from "./fill.ts";
import { versionFor } from "./pipeline.ts";
import type { Recovered, TrainPlace } from "./recovery.ts";
import { isJudged } from "./remembered-groups.ts";
import { endOf, type Start } from "./resume.ts";
import type { Group, Place } from "./rollout.ts";
import type { Task, TaskSource } from "./tasks.ts";

type PlanConfig = Pick<
  TrainConfig,
  "prompts_per_step" | "fill_batch" | "max_lag" | "max_steps" | "tail" | "carry_rounds"
>;

export class BatchPlan {
  readonly first: number;
  /** The oldest batch with groups to give: the first, or one before it of which some were carried over. */
  readonly oldest: number;
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
    this.oldest = Math.min(position.step, ...recovered.carriedFrom(position.step - 1).map(({ batch }) => batch));
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
    return versionFor(batch, this.#config.max_lag, this.floor, this.#config.carry_rounds);
  }

  /** The oldest batch of which groups may be carried over into a step. */
  oldestCarried(step: number): number {
    const { tail, carry_rounds } = this.#config;
    return tail === "wait" ? step : carry_rounds ? this.versionFor(step - 1) : step - 1;
  }

  /** The oldest version that anything is sampled from once the updates before `step` were made. */
  oldestVersion(step: number): number {
    const carried = this.#recovered.carriedFrom(step - 1).map(({ batch }) => batch);
    return this.versionFor(Math.min(this.oldestCarried(step), ...carried));
  }

  /** The problems of a batch by group. Of one before the first: those of the groups that were carried over from it. */
  async tasksOf(batch: number): Promise<ReadonlyMap<number, Task>> {
    if (batch >= this.frontier)
      return new Map((await this.#source.batch(this.offsetOf(batch), this.#config.prompts_per_step)).entries());
    const tasks = new Map<number, Task>();
    for (const place of batch < this.first ? [] : this.#recovered.update(batch)!.groups)
      if (place.batch === batch) tasks.set(place.group, this.#recordedTask(place));
    for (const place of this.#recovered.carriedFrom(Math.max(batch, this.first - 1)))
      if (place.batch === batch)
        tasks.set(
          place.group,
          this.isTrained(place) ? this.#recordedTask(place) : (await this.#source.batch(place.datasetIndex, 1))[0]!,
        );
    return tasks;
  }

  /** The groups that a batch was trained on, in their order; undefined where that is not decided. */
  trainedPlaces(batch: number): readonly TrainPlace[] | undefined {
    return batch < this.frontier ? this.#recovered.update(batch)?.groups : undefined;
  }

  /** Whether a group was trained on before. */
  isTrained({ batch, group }: TrainPlace): boolean {
    return batch < this.frontier && !this.#carriedOn(batch).includes(group);
  }

  /** What to ask as group `next` of a batch in place of one that was judged; undefined when that taught, or enough was asked. */
  further(batch: number, { completions }: Pick<Group, "completions">, next: number): Promise<Task> | undefined {
    if (batch < this.frontier || next >= this.#maxProblems || teaches(completions)) return undefined;
    return this.#source.batch(this.offsetOf(batch) + next, 1).then(([task]) => task!);
  }

  /** Where in the order of the data a batch begins. */
  offsetOf(batch: number): number {
    const before = this.#recovered.update(batch - 1);
    return before?.nextOffset ?? this.#frontierOffset + (batch - this.frontier) * this.#maxProblems;
  }

  /** Whether nothing of a batch is to be sampled or graded. */
  isComplete(batch: number): boolean {
    if (batch < this.frontier)
      return this.#carriedOn(batch).every((group) => isJudged(this.#recovered.group({ phase: "train", batch, group })));
    return this.#recovered.isComplete(batch, this.#config.prompts_per_step, this.#maxProblems);
  }

  /** Groups of a batch that are still to be sampled, at most. */
  missing(batch: number): number {
    const groups = batch < this.frontier ? this.#carriedOn(batch) : upTo(this.#maxProblems);
    return this.#missing("train", batch, groups);
  }

  /** The same of an evaluation of `problems` problems. */
  missingOfEvaluation(version: number, problems: number): number {
    return this.#missing("eval", version, upTo(problems));
  }

  /** Groups of a batch that the updates made so far left to later ones. */
  #carriedOn(batch: number): number[] {
    const carried = this.#recovered.carriedFrom(this.frontier - 1);
    return carried.flatMap((left) => (left.batch === batch ? [left.group] : []));
  }

  #missing(phase: Place["phase"], batch: number, groups: readonly number[]): number {
    return groups.filter((group) => !this.#recovered.group({ phase, batch, group })).length;
  }

  /** A group that was trained on already, as a task: it is rolled out from the journal, so it needs neither data nor tests. */
  #recordedTask(place: TrainPlace): Task {
    const { problem, source, datasetIndex } = this.#recovered.group({ phase: "train", ...place })!.sampled;
    return {
      id: problem,
      source,
      datasetIndex,
      prompt: new Int32Array(),
      maxTokens: 0,
      loadTests: () => Promise.reject(new Error(`${problem} was graded already`)),
    };
  }
}

const upTo = (count: number) => Array.from({ length: count }, (_, group) => group);
