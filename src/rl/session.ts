// The parts of a run between one start and the next, tied together: the pipeline that samples ahead, the policies it samples from, the
// evaluations and checkpoints that run beside, and the record of every step. Parts do not know each other; this file does.

import { countOf } from "../core/count.ts";
import { untilAborted } from "../core/wait.ts";
import type { Span, UpdateRule } from "../runs/events.ts";
import { measured } from "../runs/timing.ts";
import type { Admissions } from "./admissions.ts";
import type { Batch } from "./batch.ts";
import type { BatchPlan } from "./batch-plan.ts";
import type { Refusal } from "./budget.ts";
import type { Checkpoints } from "./checkpoints.ts";
import type { TrainConfig } from "./config.ts";
import type { Controls } from "./controls.ts";
import type { Evaluations } from "./evaluations.ts";
import type { Pipeline } from "./pipeline.ts";
import type { Policies, Policy } from "./policies.ts";
import { valuesOf, withReferences } from "./references.ts";
import type { Start } from "./resume.ts";
import {
  admissionsOf,
  checkpointsOf,
  controlsOf,
  evaluationsOf,
  pipelineOf,
  policiesOf,
  type RunContext,
  recorderOf,
  runContext,
} from "./session-parts.ts";
import type { StepRecorder } from "./step-recorder.ts";
import type { TrainParts } from "./train.ts";

export class TrainSession {
  readonly pipeline: Pipeline;
  readonly policies: Policies;
  readonly evaluations: Evaluations;
  readonly checkpoints: Checkpoints;
  readonly recorder: StepRecorder;
  readonly controls: Controls;
  readonly #context: RunContext;
  readonly #admissions: Admissions;
  #publishing: Promise<unknown> = Promise.resolve();
  #published: Span[] = [];
  /** Versions before it are not sampled any more. */
  #oldestSampled = 0;

