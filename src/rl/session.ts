// The parts of a run between one start and the next, put together: the pipeline that samples ahead, the policies it samples from, the
// evaluations and checkpoints that run beside, and the record of every step. Parts do not know each other; this file does.
import { untilAborted } from "../client/wait.ts";
import { Random } from "../core/random.ts";
import { ControlInbox } from "../runs/controls.ts";
import type { Span } from "../runs/events.ts";
import { Activity, measured } from "../runs/timing.ts";
import { Admissions } from "./admissions.ts";
import type { Budget, Refusal } from "./budget.ts";
import { type LinkedController, linkedController } from "./cancellation.ts";
import { Checkpoints } from "./checkpoints.ts";
import type { TrainConfig } from "./config.ts";
import type { ControlState } from "./control-state.ts";
import { Controls } from "./controls.ts";
import { evaluationSeed } from "./evaluate.ts";
import { Evaluations } from "./evaluations.ts";
import type { Meter } from "./meter.ts";
import { batchesOf, Pipeline, versionFor } from "./pipeline.ts";
import { Policies, type Policy } from "./policies.ts";
import { recordedTasks } from "./recorded-tasks.ts";
import type { Recovered } from "./recovery.ts";
import { endOf, type Start } from "./resume.ts";
import { type Place, sampleAndJudge } from "./rollout.ts";
import { StepRecorder } from "./step-recorder.ts";
import type { Task } from "./tasks.ts";
import type { TrainParts } from "./train.ts";
import { Watch } from "./watch.ts";

export class TrainSession {
  readonly pipeline: Pipeline;
  readonly policies: Policies;
  readonly evaluations: Evaluations;
  readonly checkpoints: Checkpoints;
  readonly recorder: StepRecorder;
  readonly controls: Controls;
  readonly watch: Watch;
  /** The step at which training ends. */
  readonly end: number;
  #publishing: Promise<unknown> = Promise.resolve();
  #published: Span[] = [];
  readonly #stop: LinkedController;
  readonly #recovered: Recovered;
  /** The oldest version that anything is sampled from once a version is the newest checkpoint. */
  readonly #oldestAfter: (version: number) => number;
  readonly #admissions: Admissions;
  readonly #evaluateWhenPaid: (version: number, begin: () => void) => void;
  readonly #checkGrader: () => Promise<void>;
  readonly #frozenSamplers: boolean;
  /** Versions before it are not sampled any more. */
  #oldestSampled = 0;

  /** Aborted by a signal to the process, or because somebody asked the run to stop. */
  get drain(): AbortSignal {
    return this.#stop.signal;
  }

