// Accepted work: every heavy operation becomes a future here, under one limit on how many may wait and how much memory their
// requests may hold.

import { EngineError } from "../engine/errors.ts";
import type { ForwardBackwardOutput, SampleResponse } from "../protocol/index.ts";
import { ServerError } from "./errors.ts";
import { type Future, FutureStore, type FutureStoreOptions } from "./futures.ts";

/** What an operation ends with. Tensors stay typed arrays until a poll says which encoding it wants. */
export type Result =
  | { kind: "json"; body: Readonly<Record<string, unknown>> }
  | { kind: "training"; output: ForwardBackwardOutput }
  | { kind: "sample"; output: SampleResponse };

export type Operation = Future<Result>;

export interface OperationLimits extends FutureStoreOptions {
  /** Operations accepted and not finished. */
  maxQueue: number;
  /** Bytes of request bodies that those hold. */
  maxQueueBytes: number;
  /** Told when the engine is gone for good: nothing will work until the process is started again. */
  onEngineLost?: ((error: EngineError) => void) | undefined;
}

export class Operations {
  readonly futures: FutureStore<Result>;
  readonly #limits: OperationLimits;
  #queuedBytes = 0;
  #closing = false;

  constructor(limits: OperationLimits) {
    this.#limits = limits;
    this.futures = new FutureStore(limits);
  }

  /** Refuses everything that comes from now on. */
  close(): void {
    this.#closing = true;
  }

  /** Throws when there is no room. `urgent` work, which others wait for, only has to find the server running. */
  admit(bytes: number, urgent = false): void {
    if (this.#closing)
      throw new ServerError(503, "server/shutting-down", "The server is shutting down. Try again when it is back.", {
        retryAfterSeconds: 2,
      });
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
    const release = () => {
      this.#queuedBytes -= bytes;
    };
    operation.waiters.add(release);
    return operation;
  }

  /** Runs the work and settles its future; never throws. */
  async settle(operation: Operation, work: () => Promise<Result>): Promise<void> {
    try {
      const result = await work();
      this.futures.succeed(operation, result, sizeOf(result));
    } catch (error) {
      this.futures.fail(operation, error);
      if (error instanceof EngineError && error.code === "engine/worker-died") this.#limits.onEngineLost?.(error);
    }
  }
}

/** About how many bytes a result holds. */
function sizeOf(result: Result): number {
  if (result.kind === "json") return 256;
  let bytes = 0;
  if (result.kind === "training") {
    for (const outputs of result.output.lossFnOutputs)
      for (const { data } of Object.values(outputs)) bytes += data.byteLength + 64;
    return bytes;
  }
  const { sequences, promptLogprobs, topkPromptLogprobs, targetPromptLogprobs, promptAltTokens } = result.output;
  const rowBytes = (rows: readonly (readonly unknown[] | null)[] = []) =>
    rows.reduce((sum, row) => sum + 32 + 32 * (row?.length ?? 0), 0);
  for (const { tokens, logprobs, topkSampledLogprobs } of sequences)
    bytes += tokens.byteLength + (logprobs?.byteLength ?? 0) + 64 + rowBytes(topkSampledLogprobs);
  for (const tensor of [targetPromptLogprobs, promptAltTokens?.tokens, promptAltTokens?.logprobs])
    bytes += tensor?.data.byteLength ?? 0;
  return bytes + (promptLogprobs?.byteLength ?? 0) + rowBytes(topkPromptLogprobs);
}
