// Evaluation beside training: each on its own frozen policy, one after another, never holding an update back. Its figures belong to
// the step whose policy it measured. What was sampled and graded before a crash is not done again.
import type { NewEvent } from "../runs/events.ts";
import { linkedController } from "./cancellation.ts";
import { type Evaluation, evaluate, evaluationMetrics } from "./evaluate.ts";
import type { Policy } from "./policies.ts";
import type { Recovered } from "./recovery.ts";
import type { RollOut } from "./rollout.ts";
import type { Task } from "./tasks.ts";

interface EvaluationsOptions {
  /** Versions between two evaluations; 0 or less: none. */
  every: number;
  /** The last version, which is always measured. */
  end: number;
  tasks: readonly Task[];
  /** Which versions somebody asked to measure, and what earlier processes did. */
  recovered: Pick<Recovered, "controlState" | "evaluated" | "evaluationsBegun">;
  rollOut: RollOut;
  record(event: NewEvent): Promise<void>;
  onResult(version: number, evaluation: Evaluation): void;
  drain: AbortSignal;
  cancel: AbortSignal;
}

export class Evaluations {
  readonly #options: EvaluationsOptions;
  readonly #controller: ReturnType<typeof linkedController>;
  #last: Promise<void> = Promise.resolve();
  #failure: { error: unknown } | undefined;
  /** Versions whose evaluation was begun and has not ended. */
  readonly #open = new Set<number>();
  /** Versions that were announced and have not ended, and whether that is written down. */
  readonly #announced = new Map<number, Promise<void>>();

  constructor(options: EvaluationsOptions) {
    this.#options = options;
    this.#controller = linkedController(options.drain, options.cancel);
  }

  /** Whether a version is to be measured and was not yet. */
  isDue(version: number): boolean {
    const { every, end, tasks, recovered } = this.#options;
    const regular = every > 0 && (version % every === 0 || version === end);
    return (
      tasks.length > 0 &&
      (regular || recovered.controlState.evaluations.has(version)) &&
      !recovered.evaluated.has(version)
    );
  }

  /** The oldest version that an evaluation samples from, or will. */
  get oldest(): number {
    return Math.min(...this.#open, ...this.#announced.keys());
  }

  /**
   * Writes down that a version will be measured, before anything of the steps that follow is: whether its figures join the record of
   * its step must not depend on when the evaluation gets its turn.
   */
  announceIfDue(version: number): void {
    if (!this.isDue(version) || this.#announced.has(version) || this.#options.recovered.evaluationsBegun.has(version))
      return;
    const written = this.#options.record({ type: "evaluation-started", step: version });
    written.catch(() => {}); // the evaluation waits for it, and fails
    this.#announced.set(version, written);
  }

  startIfDue(policy: Policy): void {
    if (!this.isDue(policy.version) || this.#open.has(policy.version)) return;
    this.#open.add(policy.version);
    this.announceIfDue(policy.version);
    // One that is stopped stays open: the next process goes on with it, so its policy must outlive the checkpoint that is saved now.
    this.#last = this.#last
      .then(() => this.#run(policy))
      .then(() => {
        this.#open.delete(policy.version);
        this.#announced.delete(policy.version);
      })
      .catch((error: unknown) => {
        if (!this.#controller.signal.aborted) this.#failure ??= { error };
      });
  }

  /** Rejects when an evaluation has failed. */
  throwIfFailed(): void {
    if (this.#failure) throw this.#failure.error;
  }

  /** Waits for what is under way and still to come. */
  async finish(): Promise<void> {
    await this.#last;
    this.#options.cancel.throwIfAborted();
    this.throwIfFailed();
  }

  /** Stops what is under way and waits until it has stopped. */
  async close(): Promise<void> {
    this.#controller.abort(new Error("evaluation was stopped"));
    await this.#last;
    this.#controller.unlink();
  }

  async #run(policy: Policy): Promise<void> {
    const { signal } = this.#controller;
    const { tasks, rollOut, record, onResult } = this.#options;
    const step = policy.version;
    signal.throwIfAborted();
    await this.#announced.get(step);
    const start = Date.now();
    const evaluation = await evaluate(tasks, policy, rollOut, signal);
    const end = Date.now();
    const metrics = { ...evaluationMetrics(evaluation), "time/evaluate": (end - start) / 1000 };
    await record({
      type: "evaluated",
      step,
      final: step === this.#options.end,
      outcomes: evaluation.outcomes,
      metrics,
      start,
      end,
    });
    onResult(step, evaluation);
  }
}
