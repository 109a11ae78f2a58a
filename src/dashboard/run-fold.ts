// The fold of a journal that a dashboard keeps: figures as columns, sessions, evaluations, and for every step where its events stand.
// Events come from a walk that does not decode the large ones. What a newer version may have written is passed over, not refused.
import { type CheckpointRecord, LiveCheckpoints } from "../runs/checkpoints.ts";
import { describeControl } from "../runs/controls.ts";
import { type BulkKind, type Frame, isBefore, type JournalPosition } from "../runs/cursor.ts";
import type { EventOf, ProblemOutcome, RunEvent } from "../runs/events.ts";
import { FoundFindings } from "../runs/findings.ts";
import { openedSession, type Session } from "../runs/view.ts";
import { Columns } from "./columns.ts";

/** One process's part of a run. */
export interface SessionEntry extends Session {
  pid: number;
}

/** A group as its update saw it. */
export interface GroupEntry {
  problem: string;
  outcome: EventOf<"update-submitted">["groups"][number]["outcome"];
  skipped: boolean;
  /** -1: the journal is of a version that did not say. */
  graded: number;
  passed: number;
}

interface StepEntry {
  submitted: JournalPosition;
  groups: GroupEntry[];
  /** Its update with the trainer's log-probabilities. */
  trained: JournalPosition | undefined;
  learningRate: number;
}

/** name, start, end of each span of a step. */
export type Spans = readonly { name: string; start: number; end: number }[];

/** Something that people should see in the order it happened: messages, rewinds, controls. */
export interface NoteEntry {
  at: number;
  type: string;
  level: "INFO" | "WARNING" | "ERROR";
  text: string;
}

const mostNotes = 500;

export class RunFold {
  config: Readonly<Record<string, unknown>> = {};
  readonly sessions: SessionEntry[] = [];
  readonly columns = new Columns();
  readonly spans: Spans[] = [];
  readonly evaluations = new Map<number, Omit<EventOf<"evaluated">, "type" | "at">>();
  readonly notes: NoteEntry[] = [];
  readonly steps = new Map<number, StepEntry>();
  /** Somebody, or on_error, holds the run back. */
  paused = false;
  /** What the diagnosis found and no rewind took back. */
  readonly findings = new FoundFindings();
  readonly #checkpoints = new LiveCheckpoints();
  /** Since the last step was over: answers sampled, and judged. */
  readonly sinceStep = { groups: 0, graded: 0 };
  /** The largest lag that a session allowed: how far back a step's answers can stand. */
  #maxLag = 0;
  readonly #rewinds: { to: number; position: JournalPosition }[] = [];
  readonly #evaluationStarted = new Map<number, JournalPosition>();
  readonly #evaluationDone = new Map<number, JournalPosition>();
  /** One text for each problem, however often it is named. */
  readonly #texts = new Map<string, string>();
  /** The step that was submitted last. */
  #current: StepEntry | undefined;
  lastAt = 0;
  /** Counts every event that changes what people see apart from the steps. */
  revision = 0;

  get checkpoints(): readonly CheckpointRecord[] {
    return this.#checkpoints.records;
  }

  /** Takes the next frame. True when what was known before no longer holds. */
  take(frame: Frame): boolean {
    if (frame.bulk !== undefined) {
      this.#bulk(frame.bulk, frame.position);
      return false;
    }
    return this.#event(frame.json(), frame.position);
  }

