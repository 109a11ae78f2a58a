// What a run is, folded from its journal: the one answer to every question about it, for a run that is over and for one that goes on.
// Events come in order. Answers and verdicts, nearly all of a journal, are not needed: where they stand is kept, and batch.ts reads them.
import { type CheckpointRecord, LiveCheckpoints } from "./checkpoints.ts";
import { describeControl } from "./controls.ts";
import { type BulkKind, type Frame, isBefore, isBulk, type JournalPosition } from "./cursor.ts";
import type { EventOf, RunEvent, Span, UpdateGroup } from "./events.ts";
import { FoundFindings } from "./findings.ts";
import { framesOf } from "./read-journal.ts";
import type { MetricsRecord } from "./records.ts";
import { dropCarried, isStepUndone, undoSteps, undoVersions } from "./rewinds.ts";
import { coveredWithin } from "./timing.ts";

/** One process's part of a run. */
export interface Session {
  pid: number;
  openedAt: number;
  /** False for one that found nothing to do, or did not get that far. */
  started: boolean;
  lastAt: number;
  outcome: EventOf<"stopped">["outcome"] | undefined;
  error: string | undefined;
  changes: EventOf<"started">["changes"];
}

/** A step that is over. */
export interface DoneStep {
  step: number;
  metrics: Readonly<Record<string, number>>;
  spans: readonly Span[];
}

/** A group as its update saw it, without what is known of each answer. */
export type GroupEntry = Omit<UpdateGroup, "advantages" | "trained">;

/** An update, and where its events stand. */
export interface Update {
  submitted: JournalPosition;
  groups: GroupEntry[];
  /** Groups that it left to later updates. */
  carried: readonly Pick<GroupEntry, "batch" | "group">[];
  /** The event with the trainer's log-probabilities. */
  done: JournalPosition | undefined;
  learningRate: number;
}

/** Something that people should see in the order it happened: messages, rewinds, controls. */
export interface Note {
  at: number;
  type: "log" | "rewound" | "control";
  level: "INFO" | "WARNING" | "ERROR";
  text: string;
}

/** Where events stand; no end: up to where the journal ends. */
export interface JournalWindow {
  from: JournalPosition;
  to: JournalPosition | undefined;
}

const maxNotes = 500;
const beginning: JournalPosition = { segment: 0, offset: 0 };

export class RunView {
  config: Readonly<Record<string, unknown>> = {};
  readonly sessions: Session[] = [];
  /** Those that are over, in order; those that were rewound are gone, here as in everything below. */
  readonly steps: DoneStep[] = [];
  readonly updates = new Map<number, Update>();
  /** By the version that was measured. */
  readonly evaluations = new Map<number, EventOf<"evaluated">>();
  /** What was asked of the run, oldest first; also before a rewind. */
  readonly controls: EventOf<"control">[] = [];
  /** Of the diagnosis. */
  readonly findings = new FoundFindings();
  readonly notes: Note[] = [];
  /** The names of the steps' figures. */
  readonly metricNames = new Set<string>();
  /** Whether the run waits for somebody to let it go on. */
  paused = false;
  /** Groups sampled and answers judged since the last step was over. */
  readonly sinceStep = { groups: 0, graded: 0 };
  lastAt = 0;
  /** Counts every event that changes what people see apart from the steps. */
  revision = 0;
  readonly #checkpoints = new LiveCheckpoints();
  /** What was worked on beside the steps, and in steps that were rewound. */
  readonly #spans: Span[] = [];
  /** The largest lag that a session allowed: how far back answers of a step's batch can stand. */
  #maxLag = 0;
  readonly #rewinds: { to: number; position: JournalPosition }[] = [];
  readonly #evaluationWindows = new Map<number, JournalWindow>();
  /** One text for each problem, however often it is named. */
  readonly #texts = new Map<string, string>();
  /** The update that was submitted last. */
  #current: Update | undefined;

  /** The view of what is on disk. */
  static read(runPath: string): RunView {
    const view = new RunView();
    for (const frame of framesOf(runPath)) view.takeFrame(frame);
    return view;
  }

