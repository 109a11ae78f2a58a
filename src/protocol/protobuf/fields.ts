// Fields of messages that are put together from parts: each kind of value knows its bytes, and a message is a list of fields.
import type { TopkLogprobs } from "../arrays.ts";
import type { Tensor } from "../tensors.ts";
import { readTensor, tensorSize, writeTensor } from "./tensor.ts";
import { blockSize, malformed, type Reader, utf8, varintSize, Writer } from "./wire.ts";

/** How a value travels as a length-delimited field. */
export interface FieldCodec<T> {
  encode(value: T): Uint8Array;
  /** Reads the field that the reader stands at. */
  decode(reader: Reader): T;
}

/** A field: a number, which is left out when it is 0, or bytes. */
export type Field = readonly [field: number, value: number | Uint8Array];

export function encodeFields(fields: readonly Field[]): Uint8Array {
  let size = 0;
  for (const [, value] of fields)
    size += typeof value !== "number" ? blockSize(value.length) : value === 0 ? 0 : 1 + varintSize(value);
  const writer = new Writer(size);
  for (const [field, value] of fields)
    if (typeof value === "number") writer.number(field, value);
    else writer.block(field, value);
  return writer.finish();
}

/** Calls the reader of each field; those without one are passed over. */
export function decodeFields(reader: Reader, readers: Readonly<Record<number, (reader: Reader) => void>>): void {
  while (reader.next()) (readers[reader.field] ?? skip)(reader);
}

const skip = (reader: Reader) => reader.skip();

export const bytesOf = (array: Int32Array | Float32Array | BigInt64Array): Uint8Array =>
  new Uint8Array(array.buffer, array.byteOffset, array.byteLength);

/** An entry of a map<string, double>. */
export function doubleEntry(key: string, value: number): Uint8Array {
  const name = utf8(key);
  const writer = new Writer(blockSize(name.length) + 9);
  writer.block(1, name);
  writer.double(2, value);
  return writer.finish();
}

export function readDoubleEntry(entry: Reader): [key: string, value: number] {
  let key = "";
  let value = 0;
  decodeFields(entry, { 1: (at) => (key = at.string()), 2: (at) => (value = at.double()) });
  return [key, value];
}

/** float32 values, one after the other. */
export const floats: FieldCodec<Float32Array> = { encode: bytesOf, decode: (reader) => reader.float32s() };

export const tensorField: FieldCodec<Tensor> = {
  encode(value) {
    const writer = new Writer(tensorSize(value));
    writeTensor(writer, value, "the tensor");
    return writer.finish();
  },
  decode: (reader) => readTensor(reader.message()),
};

/** A message with one field for each key; all must be there. */
export function recordOf<T extends object>(
  fields: {
    [Key in keyof T]: readonly [field: number, codec: FieldCodec<T[Key]>];
  },
): FieldCodec<T> {
  const entries = Object.entries(fields) as [string, readonly [number, FieldCodec<unknown>]][];
  return {
    encode: (value) =>
      encodeFields(
        entries.map(([key, [field, codec]]) => [field, codec.encode((value as Record<string, unknown>)[key])]),
      ),
    decode(reader) {
      const value: Record<string, unknown> = {};
      const readers = entries.map(([key, [field, codec]]) => [field, (at: Reader) => (value[key] = codec.decode(at))]);
      decodeFields(reader.message(), Object.fromEntries(readers));
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
    return encodeFields([
      [1, bytesOf(tokens)],
      [2, bytesOf(logprobs)],
      [3, k],
      [4, table.length],
    ]);
  },
  decode(reader) {
    let tokens = new Int32Array();
    let logprobs = new Float32Array();
    let [k, rows] = [0, 0];
    decodeFields(reader.message(), {
      1: (at) => (tokens = at.int32s()),
      2: (at) => (logprobs = at.float32s()),
      3: (at) => (k = at.size()),
      4: (at) => (rows = at.size()),
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
