// One record of metrics per step: what the step's end and its evaluation say, put together. An evaluation runs beside the steps that
// follow, so a record waits for the evaluation of its step; when the process ends first, the record goes out without it and the
// figures follow in a record of their own.
import type { RunEvent } from "./events.ts";
import { isStepUndone, isVersionUndone, undoSteps, undoVersions } from "./rewinds.ts";

/** One line of metrics.jsonl. */
export interface MetricsRecord {
  step: number;
  [name: string]: number;
}

export class MetricsRecords {
  /** In the order of steps; a record is sent on when nothing before it waits. */
  readonly #waiting: MetricsRecord[] = [];
  readonly #evaluating = new Set<number>();
  readonly #evaluated = new Map<number, Readonly<Record<string, number>>>();
  /** Evaluations whose figures are in no record yet. */
  readonly #waitingEvaluations = new Set<number>();
  readonly #sent = new Set<number>();
  #final = -1;

  /** The records that are complete after this event. */
  take(event: RunEvent): MetricsRecord[] {
    switch (event.type) {
      case "evaluation-started":
        this.#evaluating.add(event.step);
        return [];
      case "step-done":
        this.#waiting.push({ step: event.step, ...event.metrics });
        return this.#complete();
      case "evaluated":
        this.#evaluating.delete(event.step);
        this.#evaluated.set(event.step, event.metrics);
        this.#waitingEvaluations.add(event.step);
        if (event.final) this.#final = event.step;
        return this.#complete();
      case "rewound":
        undoSteps(event.to, this.#sent);
        undoVersions(event.to, this.#evaluating, this.#evaluated, this.#waitingEvaluations);
        // The policy that is gone back to was measured: its figures join the record that its step gets anew.
        if (this.#evaluated.has(event.to)) this.#waitingEvaluations.add(event.to);
        if (isVersionUndone(this.#final, event.to)) this.#final = -1;
        this.#waiting.splice(
          0,
          this.#waiting.length,
          ...this.#waiting.filter(({ step }) => !isStepUndone(step, event.to)),
        );
        return [];
      case "stopped":
        this.#evaluating.clear();
        return [...this.#complete(), ...this.#alone(() => true)];
      default:
        return [];
    }
  }

  #complete(): MetricsRecord[] {
    const ready: MetricsRecord[] = [];
    while (this.#waiting.length > 0 && !this.#evaluating.has(this.#waiting[0]!.step)) {
      const record = this.#waiting.shift()!;
      this.#sent.add(record.step);
      const evaluation = this.#waitingEvaluations.delete(record.step) ? this.#evaluated.get(record.step) : undefined;
      ready.push({ ...record, ...evaluation });
    }
    return [...ready, ...this.#alone((step) => this.#sent.has(step) || step === this.#final)];
  }

  /** Evaluations whose step has no record to go with. */
  #alone(which: (step: number) => boolean): MetricsRecord[] {
    return [...this.#waitingEvaluations].filter(which).map((step) => {
      this.#waitingEvaluations.delete(step);
      return { step, ...this.#evaluated.get(step) };
    });
  }
}
