// Unpacks a raw Snappy block as it arrives, with a window instead of the whole output in memory. Snappy's own compressor never refers
// back further than 64 KiB; the format would allow more, and a block that does is refused.

/** A block refers back further than the window; it has to be unpacked as a whole. */
export class WindowError extends Error {
  override name = "WindowError";
}

const windowBytes = 1 << 20;

export class SnappyUnpacker {
  readonly #emit: (bytes: Uint8Array) => void;
  /** The window, then output that was not given out yet. */
  readonly #output = new Uint8Array(4 * windowBytes);
  #end = 0;
  #emitted = 0;
  /** Output bytes in all, and how many the block announces. */
  #total = 0;
  #announced: number | undefined;
  #literalLeft = 0;
  /** Bytes of an element that is not complete. */
  #rest: Uint8Array = new Uint8Array(0);

  /** `emit` gets the output in order, in pieces that are valid during the call. */
  constructor(emit: (bytes: Uint8Array) => void) {
    this.#emit = emit;
  }

  push(chunk: Uint8Array): void {
    const input = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    const output = this.#output;
    let at = this.#announced === undefined ? this.#readLength(input) : 0;
    // One loop over local variables: elements are a few bytes each, and calls would cost more than the copying.
    while (at < input.length) {
      if (this.#literalLeft > 0) {
        const taken = Math.min(this.#literalLeft, input.length - at, windowBytes);
        const end = this.#reserve(taken);
        if (taken > 64) output.set(input.subarray(at, at + taken), end);
        else for (let index = 0; index < taken; index++) output[end + index] = input[at + index]!;
        this.#advance(taken);
        this.#literalLeft -= taken;
        at += taken;
        continue;
      }
      const tag = input[at]!;
      const kind = tag & 3;
      const count = tag >> 2;
      if (kind === 0) {
        const extra = count < 60 ? 0 : count - 59;
        if (at + extra >= input.length) break;
        this.#literalLeft = 1 + (extra === 0 ? count : littleEndian(input, at + 1, extra));
        at += 1 + extra;
        continue;
      }
      const bytes = kind === 3 ? 5 : kind + 1;
      if (at + bytes > input.length) break;
      const low = input[at + 1]!;
      let distance = kind === 1 ? ((tag >> 5) << 8) | low : low | (input[at + 2]! << 8);
      if (kind === 3) distance = littleEndian(input, at + 1, 4);
      const length = kind === 1 ? (count & 7) + 4 : count + 1;
      const end = this.#reserve(length);
      if (distance === 0 || distance > this.#total) throw new Error("a Snappy block refers to bytes before its start");
      if (distance > end) throw new WindowError(`a Snappy block refers back ${distance} bytes`);
      // At most 64 bytes; byte by byte, since a copy may overlap itself to repeat a pattern.
      for (let index = end; index < end + length; index++) output[index] = output[index - distance]!;
      this.#advance(length);
      at += bytes;
    }
    this.#rest = Uint8Array.from(input.subarray(at));
  }

  /** Gives out what is left and checks that the block was whole. */
  finish(): void {
    this.#flush();
    if (this.#total !== this.#announced || this.#literalLeft > 0 || this.#rest.length > 0) {
      throw new Error(`a Snappy block of ${this.#announced ?? 0} bytes ends after ${this.#total}`);
    }
  }

  /** The block begins with its unpacked length, seven bits a byte. */
  #readLength(input: Uint8Array): number {
    let length = 0;
    for (let at = 0; at < 5; at++) {
      const byte = input[at];
      // The first chunk is always longer than this, unless the block is.
      if (byte === undefined) break;
      length += (byte & 0x7f) * 2 ** (7 * at);
      if (byte < 0x80) {
        this.#announced = length;
        return at + 1;
      }
    }
    throw new Error("a Snappy block begins with no length");
  }

  /** Makes room for `length` bytes and says where they go; the last window of output stays for copies. */
  #reserve(length: number): number {
    if (this.#end + length > this.#output.length) {
      this.#flush();
      this.#output.copyWithin(0, this.#end - windowBytes, this.#end);
      this.#end = windowBytes;
      this.#emitted = windowBytes;
    }
    return this.#end;
  }

  #advance(length: number): void {
    this.#end += length;
    this.#total += length;
  }

  #flush(): void {
    if (this.#emitted < this.#end) this.#emit(this.#output.subarray(this.#emitted, this.#end));
    this.#emitted = this.#end;
  }
}

function littleEndian(input: Uint8Array, at: number, bytes: number): number {
  let value = 0;
  for (let index = 0; index < bytes; index++) value += input[at + index]! * 2 ** (8 * index);
  return value;
}
