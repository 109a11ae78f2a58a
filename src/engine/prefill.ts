// Computes prompts: several at a time, some blocks of each per call, so that running samples never wait long. How many blocks a
// run takes changes no bit: a token's sums run over the tokens before it in their order, and what follows adds exact zeros.
import { floats, type Value, value } from "../graph/index.ts";
import type { DecoderConfig } from "./architecture.ts";
import type { Snapshot } from "./base-model.ts";
import { aligned, blockSize, type PrefillKind } from "./decoder.ts";
import { KvSlab } from "./kv-slab.ts";
import { blocksOf, type PromptBlock, type PromptCache } from "./prompt-cache.ts";

/** Prompts that are computed in one run. */
const promptsPerRun = 16;
/** About how many tokens one run takes: few prompts are computed several blocks at a time. */
const tokensPerRun = promptsPerRun * blockSize;

export interface PromptJob {
  readonly prompt: Int32Array;
  /** True: `onLogprobs` is called for every token's successor, and nothing is taken from the cache. */
  readonly everyLogprob: boolean;
  /** The log-probabilities of whatever follows `position`. The array is only valid during the call. */
  onLogprobs?: (position: number, logprobs: Float32Array) => void;
  /** Called once, with all blocks of the prompt, and how many of its tokens had been computed before. */
  onDone: (blocks: readonly PromptBlock[], known: number) => void;
  cancelled: boolean;
}

interface Running {
  job: PromptJob;
  /** How many blocks it has. */
  pieces: number;
  done: PromptBlock[];
  /** Tokens that an earlier prompt had computed. */
  known: number;
}

export class Prefiller {
  readonly #config: DecoderConfig;
  readonly #snapshot: Snapshot;
  readonly #cache: PromptCache;
  readonly #past: KvSlab;
  #waiting: PromptJob[] = [];
  #running: Running[] = [];

  constructor(config: DecoderConfig, snapshot: Snapshot, cache: PromptCache) {
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

  /** Computes some blocks of some prompts. */
  async advance(): Promise<void> {
    this.#admit();
    if (this.#running.length === 0) return;
    await this.#run(nextRun(this.#running));
    this.#running = this.#running.filter((running) => {
      if (left(running) > 0) return true;
      this.#finish(running);
      return false;
    });
  }

  #admit(): void {
    this.#running = this.#running.filter(({ job }) => !job.cancelled);
    // Prompts start together, so that they stay level.
    if (this.#running.length > 0) return;
    const later: PromptJob[] = [];
    for (const job of this.#waiting) {
      if (job.cancelled) continue;
      // A twin of a prompt that is being computed waits for its blocks.
      const twin = !job.everyLogprob && this.#running.some((running) => sameTokens(running.job.prompt, job.prompt));
      if (twin || this.#running.length >= promptsPerRun) {
        later.push(job);
        continue;
      }
      const pieces = blocksOf(job.prompt).length;
      const done = job.everyLogprob ? [] : this.#cache.find(job.prompt);
      const known = Math.min(job.prompt.length, done.length * blockSize);
      if (done.length === pieces) job.onDone(done, known);
      else this.#running.push({ job, pieces, done, known });
    }
    this.#waiting = later;
  }

