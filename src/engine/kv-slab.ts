// Keys and values of many sequences in arrays that graphs read in place. Per layer, an entry is [kvHeads, length, headDim], for keys
// as for values; entries follow each other.
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
  /** Per layer: keys, values. */
  readonly #layers: [keys: Float32Array, values: Float32Array][];
  #entries = 0;
  #length = 0;

  constructor(config: Qwen3Config) {
    this.#kvHeads = config.numKvHeads;
    this.#headDim = config.headDim;
    this.#layers = Array.from({ length: config.numLayers }, () => [new Float32Array(0), new Float32Array(0)]);
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
    const grown = (old: Float32Array): Float32Array => {
      const array = new Float32Array(room * this.#kvHeads * length * this.#headDim);
      for (let head = 0; head < kept * this.#kvHeads; head++) {
        const from = head * this.#length * this.#headDim;
        array.set(old.subarray(from, from + tokens * this.#headDim), head * length * this.#headDim);
      }
      return array;
    };
    for (const [layer, [keys, values]] of this.#layers.entries()) this.#layers[layer] = [grown(keys), grown(values)];
    this.#entries = room;
    this.#length = length;
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

  /** Moves an entry over another one. */
  move(from: number, to: number): void {
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