  /** Seconds in which a process worked on the run: the time between a crash and the next start does not count. */
  get seconds(): number {
    return this.#worked.reduce((sum, { start, end }) => sum + (end - start) / 1000, 0);
  }

  /** Seconds in which at least one span of each name was under way, and those in which none was as "other". Spans run beside each other. */
  get secondsOf(): Record<string, number> {
    const spans = [...this.#spans, ...this.steps.flatMap((step) => step.spans)].filter(({ name }) => name !== "total");
    const worked = this.#worked;
    const covered = (some: readonly Span[]) => coveredWithin(some, worked) / 1000;
    const names = new Set(spans.map(({ name }) => name));
    return {
      ...Object.fromEntries([...names].map((wanted) => [wanted, covered(spans.filter(({ name }) => name === wanted))])),
      other: this.seconds - covered(spans),
    };
  }

  /** Metrics in the order of steps, each step's with those of its evaluation: what metrics.jsonl says of a run that is over. */
  get records(): MetricsRecord[] {
    const evaluationOf = (step: number) => this.evaluations.get(step)?.metrics;
    const done = new Set(this.steps.map(({ step }) => step));
    return [
      ...this.steps.map(({ step, metrics }) => ({ step, ...metrics, ...evaluationOf(step) })),
      ...[...this.evaluations.keys()]
        .filter((step) => !done.has(step))
        .map((step) => ({ step, ...evaluationOf(step) })),
    ].sort((a, b) => a.step - b.step);
  }

  /** How often the run went back. */
  get rewinds(): number {
    return this.#rewinds.length;
  }

  /** Those that count, oldest first. */
  get checkpoints(): readonly CheckpointRecord[] {
    return this.#checkpoints.records;
  }

  /** The newest that counts. */
  get newest(): CheckpointRecord | undefined {
    return this.checkpoints.at(-1);
  }

  /** Where the events of a step's batch can stand: from its earliest possible answer to the last update that is on some of it. */
  windowOf(step: number): JournalWindow {
    let from = this.updates.get(step - this.#maxLag - 1)?.submitted ?? beginning;
    for (const { to, position } of this.#rewinds)
      if (isStepUndone(step, to) && isBefore(from, position)) from = position;
    return { from, to: this.updates.get(this.lastUpdateOn(step))?.submitted };
  }

  /** The last step whose update is on groups of a batch, or on that one: the first that leaves none of them to the next. */
  lastUpdateOn(batch: number, group?: number): number {
    let step = batch;
    const isLeft = (left: Update["carried"][number]) =>
      left.batch === batch && (group === undefined || left.group === group);
    while (this.updates.get(step)?.carried.some(isLeft)) step++;
    return step;
  }

  /** Where the events of an evaluation stand; undefined where none was begun. */
  windowOfEvaluation(version: number): JournalWindow | undefined {
    return this.#evaluationWindows.get(version);
  }

  /** Takes the next frame, and decodes it only where its event is needed. */
  takeFrame(frame: Frame): void {
    if (frame.bulk === undefined) this.take(frame.event(), frame.position);
    else this.#takeBulk(frame.bulk, frame.position);
  }

  take(event: RunEvent, position: JournalPosition = beginning): void {
    if (isBulk(event.type)) {
      this.#takeBulk(event.type, position);
      return;
    }
    if (event.type === "opened") this.sessions.push(openedSession(event));
    const session = this.sessions.at(-1);
    this.lastAt = event.at;
    if (session) session.lastAt = event.at;
    if (event.type !== "step-done" && event.type !== "update-submitted") this.revision++;
    this.#checkpoints.take(event);
    this.findings.take(event);
    switch (event.type) {
      case "started":
        this.config = event.config;
        this.#maxLag = Math.max(this.#maxLag, Number(event.config["max_lag"] ?? 0) || 0);
        if (session) Object.assign(session, { started: true, changes: event.changes });
        break;
      case "update-submitted":
        this.#submitted(event, position);
        break;
      case "step-done":
        this.steps.push({ step: event.step, metrics: event.metrics, spans: event.spans });
        for (const name of Object.keys(event.metrics)) this.metricNames.add(name);
        Object.assign(this.sinceStep, { groups: 0, graded: 0 });
        break;
      case "retrained":
        this.#spans.push({ name: "train", start: event.start, end: event.end });
        break;
      case "evaluation-started":
        this.#evaluationWindows.set(event.step, { from: position, to: undefined });
        break;
      case "evaluated":
        this.#evaluated(event, position);
        break;
      case "saved":
        this.#spans.push({ name: "save", start: event.start, end: event.end });
        break;
      case "rewound":
        this.#rewound(event, position);
        break;
      case "control":
        this.#control(event);
        break;
      case "finding":
        if (event.action === "pause") this.paused = true;
        break;
      case "log":
        this.#note({ at: event.at, type: "log", level: event.level, text: event.message });
        break;
      case "stopped":
        if (session) Object.assign(session, { outcome: event.outcome, error: event.error });
        break;
    }
  }

  get #worked(): { start: number; end: number }[] {
    return this.sessions.flatMap(({ openedAt, lastAt, started }) =>
      started ? [{ start: openedAt, end: lastAt }] : [],
    );
  }

  #takeBulk(kind: BulkKind, position: JournalPosition): void {
    if (kind === "graded") this.sinceStep.graded++;
    else if (kind === "group-sampled") this.sinceStep.groups++;
    // Its step is the one submitted last.
    else if (kind === "update-done" && this.#current) this.#current.done = position;
  }

  #submitted(event: EventOf<"update-submitted">, position: JournalPosition): void {
    const { step, rule } = event;
    this.#current = {
      submitted: position,
      done: undefined,
      learningRate: rule.adam.learningRate,
      carried: event.carried,
      groups: event.groups.map(({ advantages: _, trained: __, ...entry }) => ({
        ...entry,
        problem: this.#text(entry.problem),
      })),
    };
    this.updates.set(step, this.#current);
  }

  #evaluated(event: EventOf<"evaluated">, position: JournalPosition): void {
    const { step, start, end } = event;
    const outcomes = event.outcomes.map((outcome) => ({
      ...outcome,
      id: this.#text(outcome.id),
      source: this.#text(outcome.source),
    }));
    this.evaluations.set(step, { ...event, outcomes });
    const window = this.#evaluationWindows.get(step);
    if (window) window.to = position;
    this.#spans.push({ name: "evaluate", start, end });
  }

