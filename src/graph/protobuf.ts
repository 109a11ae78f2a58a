// Just enough of protobuf's wire format to write ONNX models: varints, length-delimited fields, little-endian floats.

/** Collects the fields of one message. Byte fields are kept by reference until `finish`, so weights are copied once. */
export class MessageWriter {
  readonly #parts: Uint8Array[] = [];
  #length = 0;

  varint(field: number, value: number | bigint): this {
    return this.#push(encodeVarint(field << 3)).#push(encodeVarint(value));
  }

  float(field: number, value: number): this {
    const bytes = new Uint8Array(4);
    new DataView(bytes.buffer).setFloat32(0, value, true);
    return this.#push(encodeVarint((field << 3) | 5)).#push(bytes);
  }

  bytes(field: number, value: Uint8Array): this {
    return this.#push(encodeVarint((field << 3) | 2))
      .#push(encodeVarint(value.length))
      .#push(value);
  }

  string(field: number, value: string): this {
    return this.bytes(field, Buffer.from(value, "utf8"));
  }

  message(field: number, value: MessageWriter): this {
    this.#push(encodeVarint((field << 3) | 2)).#push(encodeVarint(value.#length));
    for (const part of value.#parts) this.#push(part);
    return this;
  }

  finish(): Uint8Array {
    const result = new Uint8Array(this.#length);
    let offset = 0;
    for (const part of this.#parts) {
      result.set(part, offset);
      offset += part.length;
    }
    return result;
  }

  #push(bytes: Uint8Array): this {
    this.#parts.push(bytes);
    this.#length += bytes.length;
    return this;
  }
}

/** Negative numbers take ten bytes, as 64-bit two's complement. */
function encodeVarint(value: number | bigint): Uint8Array {
  let rest = BigInt.asUintN(64, BigInt(value));
  const bytes: number[] = [];
  while (rest >= 0x80n) {
    bytes.push(Number(rest & 0x7fn) | 0x80);
    rest >>= 7n;
  }
  bytes.push(Number(rest));
  return Uint8Array.from(bytes);
}