  /** Where the events of a step can stand: from its earliest possible answer to its update. */
  windowOf(step: number): { from: JournalPosition; to: JournalPosition | undefined } {
    const entry = this.steps.get(step);
    let from = this.steps.get(step - this.#maxLag - 1)?.submitted ?? { segment: 0, offset: 0 };
    for (const { to, position } of this.#rewinds) if (to <= step && isBefore(from, position)) from = position;
    return { from, to: entry?.submitted };
  }

  /** Where the events of an evaluation stand. */
  windowOfEvaluation(step: number): { from: JournalPosition; to: JournalPosition | undefined } | undefined {
    const from = this.#evaluationStarted.get(step);
    return from && { from, to: this.#evaluationDone.get(step) };
  }

  /** Attempts at each problem, in the order of steps. */
  *attempts(): Generator<{ step: number; group: number; entry: GroupEntry }> {
    for (const [step, { groups }] of this.steps)
      for (const [group, entry] of groups.entries()) yield { step, group, entry };
  }

  #bulk(kind: BulkKind, position: JournalPosition): void {
    if (kind === "graded") this.sinceStep.graded++;
    else if (kind === "group-sampled") this.sinceStep.groups++;
    // Its step is the one submitted last.
    else if (this.#current) this.#current.trained = position;
  }

  #event(event: RunEvent, position: JournalPosition): boolean {
    const session = this.sessions.at(-1);
    if (Number.isFinite(event.at)) {
      this.lastAt = event.at;
      // Until a process opens the run nobody works on it.
      if (session && event.type !== "opened") session.lastAt = event.at;
    }
    if (event.type !== "step-done" && event.type !== "update-submitted") this.revision++;
    this.#checkpoints.take(event);
    switch (event.type) {
      case "opened":
        this.sessions.push({ ...openedSession(event), pid: event.pid });
        return false;
      case "started":
        this.config = event.config;
        this.#maxLag = Math.max(this.#maxLag, Number(event.config["max_lag"] ?? 0) || 0);
        if (session) Object.assign(session, { started: true, changes: event.changes });
        return false;
      case "update-submitted":
        this.#submitted(event, position);
        return false;
      case "step-done":
        this.columns.push(event.step, event.metrics);
        this.spans.push(event.spans);
        this.sinceStep.groups = 0;
        this.sinceStep.graded = 0;
        return false;
      case "evaluation-started":
        this.#evaluationStarted.set(event.step, position);
        return false;
      case "evaluated":
        this.#evaluated(event, position);
        return false;
      case "rewound":
        this.#rewound(event, position);
        return true;
      case "stopped":
        if (session) Object.assign(session, { outcome: event.outcome, error: event.error });
        return false;
      case "control":
        this.#control(event);
        return false;
      case "finding":
        this.findings.take(event);
        if (event.action === "pause") this.paused = true;
        return false;
      case "log":
        this.#note({ at: event.at, type: "log", level: event.level, text: event.message });
        return false;
      default:
        return false;
    }
  }

  #submitted(event: EventOf<"update-submitted">, position: JournalPosition): void {
    this.#current = {
      submitted: position,
      trained: undefined,
      learningRate: Number(event.rule?.adam?.learningRate),
      groups: event.groups.map(({ problem, outcome, skipped, graded, passed }) => ({
        problem: this.#text(problem),
        outcome,
        skipped,
        graded: graded ?? -1,
        passed: passed ?? -1,
      })),
    };
    this.steps.set(event.step, this.#current);
  }

  #evaluated({ type: _, at: __, ...event }: EventOf<"evaluated">, position: JournalPosition): void {
    const outcomes: ProblemOutcome[] = event.outcomes.map((outcome) => ({
      ...outcome,
      id: this.#text(outcome.id),
      source: this.#text(outcome.source),
    }));
    this.evaluations.set(event.step, { ...event, outcomes });
    this.#evaluationDone.set(event.step, position);
  }

  #control({ at, by, step, control }: EventOf<"control">): void {
    if (control.kind === "pause") this.paused = true;
    else if (control.kind === "go-on") this.paused = false;
    const text = `${describeControl(control)} before step ${step}, asked by ${by}`;
    this.#note({ at, type: "control", level: "INFO", text });
  }

  #rewound(event: EventOf<"rewound">, position: JournalPosition): void {
    this.#rewinds.push({ to: event.to, position });
    this.columns.cut(event.to);
    this.spans.length = this.columns.length;
    for (const step of [...this.steps.keys()]) if (step >= event.to) this.steps.delete(step);
    this.findings.take(event);
    for (const known of [this.evaluations, this.#evaluationStarted, this.#evaluationDone])
      for (const step of [...known.keys()]) if (step > event.to) known.delete(step);
    this.#note({
      at: event.at,
      type: "rewound",
      level: "WARNING",
      text: `back to step ${event.to}: ${event.reason}`,
    });
  }

  #note(note: NoteEntry): void {
    this.notes.push(note);
    if (this.notes.length > mostNotes) this.notes.splice(0, this.notes.length - mostNotes);
  }

  #text(text: string): string {
    const known = this.#texts.get(text);
    if (known !== undefined) return known;
    this.#texts.set(text, text);
    return text;
  }
}
