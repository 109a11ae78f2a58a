// ForwardBackwardOutput ↔ protobuf. A record holds a run of data whose outputs have the same names, dtypes and trailing shapes;
// each of its fields is one flat array with a byte offset per datum.
import type { Tensor } from "../tensors.ts";
import type { ForwardBackwardOutput } from "../training.ts";
import {
  doubleEntrySize,
  dtypes,
  packedSize,
  readDoubleEntry,
  readValues,
  setEntry,
  writeDoubleEntry,
  writePacked,
} from "./request.ts";
import { blockSize, malformed, narrowed, Reader, utf8, varintSize, Writer } from "./wire.ts";

type Outputs = Record<string, Tensor>;

interface BatchField {
  name: string;
  dtype: Tensor["dtype"];
  trailingShape: readonly number[];
  tensors: Tensor[];
  byteLength: number;
}

interface Batch {
  count: number;
  signature: string;
  fields: BatchField[];
}

const itemSize = (dtype: Tensor["dtype"]) => (dtype === "int64" ? 8 : 4);

function batchesOf(outputs: readonly Outputs[]): Batch[] {
  const batches: Batch[] = [];
  for (const output of outputs) {
    const entries = Object.entries(output);
    const signature = JSON.stringify(entries.map(([name, value]) => [name, value.dtype, value.shape.slice(1)]));
    let batch = batches.at(-1);
    if (batch?.signature !== signature) {
      const fields = entries.map(
        ([name, { dtype, shape }]): BatchField => ({
          name,
          dtype,
          trailingShape: shape.slice(1),
          tensors: [],
          byteLength: 0,
        }),
      );
      batch = { count: 0, signature, fields };
      batches.push(batch);
    }
    batch.count++;
    for (const [index, [, value]] of entries.entries()) {
      const field = batch.fields[index]!;
      field.tensors.push(value);
      field.byteLength += value.data.length * itemSize(value.dtype);
    }
  }
  return batches;
}

const fieldSize = (field: BatchField, count: number) =>
  blockSize(field.byteLength) + blockSize(8 * (count + 1)) + 2 + packedSize(field.trailingShape);

const fieldEntrySize = (field: BatchField, count: number) =>
  blockSize(utf8(field.name).length) + blockSize(fieldSize(field, count));

function batchSize(batch: Batch): number {
  let size = 1 + varintSize(batch.count);
  for (const field of batch.fields) size += blockSize(fieldEntrySize(field, batch.count));
  return size;
}

/** The protobuf body of a forward/backward result. */
export function encodeForwardBackwardOutput(output: ForwardBackwardOutput): Uint8Array {
  const type = utf8(output.lossFnOutputType);
  const batches = batchesOf(output.lossFnOutputs);
  const metrics = Object.entries(output.metrics);
  let size = type.length > 0 ? blockSize(type.length) : 0;
  for (const batch of batches) size += blockSize(batchSize(batch));
  for (const [name] of metrics) size += blockSize(doubleEntrySize(name));

  const writer = new Writer(size);
  if (type.length > 0) writer.block(1, type);
  for (const batch of batches) writeBatch(writer, batch);
  for (const [name, value] of metrics) writeDoubleEntry(writer, 3, name, value);
  return writer.finish();
}

function writeBatch(writer: Writer, batch: Batch): void {
  writer.head(2, batchSize(batch));
  for (const field of batch.fields) {
    writer.head(2, fieldEntrySize(field, batch.count));
    writer.block(1, utf8(field.name));
    writer.head(2, fieldSize(field, batch.count));
    const offsets = new BigInt64Array(batch.count + 1);
    let offset = 0;
    writer.head(1, field.byteLength);
    for (const [index, { data, dtype }] of field.tensors.entries()) {
      if (data instanceof Int32Array) writer.rawInt64s(data);
      else writer.raw(new Uint8Array(data.buffer, data.byteOffset, data.byteLength));
      offset += data.length * itemSize(dtype);
      offsets[index + 1] = BigInt(offset);
    }
    writer.array(2, offsets);
    writer.number(3, dtypes[field.dtype]);
    writePacked(writer, 4, field.trailingShape);
  }
  writer.number(3, batch.count);
}

