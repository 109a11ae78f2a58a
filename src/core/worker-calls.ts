// Questions to a worker thread, and their answers. The thread starts with the first question, keeps the process alive only while an answer
// is due, and is started again after it has ended.
import { parentPort, type Worker } from "node:worker_threads";
import { messageOf } from "./errors.ts";
import { startWorker } from "./workers.ts";

type Reply<Answer> = { id: number; answer: Answer } | { id: number; error: string };

export interface WorkerCallsOptions {
  /** The thread's module, which calls `answerCalls`. */
  entry: URL;
  data?: unknown;
  /** The error for a question that cannot be answered: it threw, or the thread has ended. */
  failed(reason: string): Error;
}

export class WorkerCalls<Question, Answer> {
  readonly #options: WorkerCallsOptions;
  #worker: Worker | undefined;
  #next = 0;
  readonly #waiting = new Map<number, { resolve(answer: Answer): void; reject(error: Error): void }>();

  constructor(options: WorkerCallsOptions) {
    this.#options = options;
  }

  /** `transfer`: memory that is moved to the thread instead of copied. */
  ask(question: Question, transfer: readonly ArrayBuffer[] = []): Promise<Answer> {
    const worker = this.#started();
    const id = this.#next++;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      worker.ref();
      worker.postMessage({ id, question }, transfer);
    });
  }

  /** Ends the thread; what waits for it fails. */
  async close(): Promise<void> {
    await this.#worker?.terminate();
  }

  #started(): Worker {
    if (this.#worker) return this.#worker;
    const { entry, data, failed } = this.#options;
    const worker = startWorker(entry, data);
    worker.on("message", (reply: Reply<Answer>) => {
      const caller = this.#waiting.get(reply.id);
      this.#waiting.delete(reply.id);
      if (this.#waiting.size === 0) worker.unref();
      if ("error" in reply) caller?.reject(failed(reply.error));
      else caller?.resolve(reply.answer);
    });
    let reason = "its thread ended";
    worker.on("error", (error) => {
      reason = messageOf(error);
    });
    worker.on("exit", () => {
      if (this.#worker === worker) this.#worker = undefined;
      for (const { reject } of this.#waiting.values()) reject(failed(reason));
      this.#waiting.clear();
    });
    worker.unref();
    this.#worker = worker;
    return worker;
  }
}

/** The thread's side: answers every question. `transferOf` names the memory of an answer that can be moved to the caller. */
export function answerCalls<Question, Answer>(
  answer: (question: Question) => Answer | Promise<Answer>,
  transferOf: (answer: Answer) => readonly ArrayBuffer[] = () => [],
): void {
  parentPort!.on("message", async ({ id, question }: { id: number; question: Question }) => {
    try {
      const given = await answer(question);
      parentPort!.postMessage({ id, answer: given } satisfies Reply<Answer>, transferOf(given));
    } catch (error) {
      parentPort!.postMessage({ id, error: messageOf(error) } satisfies Reply<Answer>);
    }
  });
}