  #rewound({ at, to, reason }: EventOf<"rewound">, position: JournalPosition): void {
    this.#rewinds.push({ to, position });
    Object.assign(this.sinceStep, { groups: 0, graded: 0 });
    undoSteps(to, this.updates);
    dropCarried(to, this.updates);
    undoVersions(to, this.evaluations, this.#evaluationWindows);
    const kept = this.steps.findLastIndex(({ step }) => !isStepUndone(step, to)) + 1;
    for (const { spans } of this.steps.splice(kept)) this.#spans.push(...spans);
    this.#note({ at, type: "rewound", level: "WARNING", text: `back to step ${to}: ${reason}` });
  }

  #control(event: EventOf<"control">): void {
    const { at, by, step, control } = event;
    this.controls.push(event);
    if (control.kind === "pause" || control.kind === "go-on") this.paused = control.kind === "pause";
    const text = `${describeControl(control)} before step ${step}, asked by ${by}`;
    this.#note({ at, type: "control", level: "INFO", text });
  }

  #note(note: Note): void {
    this.notes.push(note);
    if (this.notes.length > maxNotes) this.notes.shift();
  }

  #text(text: string): string {
    const known = this.#texts.get(text);
    if (known === undefined) this.#texts.set(text, text);
    return known ?? text;
  }
}

/** A process has opened the run, and done nothing more yet. */
const openedSession = ({ at, pid }: EventOf<"opened">): Session => ({
  pid,
  openedAt: at,
  lastAt: at,
  started: false,
  outcome: undefined,
  error: undefined,
  changes: [],
});
