// A running batch: samples that are decoded together, one token per step. Samples join and leave between steps. In a shared batch
// the samples of one prompt share its keys and values, and those with the same tokens so far are one row, which is computed once:
// answers to one problem begin alike, and a policy that is sure of itself repeats itself. A row's own tokens have an entry in the cache;
// when its samples diverge, each part goes on with a copy. In a lone batch a sample's entry holds its prompt too.
import { floats, type Value, value } from "../graph/index.ts";
import type { DecoderConfig } from "./architecture.ts";
import type { Snapshot } from "./base-model.ts";
import { aligned, blockSize, type DecodeKind } from "./decoder.ts";
import { KvSlab } from "./kv-slab.ts";
import type { PromptBlock } from "./prompt-cache.ts";

/** A sample as the batch sees it. */
export interface BatchSample {
  /** 0: the most likely token. */
  readonly temperature: number;
  /** The token to compute next: the last one chosen. */
  readonly lastToken: number;
  /**
   * Takes the distribution of the next token at the sample's temperature (for 0: at 1), and where that is not 1, the
   * log-probabilities at 1 too. The arrays are only valid during the call.
   */
  accept(probs: Float32Array, logprobs?: Float32Array): void;
  /** True: leaves the batch before the next step. */
  readonly ended: boolean;
}

interface Group {
  readonly blocks: readonly PromptBlock[];
  readonly length: number;
}

/** Samples of one request that have chosen the same tokens so far. */
interface Row {
  samples: BatchSample[];
  readonly group: Group;
  /** Own tokens in the cache. */
  length: number;
}

export class RunningBatch {
  readonly #config: DecoderConfig;
  readonly #kind: DecodeKind;
  readonly #snapshot: Snapshot;
  readonly #prompts: KvSlab;
  readonly #own: KvSlab;
  /** What every step needs from the graph. */
  readonly #outputs: readonly string[];
  #groups: Group[] = [];
  readonly #rows: Row[] = [];

  constructor(config: DecoderConfig, kind: DecodeKind, snapshot: Snapshot) {
    this.#config = config;
    this.#kind = kind;
    this.#snapshot = snapshot;
    this.#prompts = new KvSlab(config);
    this.#own = new KvSlab(config);
    const layers = Array.from({ length: config.numLayers }, (_, layer) => layer);
    this.#outputs = ["probs", ...layers.flatMap((layer) => [`key.${layer}`, `value.${layer}`])];
  }

  /** How many samples there are: as many rows as they may need. */
  get size(): number {
    return this.#rows.reduce((total, { samples }) => total + samples.length, 0);
  }

