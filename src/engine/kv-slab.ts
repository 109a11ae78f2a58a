// Keys and values of many sequences in arrays that graphs read in place. Per layer, an entry is [kvHeads, length, headDim], for keys
// as for values; entries follow each other.
import { type Value, value } from "../graph/index.ts";
import type { DecoderConfig } from "./architecture.ts";

/** Keys and values of consecutive tokens of one sequence, in the layout of an entry with that length. */
export interface KvBlock {
  /** Tokens. */
  size: number;
  /** Per layer. */
  keys: readonly Float32Array[];
  values: readonly Float32Array[];
}

/** An array is made larger than asked for by at most this: 16 MiB. */
const spareFloats = 2 ** 22;

export class KvSlab {
  readonly #kvHeads: number;
  readonly #headDim: number;
  /** Per layer: keys, values. */
  readonly #layers: [keys: Float32Array, values: Float32Array][];
  #entries = 0;
  #length = 0;

  constructor(config: DecoderConfig) {
    this.#kvHeads = config.numKvHeads;
    this.#headDim = config.headDim;
    this.#layers = Array.from({ length: config.numLayers }, () => [new Float32Array(0), new Float32Array(0)]);
  }

  /** Tokens that an entry has room for. */
  get length(): number {
    return this.#length;
  }

  /**
   * Makes room for entries of a length; what the first `kept` entries hold stays. Arrays are only replaced by larger ones, with
   * room to spare: entries that grow or shrink move within them.
   */
  reserve(entries: number, length: number, kept: number): void {
    if (entries <= this.#entries && length === this.#length) return;
    const room = Math.max(entries, this.#entries);
    const size = room * this.#kvHeads * length * this.#headDim;
    for (const [layer, arrays] of this.#layers.entries()) {
      const [keys, values] = arrays.map((array) => this.#laidOut(array, size, length, kept));
      this.#layers[layer] = [keys!, values!];
    }
    this.#entries = room;
    this.#length = length;
  }

  /** An array of at least `size` floats with the first `kept` entries laid out for another length. */
  #laidOut(old: Float32Array, size: number, length: number, kept: number): Float32Array {
    const array = size <= old.length ? old : new Float32Array(Math.min(2 * size, size + spareFloats));
    const heads = kept * this.#kvHeads;
    const tokens = Math.min(length, this.#length) * this.#headDim;
    const [from, to] = [this.#length * this.#headDim, length * this.#headDim];
    if (from === to && array === old) return array;
    // Within one array, what moves to the back goes last first.
    for (let step = 0; step < heads; step++) {
      const head = to > from ? heads - 1 - step : step;
      if (array === old) array.copyWithin(head * to, head * from, head * from + tokens);
      else array.set(old.subarray(head * from, head * from + tokens), head * to);
    }
    return array;
  }

  /** Puts a new token's keys and values, [entries, kvHeads · headDim] each, at a position of every entry. */
  writeTokens(layer: number, positions: readonly number[], keys: Float32Array, values: Float32Array): void {
    const [toKeys, toValues] = this.#layers[layer]!;
    const headDim = this.#headDim;
    let from = 0;
    for (let entry = 0; entry < positions.length; entry++) {
      for (let head = 0; head < this.#kvHeads; head++) {
        let to = ((entry * this.#kvHeads + head) * this.#length + positions[entry]!) * headDim;
        for (const end = from + headDim; from < end; from++, to++) {
          toKeys[to] = keys[from]!;
          toValues[to] = values[from]!;
        }
      }
    }
  }

  /** Puts a block at a position of an entry. */
  writeBlock(entry: number, position: number, block: KvBlock): void {
    const chunk = block.size * this.#headDim;
    for (const [layer, [toKeys, toValues]] of this.#layers.entries()) {
      for (let head = 0; head < this.#kvHeads; head++) {
        const to = ((entry * this.#kvHeads + head) * this.#length + position) * this.#headDim;
        toKeys.set(block.keys[layer]!.subarray(head * chunk, (head + 1) * chunk), to);
        toValues.set(block.values[layer]!.subarray(head * chunk, (head + 1) * chunk), to);
      }
    }
  }

  /** Puts a copy of an entry in the place of another. */
  copy(from: number, to: number): void {
    if (from === to) return;
    const size = this.#kvHeads * this.#length * this.#headDim;
    for (const arrays of this.#layers) {
      for (const array of arrays) array.copyWithin(to * size, from * size, (from + 1) * size);
    }
  }

  /** The first `entries` entries of a layer, as graphs take them. `apart`: with an axis of size 1 after the heads. */
  feed(layer: number, entries: number, apart = false): { keys: Value; values: Value } {
    const front = apart ? [entries, this.#kvHeads, 1] : [entries, this.#kvHeads];
    const size = entries * this.#kvHeads * this.#length * this.#headDim;
    const [keys, values] = this.#layers[layer]!.map((array) =>
      value(array.subarray(0, size), [...front, this.#length, this.#headDim]),
    );
    return { keys: keys!, values: values! };
  }
}
