// A text file that is the fold of a journal. First the events of the past are taken, and the file is corrected to what they make. From
// there on it grows.
import { appendFileSync, closeSync, existsSync, ftruncateSync, openSync, readFileSync } from "node:fs";
import { writeAll } from "../core/files.ts";

export class FoldedFile {
  readonly path: string;
  /** What the events of the past make; undefined once they are all taken. */
  #past: Buffer[] | undefined = [];
  #descriptor: number | undefined;
  #size = 0;
  /** Where each step's text begins, for `rewind`. */
  readonly #starts = new Map<number, number>();

  constructor(path: string) {
    this.path = path;
  }

  /** Adds text, which may belong to a step. */
  append(text: string, step?: number): void {
    const bytes = Buffer.from(text);
    if (step !== undefined && !this.#starts.has(step)) this.#starts.set(step, this.#size);
    if (this.#past) this.#past.push(bytes);
    else writeAll(this.#descriptor!, bytes);
    this.#size += bytes.length;
  }

  /** The past is over: makes the file equal to it. True when the file had something else, not only less; that is kept in FILE.bak. */
  caughtUp(): boolean {
    const wanted = Buffer.concat(this.#past ?? []);
    const found = existsSync(this.path) ? readFileSync(this.path) : Buffer.alloc(0);
    const same = commonPrefix(wanted, found);
    this.#past = undefined;
    this.#descriptor = openSync(this.path, "a");
    if (same < found.length) appendFileSync(`${this.path}.bak`, found.subarray(same));
    ftruncateSync(this.#descriptor, same);
    writeAll(this.#descriptor, wanted.subarray(same));
    return same < found.length;
  }

  /** Takes the text of steps from `step` on away, into FILE.bak. */
  rewind(step: number): void {
    const starts = [...this.#starts].filter(([known]) => known >= step);
    if (starts.length === 0) return;
    const start = Math.min(...starts.map(([, offset]) => offset));
    for (const [known] of starts) this.#starts.delete(known);
    if (this.#past) this.#past = [Buffer.concat(this.#past).subarray(0, start)];
    else {
      appendFileSync(`${this.path}.bak`, readFileSync(this.path).subarray(start));
      ftruncateSync(this.#descriptor!, start);
    }
    this.#size = start;
  }

  close(): void {
    if (this.#descriptor !== undefined) closeSync(this.#descriptor);
  }
}

function commonPrefix(a: Buffer, b: Buffer): number {
  const shorter = Math.min(a.length, b.length);
  if (a.subarray(0, shorter).equals(b.subarray(0, shorter))) return shorter;
  let index = 0;
  while (a[index] === b[index]) index++;
  return index;
}
