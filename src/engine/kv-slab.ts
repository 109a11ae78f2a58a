// Keys and values of many sequences in arrays that graphs read in place. Per layer, an entry's keys are [kvHeads, headDim, length]
// (transposed, as attention multiplies them) and its values [kvHeads, length, headDim]; entries follow each other.
import { type Value, value } from "../graph/index.ts";
import type { Qwen3Config } from "./model-types.ts";

/** Keys and values of consecutive tokens of one sequence, in the layout of an entry with that length. */
export interface KvBlock {
  /** Tokens. */
  size: number;
  /** Per layer. */
  keys: readonly Float32Array[];
  values: readonly Float32Array[];
}

export class KvSlab {
  readonly #kvHeads: number;
  readonly #headDim: number;
  readonly #keys: Float32Array[];
  readonly #values: Float32Array[];
  #entries = 0;
  #length = 0;

  constructor(config: Qwen3Config) {
    this.#kvHeads = config.numKvHeads;
    this.#headDim = config.headDim;
    this.#keys = Array.from({ length: config.numLayers }, () => new Float32Array(0));
    this.#values = Array.from({ length: config.numLayers }, () => new Float32Array(0));
  }

  /** Tokens that an entry has room for. */
  get length(): number {
    return this.#length;
  }

  /** Makes room; what the first `kept` entries hold stays. Entries grow in steps of double size, lengths to what is asked. */
  reserve(entries: number, length: number, kept: number): void {
    if (entries <= this.#entries && length === this.#length) return;
    const room = entries <= this.#entries ? this.#entries : Math.max(entries, 2 * this.#entries);
    const tokens = Math.min(length, this.#length);
    const { width } = this;
    for (const [layer, oldKeys] of this.#keys.entries()) {
      const keys = new Float32Array(room * width * length);
      for (let row = 0; row < kept * width; row++) {
        keys.set(oldKeys.subarray(row * this.#length, row * this.#length + tokens), row * length);
      }
      const oldValues = this.#values[layer]!;
      const values = new Float32Array(room * width * length);
      for (let head = 0; head < kept * this.#kvHeads; head++) {
        const from = head * this.#length * this.#headDim;
        values.set(oldValues.subarray(from, from + tokens * this.#headDim), head * length * this.#headDim);
      }
      this.#keys[layer] = keys;
      this.#values[layer] = values;
    }
    this.#entries = room;
    this.#length = length;
  }

  /** Floats of one token's keys. */
  get width(): number {
    return this.#kvHeads * this.#headDim;
  }

  /** Puts one token's keys and values, each [kvHeads · headDim] and taken from `offset`, at a position of an entry. */
  writeToken(
    layer: number,
    entry: number,
    position: number,
    keys: Float32Array,
    values: Float32Array,
    offset: number,
  ): void {
    const toKeys = this.#keys[layer]!;
    const toValues = this.#values[layer]!;
    const { width } = this;
    for (let i = 0, to = entry * width * this.#length + position; i < width; i++, to += this.#length) {
      toKeys[to] = keys[offset + i]!;
    }
    for (let head = 0; head < this.#kvHeads; head++) {
      const to = ((entry * this.#kvHeads + head) * this.#length + position) * this.#headDim;
      for (let i = 0; i < this.#headDim; i++) toValues[to + i] = values[offset + head * this.#headDim + i]!;
    }
  }

  /** Puts a block at a position of an entry. */
  writeBlock(entry: number, position: number, block: KvBlock): void {
    const { size } = block;
    for (const [layer, keys] of block.keys.entries()) {
      for (let row = 0; row < this.width; row++) {
        const to = (entry * this.width + row) * this.#length + position;
        this.#keys[layer]!.set(keys.subarray(row * size, (row + 1) * size), to);
      }
      const values = block.values[layer]!;
      const chunk = size * this.#headDim;
      for (let head = 0; head < this.#kvHeads; head++) {
        const to = ((entry * this.#kvHeads + head) * this.#length + position) * this.#headDim;
        this.#values[layer]!.set(values.subarray(head * chunk, (head + 1) * chunk), to);
      }
    }
  }

  /** Moves an entry over another one. */
  move(from: number, to: number): void {
    if (from === to) return;
    const size = this.width * this.#length;
    for (const arrays of [this.#keys, this.#values]) {
      for (const array of arrays) array.copyWithin(to * size, from * size, (from + 1) * size);
    }
  }

  /** The first `entries` entries of a layer, as graphs take them. `alone`: with an axis of size 1 after the heads. */
  feed(layer: number, entries: number, alone = false): { keys: Value; values: Value } {
    const size = entries * this.width * this.#length;
    const front = alone ? [entries, this.#kvHeads, 1] : [entries, this.#kvHeads];
    return {
      keys: value(this.#keys[layer]!.subarray(0, size), [...front, this.#headDim, this.#length]),
      values: value(this.#values[layer]!.subarray(0, size), [...front, this.#length, this.#headDim]),
    };
  }
}