  #finish({ job, done, known }: Running): void {
    this.#cache.keep(job.prompt, done);
    if (!job.cancelled) job.onDone(done, known);
  }

  async #run({ running, blocks, kind }: Run): Promise<void> {
    const { numLayers, numKvHeads, headDim, vocabSize } = this.#config;
    const count = running.length;
    const past = running[0]!.done.length * blockSize;
    const pieces = running.map(({ job }) => job.prompt.subarray(past, past + blocks * blockSize));
    // Where only ends of prompts are left, the run is as short as the longest of them.
    const size = aligned(Math.max(...pieces.map(({ length }) => length)));
    this.#past.reserve(count, past, 0);

    const tokens = new Int32Array(count * size);
    const positions = new Int32Array(count * size);
    const mask = new Float32Array(size * (past + size));
    for (let row = 0; row < size; row++) {
      mask.fill(Number.NEGATIVE_INFINITY, row * (past + size) + past + row + 1, (row + 1) * (past + size));
    }
    const wanted: { row: number; running: Running; position: number }[] = [];
    for (const [index, one] of running.entries()) {
      for (const [block, kept] of one.done.entries()) this.#past.writeBlock(index, block * blockSize, kept);
      tokens.set(pieces[index]!, index * size);
      for (let offset = 0; offset < size; offset++) {
        positions[index * size + offset] = Math.min(past + offset, this.#config.maxPositions - 1);
      }
      for (let offset = 0; offset < pieces[index]!.length; offset++) {
        const position = past + offset;
        if (one.job.everyLogprob || position === one.job.prompt.length - 1) {
          wanted.push({ row: index * size + offset, running: one, position });
        }
      }
    }

    const feeds: Record<string, Value> = {
      ...this.#snapshot.feeds,
      tokens: value(tokens, [count, size]),
      positions: value(positions, [count, size]),
      mask: value(mask, [size, past + size]),
      wanted_rows: wantedRows(wanted.map(({ row }) => row)),
    };
    for (let layer = 0; layer < numLayers; layer++) {
      const { keys, values } = this.#past.feed(layer, count);
      feeds[`past_keys.${layer}`] = keys;
      feeds[`past_values.${layer}`] = values;
    }
    const outputs = await (await this.#snapshot.graphs.prefill(kind)).run(feeds);

    for (const [index, one] of running.entries()) {
      for (let start = 0; start < pieces[index]!.length; start += blockSize) {
        const end = start + blockSize < pieces[index]!.length ? start + blockSize : size;
        const part = (what: "key" | "value"): Float32Array[] =>
          Array.from({ length: numLayers }, (_, layer) => {
            const all = floats(outputs[`${what}.${layer}`]!);
            const block = new Float32Array(numKvHeads * (end - start) * headDim);
            for (let head = 0; head < numKvHeads; head++) {
              const from = (index * numKvHeads + head) * size;
              block.set(all.subarray((from + start) * headDim, (from + end) * headDim), head * (end - start) * headDim);
            }
            return block;
          });
        one.done.push({ size: end - start, keys: part("key"), values: part("value"), nextLogprobs: undefined });
      }
    }
    if (kind === "inner") return;
    const logprobs = floats(outputs["logprobs"]!);
    for (const [index, { running: one, position }] of wanted.entries()) {
      const row = logprobs.subarray(index * vocabSize, (index + 1) * vocabSize);
      if (position === one.job.prompt.length - 1) one.done.at(-1)!.nextLogprobs = row.slice();
      one.job.onLogprobs?.(position, row);
    }
  }
}

interface Run {
  /** All with the same number of blocks done. */
  running: readonly Running[];
  /** How many blocks of each are computed; a prompt's last may be shorter. */
  blocks: number;
  kind: PrefillKind;
}

/** Blocks of a prompt that are still to be computed. */
const left = ({ pieces, done }: Running): number => pieces - done.length;

/** Takes those prompts that are furthest behind: to their end where that fits into one run, else some blocks before it. */
function nextRun(all: readonly Running[]): Run {
  const done = Math.min(...all.map((running) => running.done.length));
  const level = all.filter((running) => running.done.length === done);
  const longest = Math.max(...level.map(left));
  const room = Math.max(1, Math.floor(tokensPerRun / (level.length * blockSize)));
  if (longest <= room) return { running: level.filter((one) => left(one) === longest), blocks: longest, kind: "final" };
  const inner = level.filter((one) => !one.job.everyLogprob && left(one) > 1);
  if (inner.length === 0) return { running: level, blocks: Math.min(room, ...level.map(left)), kind: "final" };
  return { running: inner, blocks: Math.min(room, ...inner.map((one) => left(one) - 1)), kind: "inner" };
}

/** Always two rows or more: see decoder.ts. */
function wantedRows(rows: readonly number[]): Value {
  const padded = rows.length >= 2 ? rows : [...rows, 0, 0].slice(0, 2);
  return value(Int32Array.from(padded), [padded.length]);
}

function sameTokens(a: Int32Array, b: Int32Array): boolean {
  return a.length === b.length && a.every((token, index) => token === b[index]);
}
