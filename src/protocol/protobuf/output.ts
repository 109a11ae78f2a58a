// ForwardBackwardOutput ↔ protobuf. A record holds a run of data whose outputs have the same names, dtypes and trailing shapes;
// each of its fields is one flat array with a byte offset per datum.
import type { Tensor } from "../tensors.ts";
import type { ForwardBackwardOutput } from "../training.ts";
import { bytesOf, doubleEntry, encodeFields, type Field, readDoubleEntry } from "./fields.ts";
import { setEntry } from "./request.ts";
import { dtypes, packed, readValues, valueBytes } from "./tensor.ts";
import { malformed, narrowed, Reader, utf8 } from "./wire.ts";

type Outputs = Record<string, Tensor>;

/** The protobuf body of a forward/backward result. */
export function encodeForwardBackwardOutput(output: ForwardBackwardOutput): Uint8Array {
  const { lossFnOutputType: type, lossFnOutputs, metrics } = output;
  return encodeFields([
    ...(type === "" ? [] : [[1, utf8(type)] as const]),
    ...runsOf(lossFnOutputs).map((run): Field => [2, encodeRun(run)]),
    ...Object.entries(metrics).map(([name, value]): Field => [3, doubleEntry(name, value)]),
  ]);
}

function runsOf(outputs: readonly Outputs[]): Outputs[][] {
  const runs: Outputs[][] = [];
  let signature: string | undefined;
  for (const output of outputs) {
    const own = JSON.stringify(Object.entries(output).map(([name, { dtype, shape }]) => [name, dtype, shape.slice(1)]));
    if (own === signature) runs.at(-1)!.push(output);
    else runs.push([output]);
    signature = own;
  }
  return runs;
}

function encodeRun(run: readonly Outputs[]): Uint8Array {
  const fields = Object.keys(run[0]!).map((name): Field => {
    const column = encodeColumn(run.map((output) => output[name]!));
    return [
      2,
      encodeFields([
        [1, utf8(name)],
        [2, column],
      ]),
    ];
  });
  return encodeFields([...fields, [3, run.length]]);
}

/** The tensors of one name, one after the other. */
function encodeColumn(tensors: readonly Tensor[]): Uint8Array {
  const { dtype, shape } = tensors[0]!;
  const parts = tensors.map(valueBytes);
  const offsets = new BigInt64Array(parts.length + 1);
  for (const [index, part] of parts.entries()) offsets[index + 1] = offsets[index]! + BigInt(part.length);
  return encodeFields([
    [1, Buffer.concat(parts)],
    [2, bytesOf(offsets)],
    [3, dtypes[dtype]],
    ...(shape.length > 1 ? [[4, packed(shape.slice(1))] as const] : []),
  ]);
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
