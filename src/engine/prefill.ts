// Computes prompts: several at a time, one block of each per call, so that running samples never wait long.
import { floats, type Value, value } from "../graph/index.ts";
import type { Snapshot } from "./base-model.ts";
import { aligned, blockSize } from "./decoder.ts";
import { KvSlab } from "./kv-slab.ts";
import type { Qwen3Config } from "./model-types.ts";
import { blocksOf, type PromptBlock, type PromptCache } from "./prompt-cache.ts";

/** Prompts whose blocks are computed in one run. */
const promptsPerRun = 16;

export interface PromptJob {
  readonly prompt: Int32Array;
  /** True: `onLogprobs` is called for every token's successor, and nothing is taken from the cache. */
  readonly everyLogprob: boolean;
  /** The log-probabilities of whatever follows `position`. The array is only valid during the call. */
  onLogprobs?: (position: number, logprobs: Float32Array) => void;
  /** Called once, with all blocks of the prompt. */
  onDone: (blocks: readonly PromptBlock[]) => void;
  cancelled: boolean;
}

interface Running {
  job: PromptJob;
  pieces: readonly Int32Array[];
  done: PromptBlock[];
}

export class Prefiller {
  readonly #config: Qwen3Config;
  readonly #snapshot: Snapshot;
  readonly #cache: PromptCache;
  readonly #past: KvSlab;
  #waiting: PromptJob[] = [];
  #running: Running[] = [];

  constructor(config: Qwen3Config, snapshot: Snapshot, cache: PromptCache) {
    this.#config = config;
    this.#snapshot = snapshot;
    this.#cache = cache;
    this.#past = new KvSlab(config);
  }

  add(job: PromptJob): void {
    this.#waiting.push(job);
  }

  get busy(): boolean {
    return this.#waiting.length + this.#running.length > 0;
  }

  /** Computes one block of some prompts. */
  async advance(): Promise<void> {
    this.#admit();
    if (this.#running.length === 0) return;
    await this.#runBlock();
    this.#running = this.#running.filter((running) => {
      if (running.done.length < running.pieces.length) return true;
      this.#finish(running);
      return false;
    });
  }

  #admit(): void {
    this.#running = this.#running.filter(({ job }) => !job.cancelled);
    const later: PromptJob[] = [];
    for (const job of this.#waiting) {
      if (job.cancelled) continue;
      // A twin of a prompt that is being computed waits for its blocks.
      const twin = !job.everyLogprob && this.#running.some((running) => sameTokens(running.job.prompt, job.prompt));
      if (twin || this.#running.length >= promptsPerRun) {
        later.push(job);
        continue;
      }
      const pieces = blocksOf(job.prompt);
      const done = job.everyLogprob ? [] : this.#cache.find(job.prompt);
      if (done.length === pieces.length) job.onDone(done);
      else this.#running.push({ job, pieces, done });
    }
    this.#waiting = later;
  }

  #finish({ job, done }: Running): void {
    this.#cache.keep(job.prompt, done);
    if (!job.cancelled) job.onDone(done);
  }

  async #runBlock(): Promise<void> {
    const { numLayers, numKvHeads, headDim, vocabSize } = this.#config;
    const running = this.#running;
    const count = running.length;
    const past = Math.max(...running.map(({ done }) => done.length)) * blockSize;
    // Where only ends of prompts are left, the run is as short as the longest of them.
    const size = aligned(Math.max(...running.map(({ pieces, done }) => pieces[done.length]!.length)));
    this.#past.reserve(count, past, 0);

    const tokens = new Int32Array(count * size);
    const positions = new Int32Array(count * size);
    const mask = new Float32Array(count * size * (past + size)).fill(Number.NEGATIVE_INFINITY);
    const wanted: { row: number; running: Running; offset: number }[] = [];
    for (const [index, one] of running.entries()) {
      const start = one.done.length * blockSize;
      const piece = one.pieces[one.done.length]!;
      for (const [block, kept] of one.done.entries()) this.#past.writeBlock(index, block * blockSize, kept);
      for (let offset = 0; offset < size; offset++) {
        const row = index * size + offset;
        tokens[row] = piece[offset] ?? 0;
        positions[row] = Math.min(start + offset, this.#config.maxPositions - 1);
        const masks = row * (past + size);
        mask.fill(0, masks, masks + start);
        mask.fill(0, masks + past, masks + past + offset + 1);
      }
      const last = one.done.length === one.pieces.length - 1;
      for (let offset = 0; offset < piece.length; offset++) {
        if (one.job.everyLogprob || (last && offset === piece.length - 1)) {
          wanted.push({ row: index * size + offset, running: one, offset });
        }
      }
    }

    const feeds: Record<string, Value> = {
      ...this.#snapshot.feeds,
      tokens: value(tokens, [count, size]),
      positions: value(positions, [count, size]),
      mask: value(mask, [count, 1, 1, size, past + size]),
      wanted_rows: wantedRows(wanted.map(({ row }) => row)),
    };
    for (let layer = 0; layer < numLayers; layer++) {
      const { keys, values } = this.#past.feed(layer, count);
      feeds[`past_keys.${layer}`] = keys;
      feeds[`past_values.${layer}`] = values;
    }
    const outputs = await this.#snapshot.graphs.prefill.run(feeds);

    const floatsPerPrompt = numKvHeads * headDim * size;
    for (const [index, one] of running.entries()) {
      const part = (kind: "key" | "value"): Float32Array[] =>
        Array.from({ length: numLayers }, (_, layer) =>
          floats(outputs[`${kind}.${layer}`]!).slice(index * floatsPerPrompt, (index + 1) * floatsPerPrompt),
        );
      one.done.push({ size, keys: part("key"), values: part("value"), nextLogprobs: undefined });
    }
    const logprobs = floats(outputs["logprobs"]!);
    for (const [index, { running: one, offset }] of wanted.entries()) {
      const row = logprobs.subarray(index * vocabSize, (index + 1) * vocabSize);
      const position = (one.done.length - 1) * blockSize + offset;
      if (position === one.job.prompt.length - 1) one.done.at(-1)!.nextLogprobs = row.slice();
      one.job.onLogprobs?.(position, row);
    }
  }
}

/** Always two rows or more: see decoder.ts. */
function wantedRows(rows: readonly number[]): Value {
  const padded = rows.length >= 2 ? rows : [...rows, 0, 0].slice(0, 2);
  return value(Int32Array.from(padded), [padded.length]);
}

function sameTokens(a: Int32Array, b: Int32Array): boolean {
  return a.length === b.length && a.every((token, index) => token === b[index]);
}
