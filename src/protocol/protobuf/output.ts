// ForwardBackwardOutput ↔ protobuf. A record holds a run of data whose outputs have the same names, dtypes and trailing shapes;
// each of its fields is one flat array with a byte offset per datum.
import { elementCount } from "../../core/arrays.ts";
import { MessageWriter } from "../../core/protobuf.ts";
import type { Tensor } from "../tensors.ts";
import type { ForwardBackwardOutput } from "../training.ts";
import { dtypes, itemSizeOf, readIndices, readValues, valuesOf } from "./tensor.ts";
import { bytesOf, malformed, Reader, setEntry } from "./wire.ts";

type Outputs = Record<string, Tensor>;

/** The protobuf body of a forward/backward result. */
export function encodeForwardBackwardOutput({
  lossFnOutputType,
  lossFnOutputs,
  metrics,
}: ForwardBackwardOutput): Uint8Array {
  const message = new MessageWriter();
  if (lossFnOutputType !== "") message.string(1, lossFnOutputType);
  for (const run of runsOf(lossFnOutputs)) message.message(2, runMessage(run));
  for (const [name, value] of Object.entries(metrics))
    message.message(3, new MessageWriter().string(1, name).double(2, value));
  return message.finish();
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

function runMessage(run: readonly Outputs[]): MessageWriter {
  const message = new MessageWriter();
  for (const name of Object.keys(run[0]!)) {
    const column = columnMessage(run.map((output) => output[name]!));
    message.message(2, new MessageWriter().string(1, name).message(2, column));
  }
  return message.varint(3, run.length);
}

/** The tensors of one name, one after the other. */
function columnMessage(tensors: readonly Tensor[]): MessageWriter {
  const { dtype, shape } = tensors[0]!;
  const values = new MessageWriter();
  const offsets = [0n];
  for (const tensor of tensors) {
    values.append(valuesOf(tensor, "the tensor"));
    offsets.push(BigInt(values.length));
  }
  const message = new MessageWriter().bytes(1, values).bytes(2, bytesOf(BigInt64Array.from(offsets)));
  message.varint(3, dtypes[dtype]);
  return shape.length > 1 ? message.packed(4, shape.slice(1)) : message;
}

/** Reads a forward/backward result. Throws `protocol/malformed-protobuf` and nothing else. */
export function decodeForwardBackwardOutput(bytes: Uint8Array): ForwardBackwardOutput {
  const reader = new Reader(bytes);
  const output: ForwardBackwardOutput = { lossFnOutputType: "", lossFnOutputs: [], metrics: {} };
  reader.fields({
    // A qualified type such as "package.module:Name" is read as "Name".
    1: () => (output.lossFnOutputType = reader.string().split(":").at(-1)!),
    2: () => readRecord(reader.message(), output.lossFnOutputs),
    3: () => setEntry(output.metrics, ...reader.entry(0, (entry) => entry.double())),
  });
  return output;
}

function readRecord(reader: Reader, outputs: Outputs[]): void {
  const fields: [name: string, tensors: Tensor[]][] = [];
  let count = 0;
  reader.fields({
    2: () => fields.push(reader.entry([], (entry) => readBatchedTensor(entry.message()))),
    3: () => (count = reader.size()),
  });
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

function readBatchedTensor(reader: Reader): Tensor[] {
  let data = new Uint8Array();
  let offsets = new Int32Array();
  let dtype = 0;
  const trailingShape: number[] = [];
  reader.fields({
    1: () => (data = reader.copy()),
    2: () => (offsets = readIndices(reader, "an offset lies beyond its data")),
    3: () => (dtype = reader.int32()),
    4: () => reader.sizes(trailingShape),
  });
  const rowLength = elementCount(trailingShape);
  const itemSize = itemSizeOf(dtype);
  const values = readValues(data, dtype);
  const tensors: Tensor[] = [];
  for (let index = 0; index + 1 < offsets.length; index++) {
    const start = offsets[index]!;
    const end = offsets[index + 1]!;
    if (start < 0 || end < start || end > data.length || start % itemSize !== 0 || end % itemSize !== 0)
      throw malformed(`offsets ${start} to ${end} do not fit ${data.length} bytes of data`);
    const count = (end - start) / itemSize;
    if (rowLength === 0 ? count !== 0 : count % rowLength !== 0)
      throw malformed(`${count} values do not fill rows of shape [${trailingShape}]`);
    tensors.push({
      dtype: values.dtype,
      data: values.data.subarray(start / itemSize, end / itemSize),
      shape: [rowLength === 0 ? 0 : count / rowLength, ...trailingShape],
    });
  }
  return tensors;
}
