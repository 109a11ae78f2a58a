// Encodes many texts without stalling the event loop: small batches here, large ones in a worker thread that has its own copy of
// the tokenizer.
import { WorkerCalls } from "../core/worker-calls.ts";
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

export interface Batch {
  texts: readonly string[];
  options: EncodeOptions;
}

export class BatchEncoder {
  readonly #encode: (text: string, options: EncodeOptions) => number[];
  readonly #thread: WorkerCalls<Batch, Int32Array[]>;

  constructor(files: BatchFiles, encode: (text: string, options: EncodeOptions) => number[]) {
    this.#encode = encode;
    this.#thread = new WorkerCalls({
      entry: new URL("./batch-worker.ts", import.meta.url),
      data: files,
      failed: (reason) =>
        new TokenizerError(
          "tokenizer/batch-failed",
          `A batch could not be encoded with the tokenizer of ${files.name}: ${reason}. Check that its files are still there, and try again.`,
        ),
    });
  }

  async encode(texts: readonly string[], options: EncodeOptions): Promise<Int32Array[]> {
    const characters = texts.reduce((sum, text) => sum + text.length, 0);
    if (characters > inlineCharacters) return this.#thread.ask({ texts, options });
    return texts.map((text) => Int32Array.from(this.#encode(text, options)));
  }

  /** Ends the thread; batches that wait for it fail. */
  close(): Promise<void> {
    return this.#thread.close();
  }
}
