// Memory for large request bodies, used again. Fresh memory of this size costs a page fault per 4 KiB, which is more than encoding
// the data into it.

/** As much as may be in flight at once by the protocol's default. */
const keptBytesLimit = 50_000_000;
const idleMs = 60_000;
const granularity = 1 << 18;

export class BytesPool {
  #kept: Uint8Array[] = [];
  #keptBytes = 0;
  #timer: NodeJS.Timeout | undefined;

  /** At least `size` bytes, with any content. */
  take(size: number): Uint8Array {
    const index = this.#kept.findIndex((bytes) => bytes.length >= size && bytes.length <= 2 * size + granularity);
    if (index < 0) return Buffer.allocUnsafeSlow(Math.ceil(size / granularity) * granularity);
    const [bytes] = this.#kept.splice(index, 1);
    this.#keptBytes -= bytes!.length;
    return bytes!;
  }

  /** Takes back what nobody reads any more. It is given up when there is too much, and after a minute without use. */
  give(bytes: Uint8Array): void {
    if (this.#keptBytes + bytes.length > keptBytesLimit) return;
    this.#kept.push(bytes);
    this.#keptBytes += bytes.length;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.clear(), idleMs).unref();
  }

  clear(): void {
    clearTimeout(this.#timer);
    this.#kept = [];
    this.#keptBytes = 0;
  }
}
