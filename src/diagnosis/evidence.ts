// What the rules look at, folded from a run's journal: one record per step of the present attempt, evaluations, checkpoints, answers that
// were flagged, how the last process ended. Nothing here grows with the number of answers.
import { join } from "node:path";
import { entryOf } from "../core/maps.ts";
import { whet } from "../core/program.ts";
import { shellCommand } from "../core/shell.ts";
import { type CheckpointRecord, LiveCheckpoints } from "../runs/checkpoints.ts";
import { runFiles } from "../runs/directory.ts";
import type { EventOf, RunEvent } from "../runs/events.ts";
import type { Finding } from "../runs/findings.ts";
import { isStepUndone, isVersionUndone, undoSteps } from "../runs/rewinds.ts";
import type { Period } from "../runs/timing.ts";
import type { BatchTimes } from "./pace.ts";

/** A step's figures, by the names of docs/metrics.md. */
export interface StepFigures {
  step: number;
  figures: Readonly<Record<string, number>>;
}

/** Steps whose times are kept. */
const timedSteps = 20;

/** Flagged answers that are kept, newest last. */
const maxFlagged = 200;

export class Evidence {
  runPath = "";
  config: Readonly<Record<string, unknown>> = {};
  /** In order, without gaps; steps that were rewound are gone. */
  readonly steps: StepFigures[] = [];
  /** By the step whose policy was measured, in order. */
  evaluations: StepFigures[] = [];
  /** Answers that passed and were flagged by the grader. */
  flaggedPasses: NonNullable<Finding["samples"]> = [];
  /** How the last process ended; undefined while one is at work or was killed. */
  end: EventOf<"stopped"> | undefined;
  /** When the newest event happened: the time that rules go by. */
  now = 0;
  /** Of the newest steps: what each took. */
  times: (BatchTimes & { step: number })[] = [];
  #updateRate: number | undefined;
  /** By batch and place, from the newest step on: each group's problem, when it was asked for, and judged so far. */
  readonly #groups = new Map<number, Map<number, Period & { problem: string }>>();
  readonly #checkpoints = new LiveCheckpoints();

  get checkpoints(): readonly CheckpointRecord[] {
    return this.#checkpoints.records;
  }

  /** The learning rate of the newest update; before the first, the config's. */
  get learningRate(): number {
    return this.#updateRate ?? this.setting("learning_rate", 0);
  }

  /** A command on this run, ready to paste. */
  command(name: string, ...words: readonly string[]): string {
    return shellCommand(`${whet} ${name}`, `run=${this.runPath}`, ...words);
  }

  /** The command that trains anew with this run's settings but for those that are named, in a directory of its own. */
  again(...words: readonly string[]): string {
    return shellCommand(`${whet} train`, `@${join(this.runPath, runFiles.config)}`, ...words);
  }

  take(event: RunEvent): void {
    this.now = Math.max(this.now, event.at);
    this.#checkpoints.take(event);
    switch (event.type) {
      case "opened":
        this.end = undefined;
        break;
      case "started":
        this.config = event.config;
        break;
      case "group-sampled":
        if (event.phase === "train") this.#sampled(event);
        break;
      case "graded":
        if (event.phase === "train") this.#graded(event);
        break;
      case "update-submitted":
        this.#updateRate = event.rule.adam.learningRate;
        break;
      case "step-done":
        this.steps.push({ step: event.step, figures: event.metrics });
        this.#timed(event);
        break;
      case "evaluated":
        this.evaluations = [
          ...this.evaluations.filter(({ step }) => step !== event.step),
          { step: event.step, figures: event.metrics },
        ].sort((a, b) => a.step - b.step);
        break;
      case "rewound":
        this.steps.splice(0, this.steps.length, ...this.steps.filter(({ step }) => !isStepUndone(step, event.to)));
        this.times = this.times.filter(({ step }) => !isStepUndone(step, event.to));
        this.evaluations = this.evaluations.filter(({ step }) => !isVersionUndone(step, event.to));
        this.flaggedPasses = this.flaggedPasses.filter(({ step }) => !isStepUndone(step, event.to));
        undoSteps(event.to, this.#groups);
        break;
      case "stopped":
        this.end = event;
        break;
    }
  }

  /** The newest steps, at most `count`, oldest first; those that lack the figure are left out where one is named. */
  last(count: number, name?: string): StepFigures[] {
    const found: StepFigures[] = [];
    for (let index = this.steps.length - 1; index >= 0 && found.length < count; index--) {
      const step = this.steps[index]!;
      if (name === undefined || step.figures[name] !== undefined) found.unshift(step);
    }
    return found;
  }

  /** The first steps that have the figure, at most `count`. */
  first(count: number, name: string): StepFigures[] {
    const found: StepFigures[] = [];
    for (let index = 0; index < this.steps.length && found.length < count; index++)
      if (this.steps[index]!.figures[name] !== undefined) found.push(this.steps[index]!);
    return found;
  }

  /** The newest step's number; -1 before the first. */
  get step(): number {
    return this.steps.at(-1)?.step ?? -1;
  }

  /** A number of the config. */
  setting(key: string, fallback: number): number {
    const value = this.config[key];
    return typeof value === "number" ? value : fallback;
  }

  #sampled({ batch, group, problem, start, end }: EventOf<"group-sampled">): void {
    entryOf(this.#groups, batch, () => new Map()).set(group, { problem, start, end });
  }

  #timed({ step, metrics }: EventOf<"step-done">): void {
    const periods = [...(this.#groups.get(step)?.values() ?? [])];
    const begun = Math.min(...periods.map(({ start }) => start));
    // Those of this step that were carried over are still to be judged.
    for (const batch of [...this.#groups.keys()]) if (batch < step) this.#groups.delete(batch);
    const groups = periods.map(({ end }) => (end - begun) / 1000);
    this.times.push({ step, groups, sync: metrics["time/weights"] ?? 0, train: metrics["time/train"] ?? 0 });
    if (this.times.length > timedSteps) this.times.shift();
  }

  #graded({ batch, group, sample, grade, end }: EventOf<"graded">): void {
    const known = this.#groups.get(batch)?.get(group);
    if (known) known.end = Math.max(known.end, end);
    const flags = grade.flags.filter((flag) => flag !== weakTestsFlag);
    if (grade.verdict !== "pass" || flags.length === 0) return;
    this.flaggedPasses.push({ step: batch, group, sample, problem: known?.problem ?? "" });
    if (this.flaggedPasses.length > maxFlagged) this.flaggedPasses.shift();
  }
}

/** The grader's flag for a problem whose tests a know-nothing program passes. */
export const weakTestsFlag = "weak-tests";
