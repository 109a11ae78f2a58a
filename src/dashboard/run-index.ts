// What a dashboard knows of one run: the figures of every step, and where in the journal the rest is. Made by walking the journal once
// and going on as it grows; the answers and verdicts, nearly all of a journal, are passed over and read when somebody looks at them.
import { statSync } from "node:fs";
import { messageOf } from "../core/errors.ts";
import { nextTurn } from "../core/turns.ts";
import type { ReadableRun } from "../runs/batch.ts";
import { type Frame, JournalCursor, JournalReplaced } from "../runs/cursor.ts";
import { framesOf } from "../runs/read-journal.ts";
import { journalSegments } from "../runs/segments.ts";
import { type JournalWindow, RunView } from "../runs/view.ts";

/** How long the walk goes on before others get their turn, and how often it says how far it is. */
const sliceMs = 12;
const reportEveryMs = 200;

export class RunIndex implements ReadableRun {
  readonly path: string;
  #view = new RunView();
  #cursor: JournalCursor;
  #walking: Promise<void> | undefined;
  /** Counts up when what was sent before no longer holds: a rewind, or another journal. */
  generation = 0;
  /** Why the journal could not be read further. */
  problem: string | undefined;
  /** Called while the walk goes on, and when it has reached the end. */
  onProgress: () => void = () => {};
  #closed = false;
  #rewinds = 0;

  constructor(path: string) {
    this.path = path;
    this.#cursor = new JournalCursor(path);
  }

  get view(): RunView {
    return this.#view;
  }

  /** The share of the journal that was walked. */
  get progress(): number {
    const { segment, offset } = this.#cursor.position;
    let total = 0;
    let walked = offset;
    for (const [number, path] of journalSegments(this.path).entries()) {
      const size = statSync(path, { throwIfNoEntry: false })?.size ?? 0;
      total += size;
      if (number < segment) walked += size;
    }
    return total === 0 ? 1 : Math.min(1, walked / total);
  }

  get isWalking(): boolean {
    return this.#walking !== undefined;
  }

  /** Walks to the end of the journal. Resolves when it is there; why a journal cannot be read is in `problem`. */
  catchUp(): Promise<void> {
    this.#walking ??= this.#walk().finally(() => {
      this.#walking = undefined;
    });
    return this.#walking;
  }

  /** The frames of a window, each decoded as it is asked for. */
  frames(window: JournalWindow): Iterable<Frame> {
    return framesOf(this.path, { ...window, inodes: this.#cursor.inodes });
  }

  /** Reads from the journal; when its files turn out to be others than they were, walks anew and reads again. */
  async read<T>(reader: () => T | Promise<T>): Promise<T> {
    await this.catchUp();
    try {
      return await reader();
    } catch (error) {
      if (!(error instanceof JournalReplaced)) throw error;
      this.#restart();
      await this.catchUp();
      return await reader();
    }
  }

  close(): void {
    this.#closed = true;
    this.#cursor.close();
  }

  async #walk(): Promise<void> {
    let deadline = performance.now() + sliceMs;
    let reportedAt = performance.now();
    let seen = 0;
    try {
      for (;;) {
        const frame = this.#next();
        if (!frame || this.#closed) break;
        this.#view.takeFrame(frame);
        if (this.#view.rewinds > this.#rewinds) this.generation++;
        this.#rewinds = this.#view.rewinds;
        if ((++seen & 63) !== 0 || performance.now() < deadline) continue;
        // The first figures at once, the rest now and then: reporting costs as well.
        if (deadline - reportedAt > reportEveryMs || this.#view.steps.length < 50) {
          reportedAt = deadline;
          this.onProgress();
        }
        await nextTurn();
        deadline = performance.now() + sliceMs;
      }
      this.problem = undefined;
    } catch (error) {
      this.problem = messageOf(error);
    }
    this.#cursor.close();
    if (seen > 0 || this.problem !== undefined) this.onProgress();
  }

  #next(): Frame | undefined {
    try {
      return this.#cursor.next();
    } catch (error) {
      if (!(error instanceof JournalReplaced)) throw error;
      this.#restart();
      return this.#cursor.next();
    }
  }

  #restart(): void {
    this.#cursor.close();
    this.#cursor = new JournalCursor(this.path);
    this.#view = new RunView();
    this.#rewinds = 0;
    this.generation++;
  }
}
