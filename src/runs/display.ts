// What a person sees while a run goes on: on a terminal, one live line under the messages; elsewhere, plain lines only.
import { widthOf, wrap } from "../core/wrap.ts";

export interface Terminal {
  isTTY?: boolean | undefined;
  columns?: number | undefined;
  write(text: string): unknown;
}

const clearLine = "\r\u001b[2K";

export class Display {
  readonly #terminal: Terminal;
  #status = "";
  #notice = "";

  constructor(terminal: Terminal) {
    this.#terminal = terminal;
  }

  get live(): boolean {
    return this.#terminal.isTTY === true;
  }

  /** Prints a message above the live line, wrapped at the terminal's width. */
  line(text: string): void {
    const lines = wrap(text, widthOf(this.#terminal));
    this.#terminal.write(this.live ? `${clearLine}${lines}\n${this.#shown}` : `${lines}\n`);
  }

  /** Replaces the live line; nothing where there is no terminal. */
  status(text: string): void {
    this.#status = this.#fitting(text);
    this.#draw();
  }

  /** Stands in place of the live line, whatever that is replaced by, until it is empty. */
  notice(text: string): void {
    this.#notice = this.#fitting(text);
    this.#draw();
  }

  #fitting(text: string): string {
    return text.slice(0, (this.#terminal.columns || 80) - 1);
  }

  #draw(): void {
    if (this.live) this.#terminal.write(`${clearLine}${this.#shown}`);
  }

  get #shown(): string {
    return this.#notice || this.#status;
  }

  /** Removes the live line. */
  end(): void {
    if (this.live && this.#shown !== "") this.#terminal.write(clearLine);
    this.#status = "";
    this.#notice = "";
  }
}

/** A bar such as `████░░░░`. */
export function bar(done: number, total: number, width = 20): string {
  const filled = Math.max(0, Math.min(width, Math.round((done / Math.max(1, total)) * width)));
  return "█".repeat(filled) + "░".repeat(width - filled);
}

/** `1:02:03` or `2:03`. */
export function clock(seconds: number): string {
  const whole = Math.max(0, Math.round(seconds));
  const parts = [Math.floor(whole / 60) % 60, whole % 60].map((value) => String(value).padStart(2, "0"));
  const hours = Math.floor(whole / 3600);
  return hours > 0 ? `${hours}:${parts.join(":")}` : parts.join(":").replace(/^0/, "");
}

/** A curve in one line of text; gaps where a value is missing. */
export function sparkline(values: readonly (number | undefined)[], low?: number, high?: number): string {
  const known = values.filter((value): value is number => value !== undefined && Number.isFinite(value));
  if (known.length === 0) return "";
  const bottom = low ?? Math.min(...known);
  const top = high ?? Math.max(...known);
  const levels = "▁▂▃▄▅▆▇█";
  return values
    .map((value) => {
      if (value === undefined || !Number.isFinite(value)) return " ";
      const share = top > bottom ? (value - bottom) / (top - bottom) : 0;
      return levels[Math.max(0, Math.min(7, Math.floor(share * 8)))]!;
    })
    .join("");
}
