// Writes safetensors files: the header first, then each tensor's bytes in order, in pieces of any size, so that a file may be larger than
// the memory.
import { closeSync, fsyncSync, openSync } from "node:fs";
import { elementCount } from "../core/arrays.ts";
import { writeAll } from "../core/files.ts";
import type { Weight } from "./architecture.ts";
import { bytesPerElement, type Dtype } from "./safetensors.ts";

/** A tensor to be written. */
export interface TensorSpec {
  name: string;
  dtype: Dtype;
  shape: readonly number[];
}

/** The bytes a tensor takes. */
export const tensorBytes = ({ dtype, shape }: Pick<TensorSpec, "dtype" | "shape">): number =>
  elementCount(shape) * bytesPerElement[dtype];

/** A new file whose tensors are known and whose bytes are still to come, in the order of the tensors. */
export class SafetensorsWriter {
  readonly #descriptor: number;
  #left: number;

  constructor(path: string, tensors: readonly TensorSpec[]) {
    const header: Record<string, unknown> = { __metadata__: { format: "pt" } };
    let offset = 0;
    for (const tensor of tensors) {
      const { name, dtype, shape } = tensor;
      const end = offset + tensorBytes(tensor);
      header[name] = { dtype, shape, data_offsets: [offset, end] };
      offset = end;
    }
    this.#left = offset;
    const json = JSON.stringify(header);
    const text = Buffer.from(json.padEnd(json.length + ((8 - (Buffer.byteLength(json) % 8)) % 8)));
    const length = Buffer.alloc(8);
    length.writeBigUInt64LE(BigInt(text.byteLength));
    this.#descriptor = openSync(path, "wx");
    writeAll(this.#descriptor, length);
    writeAll(this.#descriptor, text);
  }

  /** The next bytes. */
  append(bytes: Uint8Array): void {
    this.#left -= bytes.byteLength;
    if (this.#left < 0) throw new Error("more bytes than the header announced");
    writeAll(this.#descriptor, bytes);
  }

  /** Flushes the file to the disk; every announced byte must have come. */
  finish(): void {
    if (this.#left !== 0) throw new Error(`${this.#left} announced bytes are missing`);
    fsyncSync(this.#descriptor);
  }

  /** Call it however the writing ended. */
  close(): void {
    closeSync(this.#descriptor);
  }
}

/** Writes `tensors` as float32 to a new file and flushes it to the disk. */
export function writeSafetensors(path: string, tensors: ReadonlyMap<string, Weight>): void {
  const specs = [...tensors].map(([name, { shape }]): TensorSpec => ({ name, dtype: "F32", shape }));
  const writer = new SafetensorsWriter(path, specs);
  try {
    for (const { data } of tensors.values())
      writer.append(new Uint8Array(data.buffer, data.byteOffset, data.byteLength));
    writer.finish();
  } finally {
    writer.close();
  }
}
