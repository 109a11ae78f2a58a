// Just enough of protobuf's wire format to write messages made of parts, such as ONNX models and TensorBoard events. Training requests,
// whose size is known and whose arrays are large, are written by src/protocol/protobuf.

/**
 * Collects the fields of one message. Byte fields and messages inside are kept by reference until `finish`, so weights are copied once.
 */
export class MessageWriter {
  readonly #parts: (Uint8Array | MessageWriter)[] = [];
  /** Bytes that follow the parts. */
  #tail: number[] = [];
  #length = 0;

  varint(field: number, value: number | bigint): this {
    return this.#varint(field << 3).#varint(value);
  }

  float(field: number, value: number): this {
    const bytes = new Uint8Array(4);
    new DataView(bytes.buffer).setFloat32(0, value, true);
    return this.#varint((field << 3) | 5).#push(bytes, 4);
  }

  double(field: number, value: number): this {
    const bytes = new Uint8Array(8);
    new DataView(bytes.buffer).setFloat64(0, value, true);
    return this.#varint((field << 3) | 1).#push(bytes, 8);
  }

  bytes(field: number, value: Uint8Array): this {
    return this.#varint((field << 3) | 2)
      .#varint(value.length)
      .#push(value, value.length);
  }

  string(field: number, value: string): this {
    return this.bytes(field, Buffer.from(value, "utf8"));
  }

  message(field: number, value: MessageWriter): this {
    return this.#varint((field << 3) | 2)
      .#varint(value.#length)
      .#push(value, value.#length);
  }

  finish(): Uint8Array {
    const result = new Uint8Array(this.#length);
    this.#writeTo(result, 0);
    return result;
  }

  #writeTo(result: Uint8Array, start: number): void {
    let offset = start;
    for (const part of this.#parts) {
      if (part instanceof MessageWriter) {
        part.#writeTo(result, offset);
        offset += part.#length;
      } else {
        result.set(part, offset);
        offset += part.length;
      }
    }
    result.set(this.#tail, offset);
  }

  #push(part: Uint8Array | MessageWriter, length: number): this {
    if (this.#tail.length > 0) this.#parts.push(Uint8Array.from(this.#tail));
    this.#tail = [];
    this.#parts.push(part);
    this.#length += length;
    return this;
  }

  /** Negative numbers take ten bytes, as 64-bit two's complement. */
  #varint(value: number | bigint): this {
    const before = this.#tail.length;
    if (typeof value === "number" && value >= 0 && value < 2 ** 31) {
      let rest = value;
      for (; rest >= 0x80; rest >>= 7) this.#tail.push((rest & 0x7f) | 0x80);
      this.#tail.push(rest);
    } else {
      let rest = BigInt.asUintN(64, BigInt(value));
      for (; rest >= 0x80n; rest >>= 7n) this.#tail.push(Number(rest & 0x7fn) | 0x80);
      this.#tail.push(Number(rest));
    }
    this.#length += this.#tail.length - before;
    return this;
  }
}
