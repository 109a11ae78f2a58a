// Training data as callers write them, turned into what is sent: typed arrays, checked, and cut into requests. Batches are large, so
// this runs in slices and lets the event loop turn in between.
import {
  type Datum,
  estimateDatumBytes,
  type ModelInput,
  modelInputLength,
  ProtocolError,
  type Tensor,
  tensor,
  tensorProblem,
  textInput,
} from "../protocol/index.ts";
import { InvalidInputError } from "./errors.ts";
import { yieldToLoop } from "./wait.ts";

/** Token ids. */
export type TokenList = Int32Array | readonly number[];

/**
 * A tensor, or its values alone: then it has one dimension, and a plain list's dtype follows from its key (`target_tokens` int64;
 * `weights`, `advantages`, `logprobs` and clip thresholds float32).
 */
export type TensorInput = Tensor | Float32Array | Int32Array | readonly number[];

/** One training sequence as callers write it; a protocol `Datum` is one too. */
export interface DatumInput {
  modelInput: ModelInput | TokenList;
  lossFnInputs: Readonly<Record<string, TensorInput>>;
}

const listDtypes: Readonly<Record<string, Tensor["dtype"]>> = {
  target_tokens: "int64",
  weights: "float32",
  advantages: "float32",
  logprobs: "float32",
  clip_low_threshold: "float32",
  clip_high_threshold: "float32",
};

/** Work is cut so that one slice takes about this long. */
const sliceMs = 4;

/** Data that go out in one request, with the bytes they count for. */
export interface Batch {
  data: Datum[];
  bytes: number;
}

/** Checks data, converts them, and cuts them into requests of at most `maxData` data and about `maxBytes` bytes. */
export async function prepareBatches(
  inputs: readonly DatumInput[],
  limits: Promise<{ maxData: number; maxBytes: number }>,
): Promise<Batch[]> {
  if (inputs.length === 0)
    throw new InvalidInputError("The batch is empty. Pass at least one datum, or leave the call out.");
  const data: Datum[] = [];
  let started = performance.now();
  for (const [index, input] of inputs.entries()) {
    data.push(toDatum(input, index));
    if (performance.now() - started >= sliceMs) {
      await yieldToLoop();
      started = performance.now();
    }
  }
  const { maxData, maxBytes } = await limits;
  const batches: Batch[] = [];
  let batch: Batch | undefined;
  for (const datum of data) {
    const bytes = estimateDatumBytes(datum);
    if (!batch || batch.data.length >= maxData || batch.bytes + bytes > maxBytes) {
      batch = { data: [], bytes: 0 };
      batches.push(batch);
    }
    batch.data.push(datum);
    batch.bytes += bytes;
  }
  return batches;
}

/** The prompt or model input as the protocol writes it. */
export function toModelInput(input: ModelInput | TokenList, where = "prompt"): ModelInput {
  if (input instanceof Int32Array) return textInput(input);
  return "chunks" in input ? input : textInput(toInt32(input, where));
}

function toDatum(input: DatumInput, index: number): Datum {
  const where = `data[${index}]`;
  const modelInput = toModelInput(input.modelInput, `${where}.modelInput`);
  const length = lengthOf(modelInput, where);
  const lossFnInputs: Record<string, Tensor> = {};
  for (const name in input.lossFnInputs) {
    const value = toTensor(input.lossFnInputs[name]!, name, where);
    const problem = tensorProblem(value);
    if (problem)
      throw new InvalidInputError(`${where}.lossFnInputs.${name} is inconsistent: ${problem}. Correct its shape.`);
    if (length !== undefined && value.shape[0] !== length)
      throw new InvalidInputError(
        `${where}.lossFnInputs.${name} has ${value.shape[0]} positions, but modelInput has ${length}. Position i predicts token i + 1: for a sequence S, the input is S without its last token and targets are S without its first.`,
      );
    lossFnInputs[name] = value;
  }
  return { modelInput, lossFnInputs };
}

function lengthOf(input: ModelInput, where: string): number | undefined {
  try {
    return modelInputLength(input);
  } catch (error) {
    if (!(error instanceof ProtocolError)) throw error;
    throw new InvalidInputError(`${where}.modelInput: ${error.message}`, { cause: error });
  }
}

function toTensor(value: TensorInput, name: string, where: string): Tensor {
  if (value instanceof Float32Array || value instanceof Int32Array) return tensor(value);
  if ("dtype" in value) return value;
  const dtype = listDtypes[name];
  if (!dtype)
    throw new InvalidInputError(
      `${where}.lossFnInputs.${name} is a plain list, whose dtype is known only for ${Object.keys(listDtypes).join(", ")}. Pass a Float32Array or Int32Array.`,
    );
  const place = `${where}.lossFnInputs.${name}`;
  return tensor(dtype === "int64" ? toInt32(value, place) : toFloat32(value, place));
}

function toInt32(list: readonly number[], where: string): Int32Array {
  const array = new Int32Array(list.length);
  for (let index = 0; index < list.length; index++) {
    const value = list[index]!;
    array[index] = value;
    if (array[index] !== value)
      throw new InvalidInputError(`${where}[${index}] is ${String(value)}, not a 32-bit integer. Pass token ids.`);
  }
  return array;
}

function toFloat32(list: readonly number[], where: string): Float32Array {
  const array = new Float32Array(list.length);
  for (let index = 0; index < list.length; index++) {
    const value = list[index]!;
    if (typeof value !== "number")
      throw new InvalidInputError(
        `${where}[${index}] is ${String(value)}, not a number. Nested lists are not tensors.`,
      );
    array[index] = value;
  }
  return array;
}