  constructor(
    { training, position, recovered }: Start,
    config: TrainConfig,
    parts: TrainParts,
    { meter, budget }: { meter: Meter; budget: Budget | undefined },
  ) {
    const { run, service } = parts;
    this.#frozenSamplers = parts.frozenSamplers ?? true;
    const { controlState } = recovered;
    const stop = linkedController(parts.drain);
    const drain = stop.signal;
    const first = position.step;
    const end = endOf(config, first);
    const frontier = recovered.frontier(position);
    const offsetOf = (batch: number) => frontier.datasetOffset + (batch - frontier.step) * config.prompts_per_step;
    const record = run.journal.append.bind(run.journal);
    const watch = new Watch(config.stage_deadline * 1000, run.logger, parts.cancel);
    const cancel = watch.signal;
    const sampling = new Activity();
    const rollouts = {
      renderer: parts.renderer,
      judge: parts.judge,
      record,
      note: run.journal.note.bind(run.journal),
      recorded: (place: Place, task: Task) => {
        const group = recovered.group(place);
        if (group?.sampled.problem !== task.id) return undefined;
        // What was trained on stays as it was. Elsewhere an outage, which may have ended the process before, is no verdict for good.
        if (place.phase === "train" && place.batch < frontier.step) return group;
        const isVerdict = (verdict: (typeof group.graded)[number]) => verdict?.grade.verdict !== "ungraded";
        return { ...group, graded: group.graded.map((verdict) => (isVerdict(verdict) ? verdict : undefined)) };
      },
    };

    const evaluations = new Evaluations({
      every: config.eval_every,
      end,
      tasks: parts.testTasks,
      asked: controlState.evaluations,
      rollOut: watch.progress(
        "evaluating",
        sampleAndJudge({
          ...rollouts,
          samples: config.eval_num_samples,
          temperature: config.eval_temperature,
          seedFor: (_, task) => (parts.fixedSeeds ? evaluationSeed(config.seed, task) : undefined),
        }),
      ),
      isDone: (version) => recovered.isEvaluated(version),
      hasStarted: (version) => recovered.hasEvaluationStarted(version),
      record,
      onResult: (step, evaluation) => parts.events.evaluated(step, evaluation),
      drain,
      cancel,
    });
    const missing = (phase: Place["phase"], batch: number, groups: number) =>
      Array.from({ length: groups }, (_, group) => recovered.group({ phase, batch, group })).filter((known) => !known)
        .length;
    const admissions = new Admissions({
      underWay: () => budget?.underWay ?? false,
      onRefused: () => this.pipeline.stop(),
      signals: [drain, cancel],
    });
    run.journal.listen(() => admissions.settled());
    const { floor } = recovered;
    const pipeline = new Pipeline({
      lag: config.max_lag,
      floor,
      first,
      end,
      tasksOf: async (batch) =>
        batch < frontier.step
          ? recordedTasks(recovered, batch)
          : parts.trainTasks.batch(offsetOf(batch), config.prompts_per_step),
      rollOut: watch.progress(
        "sampling and grading",
        sampleAndJudge({
          ...rollouts,
          samples: config.completions_per_prompt,
          temperature: config.temperature,
          seedFor: ({ batch, group }) =>
            parts.fixedSeeds ? new Random("sample", config.seed, batch, group).uint32() : undefined,
          sampling: (change) => sampling.change(change),
        }),
      ),
      admit: (batch, begin) =>
        admissions.ask(
          () => budget?.admit(batch, batch < frontier.step ? 0 : missing("train", batch, config.prompts_per_step)),
          begin,
        ),
      drain,
      cancel,
    });
    const isComplete = (batch: number) => batch < frontier.step || recovered.isComplete(batch, config.prompts_per_step);
    const policies = new Policies({
      service,
      training,
      published: recovered.policies,
      stored: recovered.stored,
      models: recovered.models,
      needed: (version) =>
        evaluations.isDue(version) ||
        batchesOf(version, config.max_lag, floor).some((batch) => batch >= first && batch < end && !isComplete(batch)),
      ttlSeconds: config.ttl_seconds,
      named: this.#frozenSamplers,
      record,
      logger: run.logger,
      signal: cancel,
    });
    this.checkpoints = new Checkpoints({
      training,
      every: config.save_every,
      ttlSeconds: config.ttl_seconds,
      configHash: parts.configHash,
      seed: config.seed,
      epochOf: (offset) => Math.floor(offset / parts.trainTasks.size),
      record,
      published: () => this.#publishing,
      signal: cancel,
      onSaved: ({ step }) => {
        policies.retire(this.#oldestAfter(step));
        if (config.keep_journal === "checkpoint") run.journal.thin(step);
      },
    });
    const { checkpoints } = this;
    const controls = new Controls({
      runPath: run.path,
      inbox: new ControlInbox(run.path, (message) => run.logger.warn(message)),
      controlState,
      learningRate: config.learning_rate,
      frontier: frontier.step,
      startedAt: run.openedAt,
      record,
      save: (at) => checkpoints.saveNow(at),
      evaluate: async (version) => {
        await this.#publishing.catch(() => {});
        if (evaluations.isDue(version)) {
          const policy = await (await policies.publish(version, true)).policy;
          this.#evaluateWhenPaid(version, () => evaluations.startIfDue(policy));
        }
        return parts.testTasks.length > 0;
      },
      stop: () => stop.abort(new Error("asked to stop")),
      logger: run.logger,
      onPause: (step, paused) => parts.events.stage(step, paused ? "paused" : "sampling and grading"),
      drain,
      cancel,
    });
    this.recorder = new StepRecorder(run.journal, recovered, config, {
      datasetSize: parts.trainTasks.size,
      learningRate: () => controls.learningRate,
      groupsInFlight: () => pipeline.groupsInFlight,
      sampling,
      meter,
    });
    this.controls = controls;
    this.#stop = stop;
    this.#recovered = recovered;
    this.#checkGrader = () => parts.checkGrader();
    this.#oldestAfter = (version) => Math.min(versionFor(version, config.max_lag, floor), evaluations.oldest);
    this.#evaluateWhenPaid = (version, begin) =>
      admissions.ask(
        () => budget?.admitEvaluation(version, missing("eval", version, parts.testTasks.length)),
        () => version >= this.#oldestSampled && begin(),
      );
    this.#admissions = admissions;
    this.pipeline = pipeline;
    this.policies = policies;
    this.evaluations = evaluations;
    this.watch = watch;
    this.end = end;
  }

  /**
   * Begins with a version: batches and evaluations of earlier ones are finished by the policies that began them. Which of these are
   * there is known before the first update; in place of others the version that this begins with answers.
   */
  async begin(first: number): Promise<void> {
    const earlier: [version: number, policy: Policy | undefined][] = [];
    for (let version = this.#oldestAfter(first); version < first; version++)
      earlier.push([version, await this.policies.recall(version)]);
    const start = this.publish(first, true, earlier.some(([, policy]) => !policy) || undefined);
    for (const [version, policy] of earlier) this.pipeline.use(policy ?? this.policies.instead(version, start));
    await start;
    for (const version of this.#recovered.openEvaluations()) {
      const policy = version < first ? await this.policies.recall(version) : undefined;
      if (policy) this.#evaluateWhenPaid(version, () => this.evaluations.startIfDue(policy));
    }
    this.policies.retire(this.#oldestAfter(first));
  }

  /**
   * Makes the weights as they are now the policy of `version`. Resolves when the next update may be submitted; what waits for the
   * policy begins when it is there, and when the budget covers it.
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
    const used = this.watch
      .stage("publishing the policy", () => measured(this.#published, "weights", () => policy))
      .then(async (there) => {
        // Batches begin in their order, also where a later version is there first: what a budget refuses must be the last of them.
        await before;
        this.pipeline.use(there);
        evaluate(there);
      });
    used.catch((error: unknown) => this.pipeline.fail(error));
    this.#publishing = used;
    return { policy };
  }

  /** Before the update of `step`: where samplers are not frozen, what samples from its policy comes to its end first. */
  async beforeUpdate(step: number): Promise<void> {
    if (this.#frozenSamplers) return;
    await this.watch.stage("evaluating", () => this.evaluations.finish());
    this.#oldestSampled = step + 1;
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

  /** Rejects when programs with known verdicts are judged wrongly. A check that comes to no end is given up when the run is to stop. */
  async checkGrader(): Promise<void> {
    const check = () => untilAborted(this.#checkGrader(), this.watch.signal, this.drain);
    await this.watch.stage("checking the grader", check).catch((error: unknown) => {
      if (!this.drain.aborted) throw error;
    });
  }

  /** Waits for the saves under way. */
  async saved(): Promise<void> {
    await this.watch.stage("saving", () => this.checkpoints.settled());
  }

  /** Rejects when something that runs beside the loop has failed. */
  throwIfFailed(): void {
    this.checkpoints.throwIfFailed();
    this.evaluations.throwIfFailed();
  }

  /** Finishes the update under way, saves, ends; with an error where `reason` is one to tell. */
  stop(reason: Error): void {
    this.#stop.abort(reason);
  }

  /** What the budget did not cover, and so ended the run. */
  get refusal(): Refusal | undefined {
    return this.#admissions.refusal;
  }

  /** What was asked of the run. */
  get controlState(): ControlState {
    return this.#recovered.controlState;
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
    this.watch.close();
    this.#stop.unlink();
  }
}
