// Encodes many texts without stalling the event loop: small batches here, large ones in a worker thread that has its own copy of
// the tokenizer. The thread starts with the first large batch and does not keep the process alive.
import type { Worker } from "node:worker_threads";
import { startWorker } from "../core/workers.ts";
import { TokenizerError } from "./errors.ts";
import type { TokenizerPaths } from "./files.ts";
import type { EncodeOptions } from "./tokenizer.ts";

/** About 10 ms of work; below this, handing texts to a thread costs more than it saves. */
const inlineCharacters = 16_384;

/** What a thread needs to load the same tokenizer. */
export interface BatchFiles {
  paths: TokenizerPaths;
  name: string;
  controlTokens: readonly string[];
}

export interface BatchRequest {
  id: number;
  texts: readonly string[];
  options: EncodeOptions;
}

export type BatchReply = { id: number; ids: Int32Array[] } | { id: number; error: string };

export class BatchEncoder {
  readonly #files: BatchFiles;
  readonly #encode: (text: string, options: EncodeOptions) => number[];
  #worker: Worker | undefined;
  #next = 0;
  readonly #waiting = new Map<number, { resolve: (ids: Int32Array[]) => void; reject: (error: Error) => void }>();

  constructor(files: BatchFiles, encode: (text: string, options: EncodeOptions) => number[]) {
    this.#files = files;
    this.#encode = encode;
  }

  async encode(texts: readonly string[], options: EncodeOptions): Promise<Int32Array[]> {
    const characters = texts.reduce((sum, text) => sum + text.length, 0);
    if (characters <= inlineCharacters) return texts.map((text) => Int32Array.from(this.#encode(text, options)));
    const worker = this.#start();
    const id = this.#next++;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      // While a reply is due the process must stay.
      worker.ref();
      worker.postMessage({ id, texts, options } satisfies BatchRequest);
    });
  }

  /** Ends the thread; batches that wait for it fail. */
  async close(): Promise<void> {
    await this.#worker?.terminate();
  }

  #start(): Worker {
    if (this.#worker) return this.#worker;
    const worker = startWorker(new URL("./batch-worker.ts", import.meta.url), this.#files);
    worker.on("message", (reply: BatchReply) => {
      const caller = this.#waiting.get(reply.id);
      this.#waiting.delete(reply.id);
      if (this.#waiting.size === 0) worker.unref();
      if ("error" in reply) caller?.reject(this.#failed(reply.error));
      else caller?.resolve(reply.ids);
    });
    worker.on("error", (error) => this.#failAll(this.#failed(error.message)));
    worker.on("exit", () => {
      this.#worker = undefined;
      this.#failAll(this.#failed("its thread ended"));
    });
    worker.unref();
    this.#worker = worker;
    return worker;
  }

  #failAll(error: Error): void {
    for (const { reject } of this.#waiting.values()) reject(error);
    this.#waiting.clear();
  }

  #failed(reason: string): TokenizerError {
    return new TokenizerError(
      "tokenizer/batch-failed",
      `A batch could not be encoded with the tokenizer of ${this.#files.name}: ${reason}. Check that its files are still there, and try again.`,
    );
  }
}
