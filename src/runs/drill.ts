// What a journal has of one batch, and of every problem over the whole run: what a reader who asks "why" looks at. Made anew from the
// journal at each call; texts and tokens are held for one batch only.
import { type EventOf, type Failure, isUndone, type RunEvent } from "./events.ts";
import { type JournalEntry, readJournal } from "./read-journal.ts";

export type Phase = "train" | "eval";
export type GroupOutcome = EventOf<"update-submitted">["groups"][number]["outcome"];

/** A group with everything that is known of it. */
export interface DrilledGroup {
  sampled: EventOf<"group-sampled">;
  arrays: JournalEntry["arrays"];
  /** By sample. */
  graded: (EventOf<"graded"> | undefined)[];
  /** What training made of it; absent until it was trained on, and of evaluations. */
  judged: EventOf<"update-submitted">["groups"][number] | undefined;
}

/** A batch of training, or an evaluation. */
export interface DrilledBatch {
  phase: Phase;
  batch: number;
  groups: DrilledGroup[];
  submitted: EventOf<"update-submitted"> | undefined;
  updated: { event: EventOf<"update-done">; arrays: JournalEntry["arrays"] } | undefined;
  done: EventOf<"step-done"> | undefined;
  config: Readonly<Record<string, unknown>>;
}

/** Reads one batch; `groups` is empty where the journal has none. */
export function drillBatch(runPath: string, phase: Phase, batch: number): DrilledBatch {
  const found: DrilledBatch = {
    phase,
    batch,
    groups: [],
    submitted: undefined,
    updated: undefined,
    done: undefined,
    config: {},
  };
  for (const { event, arrays } of readJournal(runPath)) {
    if (event.type === "started" && found.groups.length === 0) found.config = event.config;
    if (event.type === "rewound" && isUndone(found, event.to)) {
      found.groups = [];
      found.submitted = found.updated = found.done = undefined;
    }
    if (event.type === "evaluation-started" && phase === "eval" && event.step === batch) found.groups = [];
    if (event.type === "group-sampled" && event.phase === phase && event.batch === batch)
      found.groups[event.group] = { sampled: event, arrays, graded: [], judged: undefined };
    if (event.type === "graded" && event.phase === phase && event.batch === batch) {
      const group = found.groups[event.group];
      if (group) group.graded[event.sample] = event;
    }
    if (phase !== "train") continue;
    if (event.type === "update-submitted" && event.step === batch) found.submitted = event;
    if (event.type === "update-done" && event.step === batch) found.updated = { event, arrays };
    if (event.type === "step-done" && event.step === batch) found.done = event;
  }
  // A group that is still being sampled leaves a hole.
  found.groups = found.groups.filter((group) => group !== undefined);
  for (const group of found.groups) group.judged = found.submitted?.groups[group.sampled.group];
  return found;
}

/** The sampler's and the trainer's log-probabilities of one answer. */
export interface AnswerLogprobs {
  tokens: Int32Array;
  sampler: Float32Array;
  /** Undefined where it was not trained on, or the server gave none. */
  trainer: Float32Array | undefined;
}

/** The tokens of one answer; undefined when they were thinned from the journal. */
export function answerLogprobs(batch: DrilledBatch, group: DrilledGroup, sample: number): AnswerLogprobs | undefined {
  const { tokens, logprobs } = group.arrays();
  if (!(tokens instanceof Int32Array) || !(logprobs instanceof Float32Array)) return undefined;
  const start = sum(group.sampled.samples.slice(0, sample).map((answer) => answer.tokens));
  const end = start + (group.sampled.samples[sample]?.tokens ?? 0);
  return {
    tokens: tokens.subarray(start, end),
    sampler: logprobs.subarray(start, end),
    trainer: trainerLogprobs(batch, group, sample),
  };
}

/** The trainer's are stored end to end for all trained samples, in the order of groups and samples. */
function trainerLogprobs(batch: DrilledBatch, group: DrilledGroup, sample: number): Float32Array | undefined {
  const all = batch.updated?.arrays()["logprobs"];
  if (!(all instanceof Float32Array)) return undefined;
  let offset = 0;
  for (const other of batch.groups)
    for (const index of other.judged?.trained ?? []) {
      const { tokens } = other.sampled.samples[index]!;
      if (other === group && index === sample) return all.subarray(offset, offset + tokens);
      offset += tokens;
    }
  return undefined;
}

