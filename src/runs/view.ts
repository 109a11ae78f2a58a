// One view of a run, folded from its journal: what the report, the summary and every other reader show.
import { type CheckpointRecord, LiveCheckpoints } from "./checkpoints.ts";
import type { EventOf, ProblemOutcome, RunEvent, Span } from "./events.ts";
import { FoundFindings } from "./findings.ts";
import { readJournal } from "./read-journal.ts";
import { type MetricsRecord, MetricsRecords } from "./records.ts";
import { coveredWithin } from "./timing.ts";

/** One process's part of a run. */
export interface Session {
  openedAt: number;
  /** False for one that found nothing to do, or did not get that far. */
  started: boolean;
  lastAt: number;
  outcome: EventOf<"stopped">["outcome"] | undefined;
  error: string | undefined;
  changes: EventOf<"started">["changes"];
}

/** A process that has opened the run, and nothing more yet. */
export const openedSession = ({ at }: EventOf<"opened">): Session => ({
  openedAt: at,
  lastAt: at,
  started: false,
  outcome: undefined,
  error: undefined,
  changes: [],
});

export class RunView {
  config: Readonly<Record<string, unknown>> = {};
  readonly sessions: Session[] = [];
  /** Metrics in the order of steps, as metrics.jsonl has them. */
  readonly records: MetricsRecord[] = [];
  /** The outcomes of every evaluation that counts, by the step whose policy it measured. */
  readonly evaluations = new Map<number, ProblemOutcome[]>();
  /** What was asked of the run, oldest first. */
  readonly controls: EventOf<"control">[] = [];
  /** What the diagnosis said while it ran and no rewind took back. */
  readonly findings = new FoundFindings();
  /** Whether the run waits for somebody to let it go on. */
  paused = false;
  readonly #join = new MetricsRecords();
  readonly #checkpoints = new LiveCheckpoints();
  /** What was worked on and when, of steps that were rewound too. */
  readonly #spans: Span[] = [];

  /** The view of what is on disk. */
  static read(runPath: string): RunView {
    const view = new RunView();
    for (const { event } of readJournal(runPath)) view.take(event);
    return view;
  }

  /** Seconds in which a process worked on the run: the time between a crash and the next start does not count. */
  get seconds(): number {
    return this.sessions.reduce(
      (sum, { openedAt, lastAt, started }) => (started ? sum + (lastAt - openedAt) / 1000 : sum),
      0,
    );
  }

  /** Seconds in which at least one span of each name was under way, and those in which none was as "other". Spans run beside each other. */
  get secondsOf(): Record<string, number> {
    const worked = this.sessions.flatMap(({ openedAt, lastAt, started }) =>
      started ? [{ start: openedAt, end: lastAt }] : [],
    );
    const covered = (spans: readonly Span[]) => coveredWithin(spans, worked) / 1000;
    const names = new Set(this.#spans.map(({ name }) => name));
    return {
      ...Object.fromEntries(
        [...names].map((wanted) => [wanted, covered(this.#spans.filter(({ name }) => name === wanted))]),
      ),
      other: this.seconds - covered(this.#spans),
    };
  }

  /** Those that count, oldest first. */
  get checkpoints(): readonly CheckpointRecord[] {
    return this.#checkpoints.records;
  }

  get newest(): CheckpointRecord | undefined {
    return this.checkpoints.at(-1);
  }

  take(event: RunEvent): void {
    if (event.type === "opened") this.sessions.push(openedSession(event));
    const session = this.sessions.at(-1);
    if (session) session.lastAt = event.at;
    if (event.type === "rewound") {
      this.records.splice(0, this.records.length, ...this.records.filter(({ step }) => step < event.to));
      for (const step of [...this.evaluations.keys()]) if (step > event.to) this.evaluations.delete(step);
    }
    this.records.push(...this.#join.take(event));
    this.findings.take(event);
    this.#checkpoints.take(event);
    switch (event.type) {
      case "started":
        this.config = event.config;
        if (session) Object.assign(session, { started: true, changes: event.changes });
        break;
      case "step-done":
        this.#spans.push(...event.spans.filter(({ name }) => name !== "total"));
        break;
      case "retrained":
        this.#spans.push({ name: "train", start: event.start, end: event.end });
        break;
      case "evaluated":
        this.evaluations.set(event.step, event.outcomes);
        this.#spans.push({ name: "evaluate", start: event.start, end: event.end });
        break;
      case "saved":
        this.#spans.push({ name: "save", start: event.start, end: event.end });
        break;
      case "control":
        this.controls.push(event);
        if (event.control.kind === "pause" || event.control.kind === "go-on")
          this.paused = event.control.kind === "pause";
        break;
      case "finding":
        if (event.action === "pause") this.paused = true;
        break;
      case "stopped":
        if (session) Object.assign(session, { outcome: event.outcome, error: event.error });
        break;
    }
  }
}
