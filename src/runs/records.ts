// One record of metrics per step: what the step's end and its evaluation say, put together. An evaluation runs beside the steps that
// follow, so a record waits for the evaluation of its step; when the process ends first, the record goes out without it and the
// figures follow in a record of their own.
import type { RunEvent } from "./events.ts";

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
        if (event.final) this.#final = event.step;
        return this.#complete();
      case "rewound":
        for (const steps of [this.#evaluating, this.#sent])
          for (const step of [...steps]) if (step >= event.to) steps.delete(step);
        for (const step of [...this.#evaluated.keys()]) if (step >= event.to) this.#evaluated.delete(step);
        this.#waiting.splice(0, this.#waiting.length, ...this.#waiting.filter(({ step }) => step < event.to));
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
      const evaluation = this.#evaluated.get(record.step);
      this.#evaluated.delete(record.step);
      this.#sent.add(record.step);
      ready.push({ ...record, ...evaluation });
    }
    return [...ready, ...this.#alone((step) => this.#sent.has(step) || step === this.#final)];
  }

  /** Evaluations whose step has no record to go with. */
  #alone(which: (step: number) => boolean): MetricsRecord[] {
    return [...this.#evaluated]
      .filter(([step]) => which(step))
      .map(([step, metrics]) => {
        this.#evaluated.delete(step);
        return { step, ...metrics };
      });
  }
}
