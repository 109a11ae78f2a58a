// Spans: what a step spent its time on. A span may run beside others; `time/NAME` of repeated ones is given as total, count, mean, max.
import { performance } from "node:perf_hooks";

export interface Span {
  name: string;
  /** Milliseconds since the epoch. */
  start: number;
  end: number;
}

/** Collects the spans of one step. */
export class StepTimer {
  readonly #spans: Span[] = [];
  readonly #started = performance.now();

  /** Times a piece of work; its span counts also when it fails. */
  async measure<T>(name: string, work: () => Promise<T>): Promise<T> {
    const start = performance.now();
    try {
      return await work();
    } finally {
      this.add(name, start, performance.now());
    }
  }

  /** Adds a span measured elsewhere, in performance.now() milliseconds. */
  add(name: string, start: number, end: number): void {
    this.#spans.push({ name, start: performance.timeOrigin + start, end: performance.timeOrigin + end });
  }

  get spans(): readonly Span[] {
    return this.#spans;
  }

  /** `time/NAME` in seconds, `time/total` since the timer was made, and `time/other` that no span covers. */
  metrics(): Record<string, number> {
    const byName = new Map<string, number[]>();
    for (const span of this.#spans) {
      const seconds = (span.end - span.start) / 1000;
      const list = byName.get(span.name);
      if (list) list.push(seconds);
      else byName.set(span.name, [seconds]);
    }
    const metrics: Record<string, number> = {};
    for (const [name, seconds] of byName) {
      const total = seconds.reduce((sum, value) => sum + value, 0);
      if (seconds.length === 1) metrics[`time/${name}`] = total;
      else {
        metrics[`time/${name}:total`] = total;
        metrics[`time/${name}:count`] = seconds.length;
        metrics[`time/${name}:mean`] = total / seconds.length;
        metrics[`time/${name}:max`] = Math.max(...seconds);
      }
    }
    const totalMs = performance.now() - this.#started;
    metrics["time/total"] = totalMs / 1000;
    metrics["time/other"] = Math.max(0, totalMs - coveredMs(this.#spans)) / 1000;
    return metrics;
  }
}

/** The length of the union of spans, which may overlap. */
function coveredMs(spans: readonly Span[]): number {
  let covered = 0;
  let end = Number.NEGATIVE_INFINITY;
  for (const span of [...spans].sort((a, b) => a.start - b.start)) {
    covered += Math.max(0, span.end - Math.max(end, span.start));
    end = Math.max(end, span.end);
  }
  return covered;
}
