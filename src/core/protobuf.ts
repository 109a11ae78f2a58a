// Just enough of protobuf's wire format to write ONNX models, TensorBoard events, and training requests and results.

/** Content that knows its size and writes itself when it is asked to. */
export interface Part {
  readonly length: number;
  /** Writes `length` bytes. */
  writeTo(target: Uint8Array, offset: number): void;
}

/** Collects the fields of one message. What a field holds is kept by reference until it is written, so that large arrays are copied once. */
export class MessageWriter implements Part {
  readonly #parts: (readonly number[] | Uint8Array | Part)[] = [];
  /** Bytes that follow the parts. */
  #tail: number[] = [];
  #length = 0;

  get length(): number {
    return this.#length;
  }

  varint(field: number, value: number | bigint): this {
    return this.#varint(field << 3).#varint(value);
  }

  /** A number that is left out where it is 0, as proto3 has it. */
  count(field: number, value: number): this {
    return value === 0 ? this : this.varint(field, value);
  }

  float(field: number, value: number): this {
    return this.#varint((field << 3) | 5).append(new Uint8Array(Float32Array.of(value).buffer));
  }

  double(field: number, value: number): this {
    return this.#varint((field << 3) | 1).append(new Uint8Array(Float64Array.of(value).buffer));
  }

  bytes(field: number, value: Uint8Array | Part): this {
    return this.#varint((field << 3) | 2)
      .#varint(value.length)
      .append(value);
  }

  string(field: number, value: string): this {
    return this.bytes(field, Buffer.from(value, "utf8"));
  }

  message(field: number, value: MessageWriter): this {
    return this.bytes(field, value);
  }

  /** Several numbers as one field. */
  packed(field: number, values: readonly number[]): this {
    const content = new MessageWriter();
    for (const value of values) content.#varint(value);
    return this.bytes(field, content);
  }

  /** Adds bytes that are no field of their own. */
  append(content: Uint8Array | Part): this {
    if (this.#tail.length > 0) this.#parts.push(this.#tail);
    this.#tail = [];
    this.#parts.push(content);
    this.#length += content.length;
    return this;
  }

  finish(): Uint8Array {
    const result = new Uint8Array(this.#length);
    this.writeTo(result, 0);
    return result;
  }

  writeTo(target: Uint8Array, offset: number): void {
    let position = offset;
    for (const part of [...this.#parts, this.#tail]) {
      if (part instanceof Uint8Array) target.set(part, position);
      else if ("writeTo" in part) part.writeTo(target, position);
      else for (let index = 0; index < part.length; index++) target[position + index] = part[index]!;
      position += part.length;
    }
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
