// Programs that are graded on the same tests at the same moment are siblings: a group that may work together. What one of them can observe
// must not depend on the verdict of another, so they go in step:
//
//   every sibling runs its round  ──►  quiet: none runs, all outputs are judged  ──►  those that passed run the next round
//
// Whoever is run in another round learns that its answers were right, at a moment when every sibling has given its own. The quiet lasts as
// long as the amount of what is judged says, not as long as judging took. No program holds a place in the sandbox while it waits.
import { setTimeout as sleep } from "node:timers/promises";
import { bytesOf, judgeInThread } from "./judge-thread.ts";
import type { Evidence, Verdict } from "./verdicts.ts";

/** What all groups together may hold until it is judged. Beyond, no program starts before judging has made room. */
const maxHeldBytes = 256 * 1024 ** 2;
/** Programs that come later than this after the first sibling has ended its round go in the next one: a stream of them must not keep it open. */
const openMs = 1_000;
/** Judging a round takes this long, and more for each byte; where that is not enough, a multiple of it. */
const quietMs = 4;
const quietMsPerByte = 1e-5;

/** A turn in the sandbox: resolves when `work` has been called and has ended. */
export type Turn = (work: () => Promise<void>) => Promise<void>;

/** The groups of one grader. */
export class Siblings {
  readonly #groups = new Map<string, Group>();
  readonly #waiting = new Set<() => void>();
  readonly #maxHeld: number;
  /** For how long a round takes newcomers. */
  readonly openMs: number;
  #held = 0;

  constructor(limits: { maxHeldBytes?: number; openMs?: number } = {}) {
    this.#maxHeld = limits.maxHeldBytes ?? maxHeldBytes;
    this.openMs = limits.openMs ?? openMs;
  }

  /** Bytes that wait for their verdict. */
  get heldBytes(): number {
    return this.#held;
  }

