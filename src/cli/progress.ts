// Progress of long work on stderr: a bar that redraws itself on a terminal, an occasional plain line everywhere else.
import { stderr } from "node:process";

export interface ProgressStream {
  write(text: string): unknown;
  isTTY?: boolean;
  columns?: number;
}

export interface ProgressOptions {
  label: string;
  /** How many there are; without it only counts are shown, unless `update` is given a fraction. */
  total?: number;
  stream?: ProgressStream;
  /** Milliseconds, for tests. */
  now?: () => number;
}

const redrawMs = 100;
const plainMs = 10_000;

export class Progress {
  readonly #label: string;
  readonly #total: number | undefined;
  readonly #stream: ProgressStream;
  readonly #now: () => number;
  readonly #started: number;
  #shownAt: number;
  #drawn = false;
  #done = 0;
  #fraction: number | undefined;
  #note = "";

  constructor(options: ProgressOptions) {
    this.#label = options.label;
    this.#total = options.total;
    this.#stream = options.stream ?? stderr;
    this.#now = options.now ?? (() => performance.now());
    this.#started = this.#now();
    this.#shownAt = this.#started;
  }

  /** Says how many are done; `fraction` (0 to 1) where the total is not known but the share is; `note` stands at the end. */
  update(done: number, more: { fraction?: number; note?: string } = {}): void {
    this.#done = done;
    if (more.fraction !== undefined) this.#fraction = more.fraction;
    if (more.note !== undefined) this.#note = more.note;
    const now = this.#now();
    if (now - this.#shownAt < (this.#stream.isTTY ? redrawMs : plainMs)) return;
    this.#shownAt = now;
    if (this.#stream.isTTY) this.#draw();
    else this.#stream.write(`${this.#line()}\n`);
  }

  /** Prints a line that stays, above the bar. */
  print(text: string): void {
    this.#clear();
    this.#stream.write(`${text}\n`);
    if (this.#stream.isTTY) this.#draw();
  }

  /** Takes the bar away; prints `text` when given. */
  end(text?: string): void {
    this.#clear();
    if (text !== undefined) this.#stream.write(`${text}\n`);
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
    const eta = left > 0 ? `, ${duration(left)} left` : "";
    return `${this.#label} ${count}${percent}${eta}${this.#note ? `  ${this.#note}` : ""}`;
  }

  #draw(): void {
    const width = this.#stream.columns ?? 80;
    const share = this.#share();
    const line = this.#line();
    const room = Math.min(30, width - line.length - 4);
    const filled = share === undefined ? 0 : Math.round(share * room);
    const bar = share === undefined || room < 8 ? "" : `${"█".repeat(filled)}${"░".repeat(room - filled)} `;
    this.#stream.write(`\r\u001b[2K${`${bar}${line}`.slice(0, width - 1)}`);
    this.#drawn = true;
  }

  #clear(): void {
    if (this.#drawn) this.#stream.write("\r\u001b[2K");
    this.#drawn = false;
  }
}

/** 3725000 ms as "1h 2m". */
export function duration(milliseconds: number): string {
  const seconds = Math.round(milliseconds / 1000);
  if (seconds < 60) return `${seconds}s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)}m ${seconds % 60}s`;
  return `${Math.floor(seconds / 3600)}h ${Math.floor((seconds % 3600) / 60)}m`;
}
