// Follows something elsewhere that may stop answering, such as a server. However many requests fail because of it, it is one outage:
// reported once, at growing intervals while it lasts, and once more when it is over.
import { spanOf } from "./count.ts";

/** What is reported of an outage. */
export interface OutageNews {
  /** What gives no answer, to begin a sentence with. */
  what: string;
  /** `away`: it has not answered since; `back`: it answers again. */
  state: "away" | "back";
  /** How long it has been away. */
  seconds: number;
  /** How much longer it is waited for. */
  leftSeconds: number;
  /** What came of the last try. */
  reason: string;
  /** Whether a log gets a line: the first time, and then at growing intervals. Other reports are for a live line alone. */
  due: boolean;
}

export interface OutageOptions {
  what: string;
  /** How long it may last. */
  patienceMs: number;
  /** A shorter outage is not reported. */
  quietMs: number;
  report(news: OutageNews): void;
}

/** However long it lasts, a log gets a line at least this often. */
const longestSilenceMs = 600_000;

export class Outage {
  readonly #options: OutageOptions;
  #since: number | undefined;
  #reason = "";
  /** When the next line for a log is due. */
  #dueAt = 0;
  #reported = false;

  constructor(options: OutageOptions) {
    this.#options = options;
  }

  /** How much longer it may last; the whole patience where there is none. */
  get leftMs(): number {
    const awayMs = this.#since === undefined ? 0 : performance.now() - this.#since;
    return Math.max(0, this.#options.patienceMs - awayMs);
  }

  /** Whether it has lasted for as long as it may. */
  get spent(): boolean {
    return this.#since !== undefined && this.leftMs === 0;
  }

  /** A request got no answer; `silentMs`: how long there has been none already. */
  failed(reason: string, silentMs = 0): void {
    const { quietMs, report } = this.#options;
    const now = performance.now();
    if (this.#since === undefined) {
      this.#since = now - silentMs;
      this.#dueAt = this.#since + quietMs;
    }
    this.#reason = reason;
    const awayMs = now - this.#since;
    if (awayMs < quietMs) return;
    const due = now >= this.#dueAt;
    if (due) this.#dueAt = now + Math.min(awayMs, longestSilenceMs);
    this.#reported = true;
    report(this.#news("away", due));
  }

  /** It has answered. */
  answered(): void {
    if (this.#since === undefined) return;
    const news = this.#news("back", true);
    const reported = this.#reported;
    this.#since = undefined;
    this.#reported = false;
    if (reported) this.#options.report(news);
  }

  #news(state: OutageNews["state"], due: boolean): OutageNews {
    const { what } = this.#options;
    const seconds = (performance.now() - this.#since!) / 1000;
    return { what, state, seconds, leftSeconds: this.leftMs / 1000, reason: this.#reason, due };
  }
}

/** For commands in the foreground: a minute's patience, and a line for each report that is due. */
export const briefPatience = (print: (line: string) => void) => ({
  patienceMs: 60_000,
  onOutage: (news: OutageNews) => {
    if (news.due) print(describeOutage(news, ", then this ends"));
  },
});

/** One line about an outage. `then` says what happens when it is waited for no longer. */
export function describeOutage({ what, state, seconds, leftSeconds, reason }: OutageNews, then = ""): string {
  if (state === "back") return `${what} answers again after ${spanOf(seconds)}`;
  const waits = Number.isFinite(leftSeconds)
    ? `it is tried again for up to ${spanOf(leftSeconds)} more${then}`
    : "it is tried again until it answers";
  return `${what} has given no answer for ${spanOf(seconds)}; ${waits}. The last try: ${reason}`;
}
