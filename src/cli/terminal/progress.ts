// Progress of long work on stderr: a bar that redraws itself on a terminal, an occasional plain line everywhere else.
import { stderr } from "node:process";
import { bar, clock, Display, type Terminal } from "../../runs/display.ts";

interface ProgressOptions {
  label: string;
  /** How many there are; without it only counts are shown, unless `update` is given a fraction. */
  total?: number | undefined;
  stream?: Terminal;
  /** Milliseconds, for tests. */
  now?: () => number;
}

const redrawMs = 100;
const plainMs = 10_000;

export class Progress {
  readonly #label: string;
  readonly #total: number | undefined;
  readonly #display: Display;
  readonly #columns: number;
  readonly #now: () => number;
  readonly #started: number;
  #shownAt: number;
  #done = 0;
  #fraction: number | undefined;
  #note = "";

  constructor(options: ProgressOptions) {
    this.#label = options.label;
    this.#total = options.total;
    const stream = options.stream ?? stderr;
    this.#display = new Display(stream);
    this.#columns = stream.columns ?? 80;
    this.#now = options.now ?? (() => performance.now());
    this.#started = this.#now();
    this.#shownAt = this.#started;
  }

  /** Says how many are done; `fraction` (0 to 1) where the total is not known but the share is; `note` stands at the end. */
  update(done: number, more: { fraction?: number | undefined; note?: string } = {}): void {
    this.#done = done;
    if (more.fraction !== undefined) this.#fraction = more.fraction;
    if (more.note !== undefined) this.#note = more.note;
    const now = this.#now();
    if (now - this.#shownAt < (this.#display.live ? redrawMs : plainMs)) return;
    this.#shownAt = now;
    if (this.#display.live) this.#draw();
    else this.#display.line(this.#line());
  }

  /** Prints a line that stays, above the bar. */
  print(text: string): void {
    this.#display.line(text);
  }

  /** Takes the bar away; prints `text` when given. */
  end(text?: string): void {
    this.#display.end();
    if (text !== undefined) this.#display.line(text);
  }

  #share(): number | undefined {
    const share = this.#total ? this.#done / this.#total : this.#fraction;
    return share === undefined ? undefined : Math.min(1, Math.max(0, share));
  }

  #line(): string {
    const share = this.#share();
    const count = this.#total === undefined ? `${this.#done}` : `${this.#done}/${this.#total}`;
    const percent = share === undefined ? "" : ` ${Math.floor(share * 100)}%`;
    const left = share && share < 1 ? ((this.#now() - this.#started) * (1 - share)) / share : 0;
    const eta = left > 0 ? `, ${clock(left / 1000)} left` : "";
    return `${this.#label} ${count}${percent}${eta}${this.#note ? `  ${this.#note}` : ""}`;
  }

  #draw(): void {
    const share = this.#share();
    const line = this.#line();
    const room = Math.min(30, this.#columns - line.length - 4);
    this.#display.status(share === undefined || room < 8 ? line : `${bar(share, 1, room)} ${line}`);
  }
}

/** Shows progress for as long as the work goes on. */
export async function withProgress<T>(options: ProgressOptions, work: (progress: Progress) => Promise<T>): Promise<T> {
  const progress = new Progress(options);
  try {
    return await work(progress);
  } finally {
    progress.end();
  }
}

interface Downloading {
  onNotice(line: string): void;
  onProgress(download: { path: string; receivedBytes: number; totalBytes: number }): void;
}

/** Shows how much of each file has come, while the work downloads some. */
export const whileDownloading = <T>(label: string, work: (show: Downloading) => Promise<T>): Promise<T> =>
  withProgress({ label }, (progress) =>
    work({
      onNotice: (line) => progress.print(line),
      onProgress: ({ path, receivedBytes, totalBytes }) =>
        progress.update(Math.round(receivedBytes / 1e6), {
          fraction: receivedBytes / (totalBytes || 1),
          note: `MB of ${path}`,
        }),
    }),
  );

/** Shows `label` with the seconds so far and what was last noted, until the work is over. */
export const waitingFor = <T>(label: string, work: (note: (what: string) => void) => Promise<T>): Promise<T> =>
  withProgress({ label }, async (progress) => {
    const started = performance.now();
    let note = "";
    const show = () => progress.update(Math.round((performance.now() - started) / 1000), { note: `s  ${note}` });
    const timer = setInterval(show, 250);
    try {
      return await work((what) => {
        note = what;
      });
    } finally {
      clearInterval(timer);
    }
  });
