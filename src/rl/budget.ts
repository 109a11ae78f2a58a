// Stops a run before it has cost more than it may. Work is begun only if what was spent, what is under way and the new work together
// stay below the limit: by the lengths measured so far with three standard deviations on top, by the longest answers possible
// while too little is measured.
import { entryOf } from "../core/maps.ts";
import type { RunEvent } from "../runs/events.ts";
import { undoSteps } from "../runs/rewinds.ts";
import type { TrainConfig } from "./config.ts";
import { forecastAtMost } from "./forecast.ts";
import type { Meter } from "./meter.ts";
import { costOf, sampledTokens, type Tariff, type TokenUse } from "./prices.ts";
import { placeKey } from "./remembered-groups.ts";
import type { Place } from "./rollout.ts";

/** Why something does not fit, in US dollars. */
export interface Refusal {
  limit: number;
  /** Spent so far, with the estimate of what was lost. */
  spent: number;
  /** The most that the refused work may cost, with all that is under way. */
  next: number;
}

/** What there is to pay for. */
interface Work {
  /** Groups to sample, grade and train on. */
  groups: number;
  /** The same where the others of their batches are done: they take longer than what was measured. */
  slow: number;
  /** Groups of an evaluation to sample. */
  evaluated: number;
  /** Of groups that are sampled: to train on them. */
  training: number;
}

export interface BudgetOptions {
  /** US dollars. */
  limit: number;
  tariff: Tariff;
  meter: Meter;
  config: Pick<
    TrainConfig,
    "completions_per_prompt" | "max_tokens" | "context_window" | "eval_max_tokens" | "eval_num_samples"
  >;
  /** Turns of an episode, at most. */
  turns?: number | undefined;
  /** How often what is trained on is read besides. */
  reads?: number;
}

/** Groups that an estimate looks back on, and the fewest that it needs. */
const window = 64;
const fewest = 4;
const deviations = 3;

export class Budget {
  readonly #limit: number;
  readonly #meter: Meter;
  readonly #tariff: Tariff;
  readonly #reads: number;
  /** The most that a group costs, sampled and trained on; of an evaluation, sampled. */
  readonly #worst: { train: number; eval: number };
  /** What the last groups came to, sampled and trained on; of evaluations, sampled. */
  readonly #recent: { train: GroupCost[]; eval: GroupCost[] } = { train: [], eval: [] };
  /** Of groups that are under way. */
  readonly #costs = new Map<string, GroupCost>();
  /** Groups that are still to come, by batch and by evaluation. */
  readonly #groupsLeft = new Map<number, number>();
  readonly #evaluationLeft = new Map<number, number>();
  /** Dollars to train on what a batch has sampled. */
  readonly #untrained = new Map<number, number>();
  readonly #trained = new Map<number, number>();
  /** Groups by batch that the newest update left to later ones, and which step is next. */
  readonly #carried = new Map<number, Set<number>>();
  #next = 0;
  /** Admitted and not finished. */
  readonly #begun = { batches: new Set<number>(), evaluations: new Set<number>() };

  constructor({ limit, tariff, meter, config, turns = 1, reads = 0 }: BudgetOptions) {
    this.#limit = limit;
    this.#tariff = tariff;
    this.#meter = meter;
    this.#reads = reads;
    const single = { prompts_per_step: 1, eval_max_problems: 1, fill_batch: false, max_steps: -1, eval_every: 0 };
    const { step: group, evaluation } = forecastAtMost({ ...config, ...single }, turns);
    const read = group.prefill + reads * group.train;
    this.#worst = { train: this.#dollars({ ...group, prefill: read }), eval: this.#dollars(evaluation) };
  }

  /** Whether something that was admitted is not finished: its cost is not known yet. */
  get underWay(): boolean {
    return this.#begun.batches.size + this.#begun.evaluations.size > 0;
  }