  /** Adds samples of one request, each with its first token chosen. */
  add(blocks: readonly PromptBlock[], length: number, samples: readonly BatchSample[]): void {
    if (this.#kind === "lone") this.#addAlone(blocks, length, samples);
    else this.#addShared(blocks, length, samples);
  }

  #addAlone(blocks: readonly PromptBlock[], length: number, samples: readonly BatchSample[]): void {
    const room = Math.max(roomFor(blocks), this.#own.length);
    this.#own.reserve(this.#rows.length + samples.length, room, this.#rows.length);
    for (const sample of samples) {
      for (const [index, block] of blocks.entries()) {
        this.#own.writeBlock(this.#rows.length, index * blockSize, block);
      }
      this.#rows.push({ samples: [sample], group: { blocks: [], length: 0 }, length });
    }
  }

  #addShared(blocks: readonly PromptBlock[], length: number, samples: readonly BatchSample[]): void {
    // Samples of a prompt that is still running join its group.
    let group = this.#groups.find((other) => other.length === length && other.blocks.at(-1) === blocks.at(-1));
    if (!group) {
      group = { blocks, length };
      const room = Math.max(roomFor(blocks), this.#prompts.length);
      this.#prompts.reserve(this.#groups.length + 1, room, this.#groups.length);
      for (const [index, block] of blocks.entries()) {
        this.#prompts.writeBlock(this.#groups.length, index * blockSize, block);
      }
      this.#groups.push(group);
    }
    for (const alike of byToken(samples)) this.#rows.push({ samples: alike, group, length: 0 });
  }

  /** Computes one token of every sample. */
  async step(): Promise<void> {
    this.#dropEnded();
    if (this.#rows.length === 0) return;
    const lengths = this.#rows.map((row) => row.length);
    const rowCount = Math.max(2, this.#rows.length);
    this.#own.reserve(rowCount, aligned(Math.max(...lengths) + 1), this.#rows.length);

    const { numLayers, vocabSize } = this.#config;
    // What comes out is copied, so what nobody needs is not asked for.
    const names = this.#rows.some(isTempered) ? [...this.#outputs, "logprobs"] : this.#outputs;
    const outputs = await (await this.#snapshot.graphs.decode(this.#kind)).run(this.#feeds(rowCount), names);
    for (let layer = 0; layer < numLayers; layer++) {
      this.#own.writeTokens(layer, lengths, floats(outputs[`key.${layer}`]!), floats(outputs[`value.${layer}`]!));
    }
    const answer = (name: string, index: number): Float32Array =>
      floats(outputs[name]!).subarray(index * vocabSize, (index + 1) * vocabSize);
    for (const [index, row] of this.#rows.entries()) {
      row.length++;
      const [probs, logprobs] = [answer("probs", index), isTempered(row) ? answer("logprobs", index) : undefined];
      for (const sample of row.samples) if (!sample.ended) sample.accept(probs, logprobs);
    }
    this.#dropEnded();
    this.#splitRows();
  }

  /** Samples that chose different tokens go on in rows of their own. */
  #splitRows(): void {
    for (const [index, row] of [...this.#rows.entries()]) {
      if (row.samples.length === 1) continue;
      const [first, ...others] = byToken(row.samples);
      row.samples = first!;
      this.#own.reserve(this.#rows.length + others.length, this.#own.length, this.#rows.length);
      for (const alike of others) {
        this.#own.copy(index, this.#rows.length);
        this.#rows.push({ samples: alike, group: row.group, length: row.length });
      }
    }
  }

  /** The last row or group takes the place of one that left. */
  #dropEnded(): void {
    for (let index = this.#rows.length - 1; index >= 0; index--) {
      const row = this.#rows[index]!;
      if (row.samples.some(({ ended }) => ended)) row.samples = row.samples.filter(({ ended }) => !ended);
      if (row.samples.length > 0) continue;
      const last = this.#rows.pop()!;
      if (index === this.#rows.length) continue;
      this.#own.copy(this.#rows.length, index);
      this.#rows[index] = last;
    }
    const used = new Set(this.#rows.map((row) => row.group));
    for (let index = this.#groups.length - 1; index >= 0; index--) {
      if (used.has(this.#groups[index]!)) continue;
      const last = this.#groups.pop()!;
      if (index === this.#groups.length) continue;
      this.#prompts.copy(this.#groups.length, index);
      this.#groups[index] = last;
    }
    // Shorter prompts are left: shrink to them, so that nobody pays for a prompt that is gone.
    const longest = Math.max(0, ...this.#groups.map((group) => roomFor(group.blocks)));
    if (longest < this.#prompts.length) this.#prompts.reserve(this.#groups.length, longest, this.#groups.length);
  }

  #feeds(rowCount: number): Record<string, Value> {
    const tokens = new Int32Array(rowCount);
    const positions = new Int32Array(rowCount);
    const inverseTemperatures = new Float32Array(rowCount).fill(1);
    for (const [index, row] of this.#rows.entries()) {
      const { lastToken, temperature } = row.samples[0]!;
      tokens[index] = lastToken;
      positions[index] = row.group.length + row.length;
      if (isTempered(row)) inverseTemperatures[index] = 1 / temperature;
    }
    const feeds: Record<string, Value> = {
      ...this.#snapshot.feeds,
      tokens: value(tokens, [rowCount]),
      positions: value(positions, [rowCount]),
      inverse_temperatures: value(inverseTemperatures, [rowCount, 1]),
      ...(this.#kind === "shared" ? this.#groupFeeds(rowCount) : this.#loneFeeds(rowCount)),
    };
    for (let layer = 0; layer < this.#config.numLayers; layer++) {
      const own = this.#own.feed(layer, rowCount, this.#kind === "lone");
      feeds[`own_keys.${layer}`] = own.keys;
      feeds[`own_values.${layer}`] = own.values;
    }
    return feeds;
  }

  #loneFeeds(rowCount: number): Record<string, Value> {
    const columns = this.#own.length + 1;
    const mask = new Float32Array(rowCount * columns);
    for (const [index, row] of this.#rows.entries()) this.#hidePadding(mask, index * columns, 0, row);
    return { mask: value(mask, [rowCount, 1, 1, columns]) };
  }

  #groupFeeds(rowCount: number): Record<string, Value> {
    const groupCount = this.#groups.length;
    const rowSlots = new Int32Array(rowCount);
    const members = new Map<Group, number[]>(this.#groups.map((group) => [group, []]));
    for (const [index, row] of this.#rows.entries()) members.get(row.group)!.push(index);
    // A product with one row would use another kernel.
    const heads = this.#config.numHeads / this.#config.numKvHeads;
    const width = Math.max(heads === 1 ? 2 : 1, ...[...members.values()].map((indices) => indices.length));
    const groupRows = new Int32Array(groupCount * width);
    const columns = this.#prompts.length + this.#own.length + 1;
    const mask = new Float32Array(groupCount * width * columns);
    for (const [group, indices] of [...members.values()].entries()) {
      for (const [place, index] of indices.entries()) {
        const slot = group * width + place;
        groupRows[slot] = index;
        rowSlots[index] = slot;
        this.#hidePadding(mask, slot * columns, this.#prompts.length, this.#rows[index]!);
      }
    }
    const feeds: Record<string, Value> = {
      row_slots: value(rowSlots, [rowCount]),
      group_rows: value(groupRows, [groupCount, width]),
      mask: value(mask, [groupCount, 1, width, 1, columns]),
    };
    for (let layer = 0; layer < this.#config.numLayers; layer++) {
      const { keys, values } = this.#prompts.feed(layer, groupCount);
      feeds[`prompt_keys.${layer}`] = keys;
      feeds[`prompt_values.${layer}`] = values;
    }
    return feeds;
  }

  /** Hides from a row what only pads its prompt and its own tokens. A place without a row sees all of it; nobody looks at the result. */
  #hidePadding(mask: Float32Array, start: number, prompt: number, row: Row): void {
    mask.fill(Number.NEGATIVE_INFINITY, start + row.group.length, start + prompt);
    mask.fill(Number.NEGATIVE_INFINITY, start + prompt + row.length, start + prompt + this.#own.length);
  }
}

/** Whether a row's distribution is another one than the model's own. Samples of one request have one temperature. */
const isTempered = ({ samples: [first] }: Row): boolean => first!.temperature !== 0 && first!.temperature !== 1;

/** Samples by the token they chose, in the order of the first of each. */
function byToken(samples: readonly BatchSample[]): BatchSample[][] {
  const parts = new Map<number, BatchSample[]>();
  for (const sample of samples) {
    const part = parts.get(sample.lastToken);
    if (part) part.push(sample);
    else parts.set(sample.lastToken, [sample]);
  }
  return [...parts.values()];
}

/** Tokens that a prompt's blocks take, the padding of the last one included. */
function roomFor(blocks: readonly PromptBlock[]): number {
  return (blocks.length - 1) * blockSize + blocks.at(-1)!.size;
}
