// The inside of a thread of the engine, be it the host or a compute worker: plain calls, samples with tokens that
// are reported as they are chosen, and their cancellation.
import type { MessagePort } from "node:worker_threads";
import { type FromWorker, type ToWorker, toPlain } from "./messages.ts";
import type { OnToken, RunnableRequest, RunningRequest } from "./sampler.ts";

/** What such a thread does. Other methods are called by name. */
export interface Served {
  sample(samplerId: string, request: RunnableRequest, onToken?: OnToken): RunningRequest;
  close(): Promise<void>;
}

/** Starts what is served, says so, and answers from then on. It says `greeting` with it. */
export async function serve<Thing extends Served>(
  port: MessagePort,
  start: () => Thing | Promise<Thing>,
  greeting: (thing: Thing) => unknown = () => undefined,
): Promise<void> {
  try {
    const thing = await start();
    const answers = new Answers(port, thing);
    port.on("message", (message: ToWorker) => answers.receive(message));
    port.postMessage({ kind: "ready", greeting: greeting(thing) } satisfies FromWorker);
  } catch (error) {
    port.postMessage({ kind: "failed-start", error: toPlain(error) } satisfies FromWorker);
  }
}

class Answers {
  readonly #port: MessagePort;
  readonly #thing: Served;
  readonly #requests = new Map<number, RunningRequest>();
  #chosen: [id: number, sample: number, token: number][] = [];

  constructor(port: MessagePort, thing: Served) {
    this.#port = port;
    this.#thing = thing;
  }

  receive(message: ToWorker): void {
    switch (message.kind) {
      case "call": {
        const method = (this.#thing as unknown as Record<string, (...args: unknown[]) => unknown>)[message.name]!;
        void this.#answer(message.id, () => method.apply(this.#thing, message.args)).then(() => {
          if (message.name === "close") this.#port.close();
        });
        break;
      }
      case "sample":
        void this.#answer(message.id, () => this.#sample(message));
        break;
      case "cancel":
        this.#requests.get(message.id)?.cancel();
        this.#requests.delete(message.id);
        break;
      case "stop":
        this.#requests.get(message.id)?.stop(message.sample, message.length);
        break;
    }
  }

  async #sample({ id, samplerId, request, watched }: ToWorker & { kind: "sample" }): Promise<unknown> {
    const running = this.#thing.sample(
      samplerId,
      request,
      watched ? (index, token) => this.#report(id, index, token) : undefined,
    );
    this.#requests.set(id, running);
    try {
      return await running.result;
    } finally {
      this.#requests.delete(id);
    }
  }

  async #answer(id: number, work: () => unknown): Promise<void> {
    try {
      const value = await work();
      this.#flushTokens();
      this.#send({ kind: "result", id, value });
    } catch (error) {
      this.#send({ kind: "error", id, error: toPlain(error) });
    }
  }

  #report(id: number, sample: number, token: number): void {
    if (this.#chosen.length === 0) setImmediate(() => this.#flushTokens());
    this.#chosen.push([id, sample, token]);
  }

  /** Tokens of one step go out in one message, and before any result that contains them. */
  #flushTokens(): void {
    if (this.#chosen.length === 0) return;
    this.#send({ kind: "tokens", tokens: this.#chosen });
    this.#chosen = [];
  }

  #send(message: FromWorker): void {
    this.#port.postMessage(message);
  }
}