/** One group of a problem, counted. */
export interface Attempt {
  phase: Phase;
  batch: number;
  group: number;
  policy: number;
  samples: number;
  passed: number;
  ungraded: number;
  truncated: number;
  tokens: number;
  statuses: Record<string, number>;
  flags: number;
  outcome: GroupOutcome | undefined;
}

/** A problem over the whole run. */
export interface ProblemHistory {
  id: string;
  source: string;
  attempts: Attempt[];
}

/** Every group of a run, by problem; those of steps that were run anew count once. */
export class Problems {
  readonly #problems = new Map<string, ProblemHistory>();
  readonly #places = new Map<string, Attempt>();
  /** What no verdict was found for, by place: a later process tries again. */
  readonly #ungraded = new Map<string, EventOf<"graded">["grade"]>();

  static read(runPath: string): Problems {
    const problems = new Problems();
    for (const { event } of readJournal(runPath)) problems.take(event);
    return problems;
  }

  get all(): ProblemHistory[] {
    return [...this.#problems.values()].filter(({ attempts }) => attempts.length > 0);
  }

  #drop(isUndone: (attempt: Attempt) => boolean): void {
    for (const problem of this.#problems.values())
      problem.attempts = problem.attempts.filter((attempt) => !isUndone(attempt));
  }

  find(id: string): ProblemHistory | undefined {
    return this.#problems.get(id);
  }

  take(event: RunEvent): void {
    switch (event.type) {
      case "group-sampled": {
        const problem = this.#problems.get(event.problem) ?? { id: event.problem, source: event.source, attempts: [] };
        this.#problems.set(event.problem, problem);
        const attempt: Attempt = {
          phase: event.phase,
          batch: event.batch,
          group: event.group,
          policy: event.policy,
          samples: event.samples.length,
          passed: 0,
          ungraded: 0,
          truncated: event.samples.filter(({ truncated }) => truncated).length,
          tokens: sum(event.samples.map(({ tokens }) => tokens)),
          statuses: {},
          flags: 0,
          outcome: undefined,
        };
        problem.attempts.push(attempt);
        this.#places.set(keyOf(event), attempt);
        for (const sample of event.samples.keys()) this.#ungraded.delete(`${keyOf(event)} ${sample}`);
        break;
      }
      case "graded": {
        const attempt = this.#places.get(keyOf(event));
        if (!attempt) break;
        const place = `${keyOf(event)} ${event.sample}`;
        const before = this.#ungraded.get(place);
        if (before) count(attempt, before, -1);
        count(attempt, event.grade, 1);
        if (event.grade.verdict === "ungraded") this.#ungraded.set(place, event.grade);
        else this.#ungraded.delete(place);
        break;
      }
      case "update-submitted":
        for (const [group, { outcome }] of event.groups.entries()) {
          const attempt = this.#places.get(keyOf({ phase: "train", batch: event.step, group }));
          if (attempt) attempt.outcome = outcome;
        }
        break;
      case "evaluation-started":
        this.#drop(({ phase, batch }) => phase === "eval" && batch === event.step);
        break;
      case "rewound":
        this.#drop((attempt) => isUndone(attempt, event.to));
        break;
    }
  }
}

function count(attempt: Attempt, { verdict, status, flags }: EventOf<"graded">["grade"], by: 1 | -1): void {
  if (verdict === "pass") attempt.passed += by;
  if (verdict === "ungraded") attempt.ungraded += by;
  attempt.statuses[status] = (attempt.statuses[status] ?? 0) + by;
  if (attempt.statuses[status] === 0) delete attempt.statuses[status];
  if (flags.length > 0) attempt.flags += by;
}

/** The first failing test of an answer, where the journal has it. */
export const failureOf = (group: DrilledGroup, sample: number): Failure | undefined =>
  group.graded[sample]?.grade.failure;

const keyOf = ({ phase, batch, group }: { phase: string; batch: number; group: number }) =>
  `${phase} ${batch} ${group}`;
const sum = (values: readonly number[]) => values.reduce((all, value) => all + value, 0);