  /** A place among those that are graded under this key. Whoever joins must leave. */
  join(key: string): Place {
    let group = this.#groups.get(key);
    if (!group) {
      const made = new Group(this, () => {
        if (this.#groups.get(key) === made) this.#groups.delete(key);
      });
      group = made;
      this.#groups.set(key, group);
    }
    return group.join();
  }

  get isFull(): boolean {
    return this.#held > this.#maxHeld;
  }

  /** Bytes that came, or went. */
  hold(bytes: number): void {
    const before = this.isFull;
    this.#held += bytes;
    if (this.isFull && !before) for (const group of [...this.#groups.values()]) group.look();
    if (before && !this.isFull) this.wake();
  }

  /** Lets those look again who wait for something to change. */
  wake(): void {
    for (const look of [...this.#waiting]) look();
  }

  /** Waits until something has changed. */
  changed(signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve, reject) => {
      const end = () => {
        this.#waiting.delete(end);
        signal?.removeEventListener("abort", end);
        if (signal?.aborted) reject(signal.reason);
        else resolve();
      };
      this.#waiting.add(end);
      if (signal?.aborted) end();
      else signal?.addEventListener("abort", end, { once: true });
    });
  }
}

class Group {
  readonly all: Siblings;
  readonly #end: () => void;
  readonly #places = new Set<Place>();
  /** Counts the rounds that the group has run together. */
  #step = 0;
  #running = 0;
  #quiet = false;
  /** When the first sibling had run its round. */
  #firstDoneMs: number | undefined;

  constructor(all: Siblings, end: () => void) {
    this.all = all;
    this.#end = end;
  }

  join(): Place {
    const wasOpen = this.#firstDoneMs === undefined || performance.now() - this.#firstDoneMs <= this.all.openMs;
    const place = new Place(this, this.#step + (wasOpen && !this.#quiet ? 0 : 1));
    this.#places.add(place);
    return place;
  }

  leave(place: Place): void {
    this.#places.delete(place);
    this.look();
  }

  isOpenTo(place: Place): boolean {
    return !this.#quiet && place.step === this.#step && !this.all.isFull;
  }

  async run(work: () => Promise<void>): Promise<void> {
    this.#running++;
    try {
      await work();
    } finally {
      this.#running--;
      this.look();
    }
  }

  /** Judges when the time has come: when all have run their round, or when memory has run out and nobody runs. */
  look(): void {
    if (this.#quiet || this.#running > 0) return;
    const places = [...this.#places];
    if (places.length === 0) {
      this.#end();
      return;
    }
    const done = places.every((place) => place.isDone || place.step > this.#step);
    if (done || (this.all.isFull && places.some((place) => place.hasEvidence))) void this.#judge(places, done);
  }

  /** Never rejects. */
  async #judge(places: readonly Place[], done: boolean): Promise<void> {
    this.#quiet = true;
    const taken = places.map((place) => ({ place, evidence: place.take() }));
    const evidence = taken.flatMap((one) => one.evidence);
    const bytes = evidence.reduce((sum, one) => sum + bytesOf(one), 0);
    try {
      await inEvenTime(quietMs + bytes * quietMsPerByte, async () => {
        const verdicts = await judgeInThread(evidence);
        for (const { place, evidence } of taken) place.add(verdicts.splice(0, evidence.length));
        if (done) for (const place of places) place.conclude();
      });
    } catch (error) {
      for (const { place, evidence } of taken) if (evidence.length > 0) place.fail(error);
    }
    this.all.hold(-bytes);
    this.#quiet = false;
    if (done) {
      this.#step++;
      this.#firstDoneMs = undefined;
      for (const place of places) if (place.isDone) place.release(this.#step);
    }
    this.all.wake();
    this.look();
  }

  done(): void {
    this.#firstDoneMs ??= performance.now();
    this.look();
  }
}

/** One program's place in its group. */
export class Place {
  readonly #group: Group;
  /** The round of the group that it runs in, or has run in. */
  step: number;
  #evidence: Evidence[] = [];
  #verdicts: Verdict[] = [];
  #error: unknown;
  #waits: { conclude: () => void; resolve: () => void; reject: (error: unknown) => void } | undefined;

  constructor(group: Group, step: number) {
    this.#group = group;
    this.step = step;
  }

  /** It has run its round and waits for its verdicts. */
  get isDone(): boolean {
    return this.#waits !== undefined;
  }

  get hasEvidence(): boolean {
    return this.#evidence.length > 0;
  }

  /** Calls `work` in a turn in which siblings may run. */
  async run(turn: Turn, work: () => Promise<void>, signal?: AbortSignal): Promise<void> {
    for (let ran = false; !ran; ) {
      while (!this.#group.isOpenTo(this)) await this.#group.all.changed(signal);
      await turn(async () => {
        // Judging may have begun while this waited for its turn.
        if (!this.#group.isOpenTo(this)) return;
        ran = true;
        await this.#group.run(work);
      });
    }
  }

  /** Keeps what is to be judged when the round is over. */
  hold(evidence: readonly Evidence[]): void {
    this.#evidence.push(...evidence);
    this.#group.all.hold(evidence.reduce((sum, one) => sum + bytesOf(one), 0));
  }

  /**
   * The round is over for this one. Resolves when it is over for all, to what `conclude` makes of the verdicts, which come in the order of
   * the evidence; it is called before the quiet ends, because it too may take longer for one verdict than for another.
   */
  judged<Result>(conclude: (verdicts: Verdict[]) => Result, signal?: AbortSignal): Promise<Result> {
    let result: Result;
    const released = new Promise<void>((resolve, reject) => {
      this.#waits = {
        conclude: () => {
          result = conclude(this.#verdicts.splice(0));
        },
        resolve,
        reject,
      };
    });
    const leave = () => this.#waits?.reject(signal!.reason);
    signal?.addEventListener("abort", leave, { once: true });
    if (signal?.aborted) leave();
    else this.#group.done();
    return released
      .then(() => result)
      .finally(() => {
        signal?.removeEventListener("abort", leave);
      });
  }

  take(): Evidence[] {
    const taken = this.#evidence;
    this.#evidence = [];
    return taken;
  }

  add(verdicts: readonly Verdict[]): void {
    this.#verdicts.push(...verdicts);
  }

  fail(error: unknown): void {
    this.#error ??= error;
  }

  conclude(): void {
    this.#waits?.conclude();
  }

  release(step: number): void {
    const waits = this.#waits;
    this.#waits = undefined;
    this.step = step;
    if (this.#error === undefined) waits?.resolve();
    else waits?.reject(this.#error);
  }

  /** Gives up the place, in whatever state. */
  leave(): void {
    this.#group.all.hold(-this.take().reduce((sum, one) => sum + bytesOf(one), 0));
    this.#group.leave(this);
  }
}

/** Does the work and resolves when `ms` are over, or a multiple of them: how long work takes depends on what is found. */
async function inEvenTime<Result>(ms: number, work: () => Promise<Result>): Promise<Result> {
  const start = performance.now();
  try {
    return await work();
  } finally {
    const took = performance.now() - start;
    await sleep(Math.ceil(took / ms) * ms - took);
  }
}
