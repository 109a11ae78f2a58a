// The caller's side of a thread of the engine (serve-thread.ts is the other): calls, samples and their tokens as messages.
import type { Worker } from "node:worker_threads";
import { startWorker } from "../core/workers.ts";
import type { SampleOutput } from "./engine.ts";
import { EngineError } from "./errors.ts";
import { type FromWorker, fromPlain, type ToWorker } from "./messages.ts";
import type { OnToken, RunnableRequest, RunningRequest } from "./sampler.ts";

interface Pending {
  resolve(value: never): void;
  reject(error: Error): void;
  onToken?: OnToken | undefined;
}

export class EngineThread {
  /** What the thread sent when it had started. */
  readonly greeting: unknown;
  readonly #worker: Worker;
  readonly #pending = new Map<number, Pending>();
  #nextId = 0;
  #gone: EngineError | undefined;
  #closing = false;

  private constructor(worker: Worker, greeting: unknown, onGone: (error: EngineError) => void) {
    this.greeting = greeting;
    this.#worker = worker;
    worker.on("message", (message: FromWorker) => this.#receive(message));
    worker.on("error", (error) => this.#fail(died(String(error)), onGone));
    worker.on("exit", () => this.#fail(died("its thread ended"), onGone));
  }

  /** Starts the thread of a module of this folder. `onGone` is called if it ends without having been closed. */
  static start(entry: URL, data: unknown, onGone: (error: EngineError) => void = () => {}): Promise<EngineThread> {
    const worker = startWorker(entry, data);
    return new Promise<EngineThread>((resolve, reject) => {
      const onError = (error: unknown): void => reject(died(String(error)));
      const onExit = (code: number): void => reject(died(`it exited with code ${code} while starting`));
      worker.once("error", onError);
      worker.once("exit", onExit);
      worker.once("message", (message: FromWorker) => {
        worker.off("error", onError).off("exit", onExit);
        if (message.kind === "ready") {
          resolve(new EngineThread(worker, message.greeting, onGone));
          return;
        }
        const error = message.kind === "failed-start" ? fromPlain(message.error) : died("it sent no greeting");
        void worker.terminate().then(() => reject(error));
      });
    });
  }

  call<Result>(name: string, args: readonly unknown[]): Promise<Result> {
    return new Promise<Result>((resolve, reject) => {
      const id = this.#register({ resolve, reject });
      this.#send({ kind: "call", id, name, args: [...args] });
    });
  }

  sample(samplerId: string, request: RunnableRequest, onToken?: OnToken): RunningRequest {
    let id!: number;
    const result = new Promise<SampleOutput>((resolve, reject) => {
      id = this.#register({ resolve, reject, onToken });
      this.#send({ kind: "sample", id, samplerId, request, watched: onToken !== undefined });
    });
    return {
      result,
      cancel: () => {
        if (this.#pending.delete(id)) this.#send({ kind: "cancel", id });
      },
      stop: (sample, length) => this.#send({ kind: "stop", id, sample, length }),
    };
  }

  async close(): Promise<void> {
    if (this.#gone) return;
    this.#closing = true;
    const ended = new Promise<void>((resolve) => this.#worker.once("exit", () => resolve()));
    await this.call("close", []).catch(() => {});
    await this.#worker.terminate();
    await ended;
  }

  #register(pending: Pending): number {
    const id = this.#nextId++;
    if (this.#gone) pending.reject(this.#gone);
    else this.#pending.set(id, pending);
    return id;
  }

  #send(message: ToWorker): void {
    if (!this.#gone) this.#worker.postMessage(message);
  }

  #receive(message: FromWorker): void {
    if (message.kind === "tokens") {
      for (const [id, sample, token] of message.tokens) this.#pending.get(id)?.onToken?.(sample, token);
      return;
    }
    if (message.kind !== "result" && message.kind !== "error") return;
    const pending = this.#pending.get(message.id);
    this.#pending.delete(message.id);
    if (message.kind === "result") pending?.resolve(message.value as never);
    else pending?.reject(fromPlain(message.error));
  }

  #fail(error: EngineError, onGone: (error: EngineError) => void): void {
    if (this.#gone) return;
    this.#gone = error;
    const waiting = [...this.#pending.values()];
    this.#pending.clear();
    for (const { reject } of waiting) reject(this.#gone);
    if (!this.#closing) onGone(error);
  }
}

function died(what: string): EngineError {
  return new EngineError("engine/worker-died", `The engine's worker thread is gone: ${what}. Restart the server.`, {
    fault: "server",
  });
}