  /** Admits a batch of which `groups` are still to be sampled, or says why not. One that was trained before is paid for again. */
  admit(batch: number, groups: number): Refusal | undefined {
    const again = this.#untrained.has(batch) ? 0 : (this.#trained.get(batch) ?? 0);
    const refusal = this.#refusalOf({ [this.#carried.has(batch) ? "slow" : "groups"]: groups, training: again });
    if (refusal) return refusal;
    this.#groupsLeft.set(batch, groups);
    if (again > 0) this.#untrained.set(batch, again);
    // A repeated step that samples and trains nothing writes nothing, so nothing would end it.
    if (groups > 0 || (this.#untrained.get(batch) ?? 0) > 0) this.#begun.batches.add(batch);
    return undefined;
  }

  /** Admits an evaluation of that many problems, or says why not. */
  admitEvaluation(version: number, problems: number): Refusal | undefined {
    const refusal = this.#refusalOf({ evaluated: problems });
    if (refusal) return refusal;
    this.#evaluationLeft.set(version, problems);
    this.#begun.evaluations.add(version);
    return undefined;
  }

  take(event: RunEvent): void {
    switch (event.type) {
      case "group-sampled": {
        const use = sampledTokens(event);
        const paid = event.given ? 0 : this.#dollars(use);
        const left = event.phase === "train" ? this.#groupsLeft : this.#evaluationLeft;
        left.set(event.batch, Math.max(0, (left.get(event.batch) ?? 0) - 1));
        // Of a batch whose update is on its way, the step's end is still to come.
        if (event.phase === "train" && this.#carried.has(event.batch) && !this.#untrained.has(event.batch))
          this.#endIfSampled(event.batch);
        const cost = { dollars: paid, training: 0 };
        this.#costs.set(placeKey(event), cost);
        remember(this.#recent[event.phase], cost);
        this.#willTrain(event, event.samples.length * use.prefill + use.sample, cost);
        break;
      }
      case "turn-sampled": {
        const cost = this.#costs.get(placeKey(event)) ?? { dollars: 0, training: 0 };
        const use = sampledTokens(event);
        cost.dollars += this.#dollars(use);
        // A turn adds its own tokens to what is trained on; one that begins a sequence adds its whole prompt as well.
        this.#willTrain(event, use.sample + (event.parent === null ? use.prefill : 0), cost);
        break;
      }
      case "update-submitted": {
        this.#trained.set(event.step, this.#dollars({ train: event.tokens, prefill: event.readTokens }));
        this.#untrained.set(event.step, this.#trained.get(event.step)!);
        for (const place of event.groups) this.#costs.delete(placeKey({ phase: "train", ...place }));
        this.#carried.clear();
        this.#next = event.step + 1;
        for (const { batch, group } of event.carried) {
          entryOf(this.#carried, batch, () => new Set()).add(group);
          const training = this.#costs.get(placeKey({ phase: "train", batch, group }))?.training ?? 0;
          this.#untrained.set(this.#next, (this.#untrained.get(this.#next) ?? 0) + training);
        }
        break;
      }
      case "update-done":
        this.#untrained.delete(event.step);
        break;
      case "retrained":
      case "step-done":
        this.#untrained.delete(event.step);
        this.#endIfSampled(event.step);
        break;
      case "evaluated":
        for (const key of this.#costs.keys()) if (key.startsWith(`eval ${event.step} `)) this.#costs.delete(key);
        this.#evaluationLeft.delete(event.step);
        this.#begun.evaluations.delete(event.step);
        break;
      case "resumed":
        for (const open of [this.#groupsLeft, this.#evaluationLeft, this.#begun.batches, this.#begun.evaluations])
          open.clear();
        // Those before the checkpoint are in it.
        for (const step of [...this.#trained.keys()]) if (step < event.version) this.#trained.delete(step);
        break;
      case "rewound":
        undoSteps(event.to, this.#untrained, this.#trained, this.#groupsLeft);
        // Nothing that was carried over is carried on.
        this.#carried.clear();
        break;
    }
  }

  /** A step is over, and with it its batch, but for groups that were carried over and are still being sampled. */
  #endIfSampled(batch: number): void {
    if ((this.#groupsLeft.get(batch) ?? 0) > 0 && (this.#carried.get(batch)?.size ?? 0) > 0) return;
    this.#groupsLeft.delete(batch);
    this.#begun.batches.delete(batch);
  }

  /** Tokens that an update will read. */
  #willTrain({ phase, batch, group }: Place, tokens: number, cost: GroupCost): void {
    if (phase !== "train") return;
    const training = this.#dollars({ train: tokens, prefill: this.#reads * tokens });
    const step = this.#carried.get(batch)?.has(group) ? this.#next : batch;
    this.#untrained.set(step, (this.#untrained.get(step) ?? 0) + training);
    cost.dollars += training;
    cost.training += training;
  }

  #refusalOf({ groups = 0, slow = 0, evaluated = 0, training = 0 }: Partial<Work>): Refusal | undefined {
    const { total, lost } = this.#meter.spent ?? { total: 0, lost: 0 };
    const sum = (values: Iterable<number>) => [...values].reduce((all, value) => all + value, 0);
    const left = [...this.#groupsLeft];
    const leftOf = (isSlow: boolean) =>
      sum(left.map(([batch, count]) => (this.#carried.has(batch) === isSlow ? count : 0)));
    const next = this.#atMost({
      groups: leftOf(false) + groups,
      slow: leftOf(true) + slow,
      evaluated: sum(this.#evaluationLeft.values()) + evaluated,
      training: sum(this.#untrained.values()) + training,
    });
    const spent = total + lost;
    return spent + next <= this.#limit ? undefined : { limit: this.#limit, spent, next };
  }

  /** The most that work can be expected to cost. */
  #atMost({ groups, slow, evaluated, training }: Work): number {
    const bound = (phase: "train" | "eval", count: number) =>
      upperBound(
        this.#recent[phase].map(({ dollars }) => dollars),
        count,
        this.#worst[phase],
      );
    return bound("train", groups) + slow * this.#worst.train + bound("eval", evaluated) + training;
  }

  #dollars(use: Partial<TokenUse>): number {
    return costOf(this.#tariff, use).total;
  }
}

/** What `count` further items cost at most, going by recent ones; `worst` each while these are too few. */
export function upperBound(recent: readonly number[], count: number, worst: number): number {
  if (count === 0) return 0;
  if (recent.length < fewest) return count * worst;
  const mean = recent.reduce((sum, value) => sum + value, 0) / recent.length;
  const variance = recent.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (recent.length - 1);
  // Their own scatter, and that of the mean they are judged by.
  const scatter = Math.sqrt(variance * (count + count ** 2 / recent.length));
  return Math.min(count * worst, count * mean + deviations * scatter);
}

/** What a group came to so far. */
interface GroupCost {
  dollars: number;
  /** What of it is for training. */
  training: number;
}

function remember(recent: GroupCost[], value: GroupCost): void {
  recent.push(value);
  if (recent.length > window) recent.shift();
}