/** Reads a forward/backward result. Throws `protocol/malformed-protobuf` and nothing else. */
export function decodeForwardBackwardOutput(bytes: Uint8Array): ForwardBackwardOutput {
  const reader = new Reader(bytes);
  const output: ForwardBackwardOutput = { lossFnOutputType: "", lossFnOutputs: [], metrics: {} };
  while (reader.next()) {
    // A qualified type such as "package.module:Name" is read as "Name".
    if (reader.field === 1) output.lossFnOutputType = reader.string().split(":").at(-1)!;
    else if (reader.field === 2) readRecord(reader.message(), output.lossFnOutputs);
    else if (reader.field === 3) setEntry(output.metrics, ...readDoubleEntry(reader.message()));
    else reader.skip();
  }
  return output;
}

function readRecord(reader: Reader, outputs: Outputs[]): void {
  const fields: [name: string, tensors: Tensor[]][] = [];
  let count = 0;
  while (reader.next()) {
    if (reader.field === 2) fields.push(readFieldEntry(reader.message()));
    else if (reader.field === 3) count = reader.size();
    else reader.skip();
  }
  if (count === 0) count = fields[0]?.[1].length ?? 0;
  for (const [name, tensors] of fields)
    if (tensors.length !== count) throw malformed(`output "${name}" has ${tensors.length} entries for ${count} data`);
  // A record without fields says nothing but its count, which no message of a sane size could hold as objects.
  if (fields.length === 0 && count > 1_000_000) throw malformed(`a record without outputs claims ${count} data`);
  for (let index = 0; index < count; index++) {
    const output: Outputs = {};
    for (const [name, tensors] of fields) setEntry(output, name, tensors[index]!);
    outputs.push(output);
  }
}

function readFieldEntry(reader: Reader): [name: string, tensors: Tensor[]] {
  let name = "";
  let tensors: Tensor[] = [];
  while (reader.next()) {
    if (reader.field === 1) name = reader.string();
    else if (reader.field === 2) tensors = readBatchedTensor(reader.message());
    else reader.skip();
  }
  return [name, tensors];
}

function readBatchedTensor(reader: Reader): Tensor[] {
  let data = new Uint8Array();
  let offsets = new Int32Array();
  let dtype = 0;
  const trailingShape: number[] = [];
  while (reader.next()) {
    if (reader.field === 1) data = reader.aligned(1);
    else if (reader.field === 2) {
      const values = narrowed(reader.aligned(8));
      if (values instanceof BigInt64Array) throw malformed("an offset lies beyond its data");
      offsets = values;
    } else if (reader.field === 3) dtype = reader.enum();
    else if (reader.field === 4) reader.sizes(trailingShape);
    else reader.skip();
  }
  const rowLength = trailingShape.reduce((product, size) => product * size, 1);
  const wireItemSize = dtype === dtypes.int64 ? 8 : dtype === dtypes.bfloat16 ? 2 : 4;
  const values = readValues(data, dtype);
  const tensors: Tensor[] = [];
  for (let index = 0; index + 1 < offsets.length; index++) {
    const start = offsets[index]!;
    const end = offsets[index + 1]!;
    if (start < 0 || end < start || end > data.length || start % wireItemSize !== 0 || end % wireItemSize !== 0)
      throw malformed(`offsets ${start} to ${end} do not fit ${data.length} bytes of data`);
    const count = (end - start) / wireItemSize;
    if (rowLength === 0 ? count !== 0 : count % rowLength !== 0)
      throw malformed(`${count} values do not fill rows of shape [${trailingShape}]`);
    tensors.push({
      dtype: values.dtype,
      data: values.data.subarray(start / wireItemSize, end / wireItemSize),
      shape: [rowLength === 0 ? 0 : count / rowLength, ...trailingShape],
    });
  }
  return tensors;
}
