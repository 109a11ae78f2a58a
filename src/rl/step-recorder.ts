// Writes a step down: before its update is submitted, when the server has applied it, and when it is over. A step that the journal
// already has is trained again silently.
import { freeBytes } from "../core/files.ts";
import type { EventOf, NewEvent, Span, UpdateRule } from "../runs/events.ts";
import type { Journal } from "../runs/journal.ts";
import type { Activity } from "../runs/timing.ts";
import { type Batch, countVerdicts } from "./batch.ts";
import type { TrainConfig } from "./config.ts";
import type { Meter } from "./meter.ts";
import type { Pending } from "./pipeline.ts";
import type { Recovered } from "./recovery.ts";
import { arraysOf, extraReads } from "./references.ts";
import { rateShare } from "./schedule.ts";
import { recentSteps, stepMetrics, updateMetrics } from "./step-metrics.ts";
import { inputTokens, type TrainStepResult, updateRule } from "./train-step.ts";

interface StepObservations {
  datasetSize: number;
  /** Of the next update, as the config or a person has set it; the schedule is applied here. */
  learningRate(): number;
  groupsInFlight(): number;
  sampling: Activity;
  meter: Meter;
}

export class StepRecorder {
  readonly #journal: Journal;
  readonly #recovered: Recovered;
  readonly #config: TrainConfig;
  readonly #observations: StepObservations;
  /** The newest, as many as an average needs. */
  #steps: Pick<EventOf<"step-done">, "spans">[];
  #stepStarted = Date.now();
  #sampledBefore: number;

  constructor(journal: Journal, recovered: Recovered, config: TrainConfig, observations: StepObservations) {
    this.#journal = journal;
    this.#recovered = recovered;
    this.#config = config;
    this.#observations = observations;
    this.#sampledBefore = observations.sampling.busyMs;
    this.#steps = [...recovered.steps.values()].slice(-recentSteps);
  }

  /** How the step is trained: as it was before, or as the config says now. */
  ruleOf(step: number): UpdateRule {
    const learning_rate = this.#observations.learningRate() * rateShare(step, this.#config);
    return this.#recovered.update(step)?.rule ?? updateRule({ ...this.#config, learning_rate });
  }

  /** The batch is about to be trained on; durable before the server hears of it. */
  async submitted(
    step: number,
    batch: Batch,
    rule: UpdateRule,
    { nextOffset, carried }: { nextOffset: number; carried: readonly Pending[] },
  ): Promise<void> {
    if (this.#recovered.update(step)) return;
    const tokens = inputTokens(batch.examples);
    const event: NewEvent = {
      type: "update-submitted",
      step,
      rule,
      examples: batch.examples.length,
      tokens,
      readTokens: tokens * extraReads(rule),
      nextOffset,
      groups: batch.groups.map(({ group, outcome, skipped, advantages }, index) => ({
        batch: group.batch,
        group: group.group,
        problem: group.problem,
        outcome,
        skipped,
        advantages,
        trained: [...new Set(batch.examples.flatMap((example) => (example.group === index ? [example.sample] : [])))],
        ...countVerdicts(group.completions),
      })),
      carried: carried.map(({ batch, group, task }) => ({
        batch,
        group,
        problem: task!.id,
        datasetIndex: task!.datasetIndex,
      })),
    };
    await this.#journal.append(event, batch.references ? arraysOf(batch.references) : {});
  }

  /** The server has applied the update. Returns its figures; ownership of its logprobs moves to the journal. */
  async applied(
    step: number,
    batch: Batch,
    update: TrainStepResult,
    { start, end }: Span,
  ): Promise<Record<string, number>> {
    const figures = updateMetrics(batch.examples, update);
    if (this.#recovered.steps.has(step)) {
      await this.#journal.append({ type: "retrained", step, tokens: inputTokens(batch.examples), start, end });
      return figures;
    }
    const { lossSum, server, logprobs } = update;
    await this.#journal.append(
      { type: "update-done", step, lossSum, server, start, end },
      logprobs ? { logprobs } : {},
      logprobs ? [logprobs] : [],
    );
    return figures;
  }

  /** The step is over. */
  async done(
    facts: Pick<EventOf<"step-done">, "step" | "datasetOffset" | "spans"> & {
      batch: Batch;
      update: Record<string, number> | undefined;
      rule: UpdateRule;
    },
  ): Promise<void> {
    const { step, datasetOffset, batch, update, rule } = facts;
    const { datasetSize, groupsInFlight, sampling, meter } = this.#observations;
    const ended = Date.now();
    const spans = [...facts.spans, { name: "total", start: this.#stepStarted, end: ended }];
    const sampledMs = sampling.busyMs - this.#sampledBefore;
    const observed = {
      "pipeline/in_flight_groups": groupsInFlight(),
      "pipeline/sample_idle_frac": Math.max(0, 1 - sampledMs / Math.max(1, ended - this.#stepStarted)),
      "journal/bytes": this.#journal.bytes,
      "journal/append_p99_ms": this.#journal.appendP99Ms,
      "journal/disk_free": freeBytes(this.#journal.runPath),
      ...meter.figures(),
    };
    this.#stepStarted = ended;
    this.#sampledBefore = sampling.busyMs;
    if (this.#recovered.steps.has(step)) return;
    this.#steps = [...this.#steps, { spans }].slice(-recentSteps);
    const context = { config: this.#config, datasetSize, observed, steps: this.#steps };
    const metrics = stepMetrics({ step, datasetOffset, batch, update, rule, spans, ...context });
    await this.#journal.append({ type: "step-done", step, datasetOffset, spans, observed, metrics });
  }
}
