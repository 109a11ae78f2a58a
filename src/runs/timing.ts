// Spans: what a step spent its time on. A span may run beside others; `time/NAME` of repeated ones is given as total, count, mean, max.
import type { Span } from "./events.ts";

/** Times a piece of work into `spans`; it counts also when it fails. */
export async function measured<T>(spans: Span[], name: string, work: () => Promise<T>): Promise<T> {
  const start = Date.now();
  try {
    return await work();
  } finally {
    spans.push({ name, start, end: Date.now() });
  }
}

/** `time/NAME` in seconds of every span, and `time/other`: what of the span "total" no other covers. */
export function spanMetrics(spans: readonly Span[]): Record<string, number> {
  const byName = new Map<string, number[]>();
  for (const span of spans) {
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
  const whole = spans.find(({ name }) => name === "total");
  if (whole) {
    const parts = spans.filter((span) => span !== whole);
    metrics["time/other"] = (whole.end - whole.start - coveredWithin(parts, [whole])) / 1000;
  }
  return metrics;
}

/** The length of the union of spans, which may overlap. */
export function coveredMs(spans: readonly Period[]): number {
  let covered = 0;
  let end = Number.NEGATIVE_INFINITY;
  for (const span of [...spans].sort((a, b) => a.start - b.start)) {
    covered += Math.max(0, span.end - Math.max(end, span.start));
    end = Math.max(end, span.end);
  }
  return covered;
}

/** A stretch of time in milliseconds since the epoch. */
export interface Period {
  start: number;
  end: number;
}

/** For how long of `periods`, which do not overlap, at least one of the spans was under way. */
export function coveredWithin(spans: readonly Period[], periods: readonly Period[]): number {
  return periods.reduce((sum, period) => {
    const inside = spans
      .filter(({ start, end }) => start < period.end && end > period.start)
      .map(({ start, end }) => ({ start: Math.max(start, period.start), end: Math.min(end, period.end) }));
    return sum + coveredMs(inside);
  }, 0);
}

/** How long at least one of several pieces of work was under way. */
export class Activity {
  #running = 0;
  #busyMs = 0;
  #since = 0;

  change(by: 1 | -1): void {
    if (this.#running === 0) this.#since = Date.now();
    this.#running += by;
    if (this.#running === 0) this.#busyMs += Date.now() - this.#since;
  }

  /** Milliseconds so far. */
  get busyMs(): number {
    return this.#busyMs + (this.#running > 0 ? Date.now() - this.#since : 0);
  }
}
