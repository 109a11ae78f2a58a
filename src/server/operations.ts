// Accepted work: every heavy operation becomes a future here, under one limit on how many may wait and how much memory their
// requests may hold.
import { EngineError } from "../engine/errors.ts";
import type { ForwardBackwardOutput, SampleResponse } from "../protocol/index.ts";
import type { AppSettings } from "./app.ts";
import { ServerError, shuttingDown } from "./errors.ts";
import { type Future, FutureStore } from "./futures.ts";

/** What an operation ends with. Tensors stay typed arrays until a poll says which encoding it wants. */
export type Result =
  | { kind: "json"; body: Readonly<Record<string, unknown>> }
  | { kind: "training"; output: ForwardBackwardOutput }
  | { kind: "sample"; output: SampleResponse };

export type Operation = Future<Result>;

type OperationLimits = Pick<AppSettings, "maxQueue" | "maxQueueBytes" | "maxResultBytes" | "onEngineLost">;

export class Operations {
  readonly futures: FutureStore<Result>;
  readonly #limits: OperationLimits;
  #queuedBytes = 0;
  #closing = false;

  constructor(limits: OperationLimits) {
    this.#limits = limits;
    this.futures = new FutureStore(limits.maxResultBytes);
  }

  /** Refuses everything that comes from now on. */
  close(): void {
    this.#closing = true;
  }

  /** Throws when there is no room. `urgent` work, which others wait for, only has to find the server running. */
  admit(bytes: number, urgent = false): void {
    if (this.#closing) throw shuttingDown();
    const { maxQueue, maxQueueBytes } = this.#limits;
    if (urgent) return;
    if (this.futures.pending >= maxQueue)
      throw new ServerError(
        429,
        "server/queue-full",
        `${this.futures.pending} requests are waiting, as many as max_queue allows. Send this one again in a moment.`,
        { retryAfterSeconds: 1 },
      );
    if (this.#queuedBytes > 0 && this.#queuedBytes + bytes > maxQueueBytes)
      throw new ServerError(
        429,
        "server/queue-bytes",
        `Waiting requests hold ${this.#queuedBytes} bytes of ${maxQueueBytes}. Send this one again in a moment.`,
        { retryAfterSeconds: 1 },
      );
  }

  /** Makes the future of admitted work; `cancel` is how its client can end it early. */
  begin(bytes: number, cancel?: () => void): Operation {
    const operation = this.futures.create(cancel);
    this.#queuedBytes += bytes;
    operation.waiters.add(() => {
      this.#queuedBytes -= bytes;
    });
    return operation;
  }

  /** Runs the work and settles its future; never throws. */
  async settle(operation: Operation, work: () => Promise<Result>): Promise<void> {
    try {
      const result = await work();
      this.futures.succeed(operation, result, weightOf(result));
    } catch (error) {
      this.futures.fail(operation, error);
      if (error instanceof EngineError && error.code === "engine/worker-died") this.#limits.onEngineLost?.(error);
    }
  }
}

/** About how many bytes a value holds. */
function weightOf(value: unknown): number {
  if (ArrayBuffer.isView(value)) return value.byteLength + 64;
  if (typeof value !== "object" || value === null) return 8;
  return Object.values(value).reduce((sum: number, part) => sum + weightOf(part), 16);
}
