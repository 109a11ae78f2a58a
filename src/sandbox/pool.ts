// Ready slots from several zygotes. A slot serves one program and is never reused; spare ones are forked ahead of need.
// A zygote that dies is replaced. Callers wait; they fail only when several starts in a row did.
import { messageOf } from "../core/errors.ts";
import type { ControlServer } from "./control.ts";
import { type Slot, SlotLost } from "./slot.ts";
import { Zygote, type ZygoteFacts, type ZygotePlan } from "./zygote.ts";

const failuresBeforeGivingUp = 5;

interface Seat {
  zygote: Zygote | undefined;
  starting: boolean;
  ready: Slot[];
}

interface Waiter {
  resolve: (slot: Slot) => void;
  reject: (error: unknown) => void;
}

export class Pool {
  readonly #plan: ZygotePlan;
  readonly #control: ControlServer;
  readonly #seats: Seat[];
  readonly #spare: number;
  readonly #patienceMs: number;
  readonly #waiters: Waiter[] = [];
  readonly #seatOf = new WeakMap<Slot, Seat>();
  readonly #starts = new Set<Promise<void>>();
  #failures = 0;
  #closed = false;
  facts: ZygoteFacts | undefined;

  /** `spare` slots per zygote are kept ready. A zygote that delivers none for `patienceMs` is wedged and gets replaced. */
  constructor(plan: ZygotePlan, control: ControlServer, zygotes: number, spare: number, patienceMs: number) {
    this.#plan = plan;
    this.#patienceMs = patienceMs;
    this.#control = control;
    this.#spare = spare;
    this.#seats = Array.from({ length: zygotes }, () => ({ zygote: undefined, starting: false, ready: [] }));
  }

  /** The next ready slot. */
  acquire(): Promise<Slot> {
    if (this.#closed) return Promise.reject(new SlotLost("the jail is closed"));
    const seat = this.#fullestSeat();
    if (seat) {
      const slot = seat.ready.shift()!;
      this.#refill(seat);
      return Promise.resolve(slot);
    }
    const waiting = new Promise<Slot>((resolve, reject) => {
      const waiter: Waiter = {
        resolve: (slot) => {
          clearTimeout(timer);
          resolve(slot);
        },
        reject: (error) => {
          clearTimeout(timer);
          reject(error);
        },
      };
      const timer = setTimeout(() => {
        this.#waiters.splice(this.#waiters.indexOf(waiter), 1);
        for (const seat of this.#seats) if (seat.zygote && seat.zygote.pending > 0) this.#replace(seat);
        reject(new SlotLost(`no slot came for ${this.#patienceMs} ms`));
      }, this.#patienceMs);
      this.#waiters.push(waiter);
    });
    this.start();
    return waiting;
  }

  #fullestSeat(): Seat | undefined {
    let best: Seat | undefined;
    for (const seat of this.#seats) if (seat.ready.length > (best?.ready.length ?? 0)) best = seat;
    return best;
  }

  /** Fills empty seats and asks for the slots that are missing. */
  start(): void {
    for (const seat of this.#seats) {
      if (seat.zygote) this.#refill(seat);
      else this.#seatZygote(seat);
    }
  }

  /** The first start, without second tries: rejects with the reason when a zygote does not get warm. */
  async warm(): Promise<ZygoteFacts> {
    // All have ended their attempt before this rejects, so nothing starts behind the caller's back.
    const starts = await Promise.allSettled(this.#seats.map((seat) => this.#startZygote(seat)));
    const failed = starts.find((start) => start.status === "rejected");
    if (failed) throw failed.reason;
    return this.facts!;
  }

  #seatZygote(seat: Seat): void {
    if (seat.starting || this.#closed) return;
    const start = this.#startZygote(seat)
      .catch((error: unknown) => this.#fail(seat, messageOf(error)))
      .finally(() => this.#starts.delete(start));
    this.#starts.add(start);
  }

  async #startZygote(seat: Seat): Promise<void> {
    seat.starting = true;
    let own: Zygote | undefined;
    try {
      const { zygote, facts } = await Zygote.start(this.#plan, this.#control, {
        slotReady: (slot) => this.#take(seat, slot),
        slotFailed: (reason) => this.#fail(seat, reason),
        died: (reason) => {
          if (!own) return; // the start itself rejects
          if (seat.zygote === own) seat.zygote = undefined;
          seat.ready = [];
          this.#fail(seat, reason);
        },
      });
      own = zygote;
      this.facts = facts;
    } finally {
      seat.starting = false;
    }
    if (this.#closed) await own.close();
    else {
      seat.zygote = own;
      this.#refill(seat);
    }
  }

  #refill(seat: Seat): void {
    if (this.#closed || !seat.zygote) return;
    const wanted = this.#spare + Math.ceil(this.#waiters.length / this.#seats.length);
    for (let have = seat.ready.length + seat.zygote.pending; have < wanted; have++) seat.zygote.requestSlot();
  }

  #take(seat: Seat, slot: Slot): void {
    if (this.#closed) {
      slot.close();
      return;
    }
    this.#seatOf.set(slot, seat);
    const waiter = this.#waiters.shift();
    if (waiter) {
      waiter.resolve(slot);
      this.#refill(seat);
      return;
    }
    seat.ready.push(slot);
    slot.whenLost((error) => {
      const at = seat.ready.indexOf(slot);
      if (at < 0) return;
      seat.ready.splice(at, 1);
      this.#fail(seat, error.message);
    });
  }

  /** A slot did not answer. Its zygote is replaced only if it does not answer either: other programs run in its other slots. */
  async suspect(slot: Slot): Promise<void> {
    const seat = this.#seatOf.get(slot);
    const zygote = seat?.zygote;
    if (!seat || !zygote || (await zygote.answers(this.#patienceMs))) return;
    if (seat.zygote === zygote) this.#replace(seat);
  }

  #replace(seat: Seat): void {
    const { zygote } = seat;
    if (!zygote || this.#closed) return;
    seat.zygote = undefined;
    for (const slot of seat.ready.splice(0)) slot.close();
    const closing = zygote.close().finally(() => this.#starts.delete(closing));
    this.#starts.add(closing);
    this.#seatZygote(seat);
  }

  /** A program ran to an answer: whatever failed before was passing. */
  succeeded(): void {
    this.#failures = 0;
  }

  #fail(seat: Seat, reason: string): void {
    if (this.#closed) return;
    this.#failures++;
    if (this.#failures >= failuresBeforeGivingUp) {
      // The next acquire() tries again from the beginning.
      this.#failures = 0;
      const error = new SlotLost(`no slot could be started: ${reason}`);
      for (const waiter of this.#waiters.splice(0)) waiter.reject(error);
      return;
    }
    if (seat.zygote) this.#refill(seat);
    else if (this.#waiters.length > 0 || this.#failures === 1) this.#seatZygote(seat);
  }

  async close(): Promise<void> {
    this.#closed = true;
    for (const waiter of this.#waiters.splice(0)) waiter.reject(new SlotLost("the jail is closed"));
    await Promise.all(this.#starts);
    for (const seat of this.#seats) for (const slot of seat.ready.splice(0)) slot.close();
    await Promise.all(this.#seats.map((seat) => seat.zygote?.close() ?? Promise.resolve()));
  }
}
