// How the answers to what a sample is asked travel in its result.
import { MessageWriter, type Part } from "../../core/protobuf.ts";
import type { TopkLogprobs } from "../arrays.ts";
import type { Tensor } from "../tensors.ts";
import { readTensor, tensorMessage } from "./tensor.ts";
import { bytesOf, malformed, type Reader } from "./wire.ts";

/** How a value travels as a length-delimited field. */
export interface FieldCodec<T> {
  encode(value: T): Uint8Array | Part;
  /** Reads the field that the reader stands at. */
  decode(reader: Reader): T;
}

/** float32 values, one after the other. */
export const floats: FieldCodec<Float32Array> = { encode: bytesOf, decode: (reader) => reader.float32s() };

export const tensorField: FieldCodec<Tensor> = {
  encode: (value) => tensorMessage(value, "the tensor"),
  decode: (reader) => readTensor(reader.message()),
};

/** A message with one field for each key; all must be there. */
export function recordOf<T extends object>(
  fields: {
    [Key in keyof T]: readonly [field: number, codec: FieldCodec<T[Key]>];
  },
): FieldCodec<T> {
  const entries = Object.entries(fields) as [keyof T & string, readonly [number, FieldCodec<unknown>]][];
  return {
    encode(value) {
      const message = new MessageWriter();
      for (const [key, [field, codec]] of entries) message.bytes(field, codec.encode(value[key]));
      return message;
    },
    decode(reader) {
      const value: Record<string, unknown> = {};
      const inner = reader.message();
      const readers = entries.map(([key, [field, codec]]) => [field, () => (value[key] = codec.decode(inner))]);
      inner.fields(Object.fromEntries(readers));
      for (const [key] of entries) if (!(key in value)) throw malformed(`its "${key}" is missing`);
      return value as T;
    },
  };
}

/** A cell of a top-k table without a value holds token 0 and this logprob. */
const emptyCell = -99999;

/** A table of k columns: tokens, logprobs, k, rows. */
export const topkTable: FieldCodec<TopkLogprobs> = {
  encode(table) {
    const k = table.reduce((most, row) => Math.max(most, row?.length ?? 0), 0);
    const tokens = new Int32Array(table.length * k);
    const logprobs = new Float32Array(table.length * k).fill(emptyCell);
    for (const [index, row] of table.entries())
      for (const [column, [token, logprob]] of (row ?? []).entries()) {
        tokens[index * k + column] = token;
        logprobs[index * k + column] = logprob;
      }
    return new MessageWriter().bytes(1, bytesOf(tokens)).bytes(2, bytesOf(logprobs)).count(3, k).count(4, table.length);
  },
  decode(reader) {
    let tokens = new Int32Array();
    let logprobs = new Float32Array();
    let [k, rows] = [0, 0];
    const table = reader.message();
    table.fields({
      1: () => (tokens = table.int32s()),
      2: () => (logprobs = table.float32s()),
      3: () => (k = table.size()),
      4: () => (rows = table.size()),
    });
    if (tokens.length !== rows * k || logprobs.length !== rows * k)
      throw malformed(`a top-k table of ${rows} × ${k} has ${tokens.length} tokens and ${logprobs.length} logprobs`);
    if (k === 0 && rows > 1_000_000) throw malformed(`an empty top-k table claims ${rows} rows`);
    return Array.from({ length: rows }, (_, row) => {
      const pairs: [number, number][] = [];
      for (let index = row * k; index < (row + 1) * k && logprobs[index] !== emptyCell; index++)
        pairs.push([tokens[index]!, logprobs[index]!]);
      return pairs.length > 0 ? pairs : null;
    });
  },
};
