// Takes the values of a large page apart while it is unpacked, and spills each as soon as it is complete, so that neither the page nor
// its values are ever in memory together.
import type { Spill } from "./spill.ts";

/** A value that was spilled. */
export interface StoredValue {
  /** Where it starts in the spill; -1: it was larger than wanted and is not kept. */
  offset: number;
  byteLength: number;
}

/** Splits a stream of length-prefixed values (Parquet's PLAIN encoding of texts). */
export class ValueSplitter {
  readonly #spill: Spill;
  readonly #values: StoredValue[] = [];
  /** Complete values that are not spilled yet. */
  #complete: { value: StoredValue; bytes: Uint8Array }[] = [];
  readonly #prefix = new Uint8Array(4);
  #prefixBytes = 0;
  #current: { value: StoredValue; bytes: Uint8Array | undefined; filled: number } | undefined;

  constructor(spill: Spill) {
    this.#spill = spill;
  }

  /** Takes a piece of the stream; nothing of it is kept but the current value. */
  push(bytes: Uint8Array): void {
    let at = 0;
    while (at < bytes.length) {
      if (!this.#current) {
        while (this.#prefixBytes < 4 && at < bytes.length) this.#prefix[this.#prefixBytes++] = bytes[at++]!;
        if (this.#prefixBytes < 4) return;
        this.#begin(new DataView(this.#prefix.buffer).getUint32(0, true));
      }
      const current = this.#current!;
      const taken = Math.min(bytes.length - at, current.value.byteLength - current.filled);
      current.bytes?.set(bytes.subarray(at, at + taken), current.filled);
      current.filled += taken;
      at += taken;
      if (current.filled === current.value.byteLength) this.#finishValue();
    }
  }

  /** Spills the complete values. */
  async drain(): Promise<void> {
    const complete = this.#complete;
    this.#complete = [];
    for (const { value, bytes } of complete) value.offset = await this.#spill.append(bytes);
  }

  /** All values, when the stream has ended. */
  async finish(): Promise<StoredValue[]> {
    await this.drain();
    if (this.#current || this.#prefixBytes > 0) throw new Error("a page ends inside a value");
    return this.#values;
  }

  #begin(byteLength: number): void {
    const wanted = byteLength <= this.#spill.maxBytes;
    const value = { offset: -1, byteLength };
    this.#values.push(value);
    this.#current = { value, bytes: wanted ? new Uint8Array(byteLength) : undefined, filled: 0 };
    this.#prefixBytes = 0;
    if (byteLength === 0) this.#finishValue();
  }

  #finishValue(): void {
    const { value, bytes } = this.#current!;
    if (bytes) this.#complete.push({ value, bytes });
    this.#current = undefined;
  }
}