  constructor(start: Start, config: TrainConfig, parts: TrainParts) {
    const context = runContext(start, config, parts);
    this.#context = context;
    this.#admissions = admissionsOf(context, () => this.pipeline.stop());
    this.evaluations = evaluationsOf(context);
    this.pipeline = pipelineOf(context, this.#admissions);
    this.policies = policiesOf(context, (version) => this.evaluations.isDue(version));
    this.checkpoints = checkpointsOf(context, {
      published: () => this.#publishing,
      onSaved: (step) => this.policies.retire(this.#oldestAfter(step)),
    });
    this.controls = controlsOf(context, {
      save: (position) => this.checkpoints.saveNow(position),
      evaluate: (version) => this.#evaluateNow(version),
      stop: () => this.stop(new Error("asked to stop")),
    });
    this.recorder = recorderOf(context, {
      learningRate: () => this.controls.learningRate,
      groupsInFlight: () => this.pipeline.groupsInFlight,
    });
  }

  get plan(): BatchPlan {
    return this.#context.plan;
  }

  /** Aborted by a signal to the process, or because somebody asked the run to stop. */
  get drain(): AbortSignal {
    return this.#context.signals.drain;
  }

  /** Runs a stage that the watch looks after; `work` gets the signal that ends it. */
  stage<T>(name: string, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    return this.#context.watch.stage(name, () => work(this.#context.signals.cancel));
  }

  /**
   * Begins with a version. Batches and evaluations of earlier versions are finished by the policies that began them. Which of these still
   * exist is known before the first update; the version that this begins with stands in for the others.
   */
  async begin(first: number): Promise<void> {
    const earlier: [version: number, policy: Policy | undefined][] = [];
    for (let version = this.#oldestAfter(first); version < first; version++)
      earlier.push([version, await this.policies.recall(version)]);
    const start = this.publish(first, true, earlier.some(([, policy]) => !policy) || undefined);
    for (const [version, policy] of earlier) this.pipeline.use(policy ?? this.policies.instead(version, start));
    await start;
    for (const version of this.#context.start.recovered.openEvaluations()) {
      if (version >= first) continue;
      const policy = await this.policies.recall(version);
      if (policy) this.#evaluateWhenPaid(version, () => this.evaluations.startIfDue(policy));
      else
        this.#context.parts.run.logger.warn(
          `policy ${version} is gone from the server, so the evaluation after ${countOf(version, "step")} is not finished`,
        );
    }
    this.policies.retire(this.#oldestAfter(first));
  }

  /**
   * Publishes the present weights as the policy of `version`. Resolves when the next update may be submitted. Batches and evaluations
   * that wait for the policy begin when it is there and the budget covers them.
   */
  async publish(version: number, changed: boolean, wanted?: boolean): Promise<{ policy: Promise<Policy> }> {
    let evaluate: (there: Policy) => void = () => {};
    if (this.evaluations.isDue(version)) {
      const policyThere = new Promise<Policy>((resolve) => (evaluate = resolve));
      this.#evaluateWhenPaid(version, () => {
        this.evaluations.announceIfDue(version);
        void policyThere.then((there) => this.evaluations.startIfDue(there));
      });
    }
    const { policy } = await this.policies.publish(version, changed, wanted);
    const before = this.#publishing;
    const used = this.stage("publishing the policy", () => measured(this.#published, "weights", () => policy)).then(
      async (there) => {
        // Batches begin in their order, also where a later version is there first: what a budget refuses must be the last of them.
        await before;
        this.pipeline.use(there);
        evaluate(there);
      },
    );
    used.catch((error: unknown) => this.pipeline.fail(error));
    this.#publishing = used;
    return { policy };
  }

  /** Where samplers are not frozen: finishes evaluations of the policy that the update of `step` will overwrite. */
  async beforeUpdate(step: number): Promise<void> {
    if (this.#context.parts.server.frozenSamplers ?? true) return;
    await this.stage("evaluating", () => this.evaluations.finish());
    this.#oldestSampled = step + 1;
  }

  /** The batch with what its references say of it: recorded, or asked now. */
  async askReferences(step: number, batch: Batch, rule: UpdateRule): Promise<Batch> {
    if (rule.references.length === 0 || batch.examples.length === 0) return batch;
    const { references, start } = this.#context;
    const recorded = valuesOf(start.recovered.update(step)?.arrays() ?? {}, batch.examples, rule);
    const ask = (signal: AbortSignal) => references.ask(batch.examples, rule, signal);
    return withReferences(batch, rule, recorded ?? (await this.stage("asking the references", ask)));
  }

  /** The times of publishing that ended since this was last asked. */
  takePublished(): Span[] {
    return this.#published.splice(0);
  }

  /** Waits until every policy is there and all that is to be measured was. */
  async finish(last: number): Promise<void> {
    await this.#publishing;
    await this.#admissions.empty();
    await this.evaluations.finish();
    this.policies.retire(this.#oldestAfter(last));
  }

  /** Rejects when programs with known verdicts are judged wrongly. A check that does not return is given up when the run is to stop. */
  async checkGrader(): Promise<void> {
    const { check } = this.#context.parts.grading;
    const work = (signal: AbortSignal) => untilAborted(check(), signal, this.drain);
    await this.stage("checking the grader", work).catch((error: unknown) => {
      if (!this.drain.aborted) throw error;
    });
  }

  /** Waits for the saves under way. */
  async saved(): Promise<void> {
    await this.stage("saving", () => this.checkpoints.settled());
  }

  /** Rejects when something that runs beside the loop has failed. */
  throwIfFailed(): void {
    this.checkpoints.throwIfFailed();
    this.evaluations.throwIfFailed();
  }

  /** Finishes the update under way, saves, ends; with an error where `reason` is one to tell. */
  stop(reason: Error): void {
    this.#context.stop.abort(reason);
  }

  /** What the budget did not cover, and so ended the run. */
  get refusal(): Refusal | undefined {
    return this.#admissions.refusal;
  }

  /** Stops what is under way and waits until it has stopped. */
  async close(): Promise<void> {
    this.#admissions.close();
    await Promise.allSettled([
      this.#publishing,
      this.pipeline.close(),
      this.evaluations.close(),
      this.checkpoints.settled(),
    ]);
    await this.policies.close();
    this.#context.watch.close();
    this.#context.stop.unlink();
  }

  /** The oldest version that anything is sampled from once `version` is the newest checkpoint. */
  #oldestAfter(version: number): number {
    return Math.min(this.plan.oldestVersion(version), this.evaluations.oldest);
  }

  /** Measures the version that training holds now. Resolves to false where there is nothing to measure on. */
  async #evaluateNow(version: number): Promise<boolean> {
    await this.#publishing.catch(() => {});
    if (this.evaluations.isDue(version)) {
      const policy = await (await this.policies.publish(version, true)).policy;
      this.#evaluateWhenPaid(version, () => this.evaluations.startIfDue(policy));
    }
    return this.#context.parts.tasks.test.length > 0;
  }

  #evaluateWhenPaid(version: number, begin: () => void): void {
    const { budget, parts } = this.#context;
    const missing = () => this.plan.missingOfEvaluation(version, parts.tasks.test.length);
    this.#admissions.ask(
      () => budget?.admitEvaluation(version, missing()),
      () => version >= this.#oldestSampled && begin(),
    );
  }
}
