// Accepted operations and their results. A result waits here until its client has polled it; memory is bounded by bytes and by
// age. Ids carry the number of this process's start, so an id from before a restart differs from one that never was.
import { randomBytes } from "node:crypto";
import { type Failure, failureOf, ServerError } from "./errors.ts";
import { wakened } from "./time-limit.ts";

export type Outcome<Result> = { ok: true; result: Result } | { ok: false; failure: Failure };

export interface Future<Result> {
  readonly id: string;
  outcome: Outcome<Result> | undefined;
  /** What the result weighs in memory. */
  bytes: number;
  settledAt: number;
  waiters: Set<() => void>;
  /** Ends the work early, where it can be. */
  readonly cancel: (() => void) | undefined;
}

/** How long a settled result waits for its client. */
const resultLifetimeMs = 60 * 60_000;
/** How long a result stays after it was sent, for a client whose connection broke meanwhile. */
const deliveredLifetimeMs = 5 * 60_000;

const dropped: Outcome<never> = {
  ok: false,
  failure: { message: "The result was dropped.", category: "server", code: "server/request-expired" },
};

/** The bookkeeping of one small result, beside its payload. */
const overheadBytes = 512;

export class FutureStore<Result> {
  readonly #boot = randomBytes(6).toString("hex");
  readonly #maxResultBytes: number;
  readonly #now: () => number;
  readonly #futures = new Map<string, Future<Result>>();
  /** Settled ids in the order they were settled or delivered. */
  readonly #undelivered = new Map<string, Future<Result>>();
  readonly #delivered = new Map<string, Future<Result>>();
  #count = 0;
  #pending = 0;
  #resultBytes = 0;
  readonly #idle = new Set<() => void>();

  constructor(maxResultBytes: number, now: () => number = Date.now) {
    this.#maxResultBytes = maxResultBytes;
    this.#now = now;
  }

  /** Operations accepted and not finished. */
  get pending(): number {
    return this.#pending;
  }

  get resultBytes(): number {
    return this.#resultBytes;
  }

  /** Takes in an operation; `work` starts when the caller says so and its outcome becomes the future's. */
  create(cancel?: () => void): Future<Result> {
    const future: Future<Result> = {
      id: `${this.#boot}-${++this.#count}`,
      outcome: undefined,
      bytes: 0,
      settledAt: 0,
      waiters: new Set(),
      cancel,
    };
    this.#futures.set(future.id, future);
    this.#pending++;
    return future;
  }

  succeed(future: Future<Result>, result: Result, bytes: number): void {
    this.#settle(future, { ok: true, result }, bytes);
  }

  fail(future: Future<Result>, error: unknown): void {
    this.#settle(future, { ok: false, failure: failureOf(error) }, 0);
  }

  /** The future of an id a client sent; 410 when it is no longer here, 404 when it never was. */
  get(id: string): Future<Result> {
    const future = this.#futures.get(id);
    if (future) return future;
    const [, boot, number] = /^([0-9a-f]{12})-([1-9]\d{0,15})$/.exec(id) ?? [];
    if (boot === undefined || (boot === this.#boot && Number(number) > this.#count))
      throw new ServerError(
        404,
        "server/unknown-request",
        `There is no request "${id.slice(0, 80)}". Use a request_id that this server answered.`,
      );
    if (boot !== this.#boot)
      throw new ServerError(
        410,
        "server/request-lost",
        `Request ${id} was accepted before the server restarted and its result is lost. Submit it again.`,
      );
    throw new ServerError(
      410,
      "server/request-expired",
      `The result of request ${id} was dropped after its time or under memory pressure. Submit it again, and poll sooner.`,
    );
  }

  /** Resolves true once the future is settled, false when `ms` have passed or one of the signals fired first. */
  async wait(future: Future<Result>, ms: number, ...signals: readonly AbortSignal[]): Promise<boolean> {
    if (!future.outcome) await wakened(future.waiters, ms, signals);
    return future.outcome !== undefined;
  }

  /** To be called when a result has been sent: from now on it is the first to go. */
  delivered(future: Future<Result>): void {
    if (!this.#undelivered.delete(future.id)) return;
    future.settledAt = this.#now();
    this.#delivered.set(future.id, future);
  }

  /** The client has this result for sure; ids that are not here are passed over. */
  release(id: string): void {
    const future = this.#futures.get(id);
    if (future?.outcome) this.#drop(future);
  }

  /** Drops what is too old. */
  sweep(): void {
    const now = this.#now();
    const dropOld = (futures: Map<string, Future<Result>>, lifetimeMs: number) => {
      for (const future of futures.values()) {
        if (now - future.settledAt < lifetimeMs) break;
        this.#drop(future);
      }
    };
    dropOld(this.#delivered, deliveredLifetimeMs);
    dropOld(this.#undelivered, resultLifetimeMs);
  }

  /** Resolves when nothing is pending. */
  idle(): Promise<void> {
    if (this.#pending === 0) return Promise.resolve();
    return new Promise((resolve) => this.#idle.add(resolve));
  }

  #settle(future: Future<Result>, outcome: Outcome<Result>, bytes: number): void {
    if (future.outcome) return;
    future.outcome = outcome;
    future.bytes = bytes + overheadBytes;
    future.settledAt = this.#now();
    this.#resultBytes += future.bytes;
    this.#pending--;
    this.#undelivered.set(future.id, future);
    for (const wake of [...future.waiters]) wake();
    this.sweep();
    for (const futures of [this.#delivered, this.#undelivered])
      for (const old of futures.values()) {
        if (this.#resultBytes <= this.#maxResultBytes) break;
        if (old !== future) this.#drop(old);
      }
    if (this.#pending === 0) for (const resolve of [...this.#idle]) resolve();
    if (this.#pending === 0) this.#idle.clear();
  }

  #drop(future: Future<Result>): void {
    // Whoever remembers the request by its number must not keep its result alive.
    future.outcome = dropped;
    this.#futures.delete(future.id);
    this.#delivered.delete(future.id);
    this.#undelivered.delete(future.id);
    this.#resultBytes -= future.bytes;
  }
}
