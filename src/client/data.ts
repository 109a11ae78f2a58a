// Training data as callers write them, checked, cut into requests and encoded. Batches are large, so this runs in slices and lets
// the event loop turn in between; numbers go from the caller's lists and arrays straight into the request's bytes. A request of typed
// arrays, in which nothing can be wrong any more, is written when it may be sent: a large batch is never in memory a second time.
import { turnTaker } from "../core/turns.ts";
import {
  type DatumSource,
  estimateDatumBytes,
  ForwardBackwardEncoder,
  inputDtypes,
  type ModelInput,
  modelInputLength,
  ProtocolError,
  type Tensor,
  type TensorSource,
  tensor,
  tensorProblem,
  textInput,
} from "../protocol/index.ts";
import type { BytesPool } from "./bytes-pool.ts";
import { InvalidInputError } from "./errors.ts";

/** Token ids. */
export type TokenList = Int32Array | readonly number[];

/**
 * A tensor, or its values alone: then it has one dimension, and a plain list's dtype follows from its key (`target_tokens` int64;
 * `weights`, `advantages`, `logprobs` and clip thresholds float32).
 */
export type TensorInput = Tensor | Float32Array | Int32Array | readonly number[];

/** One training sequence as callers write it; a protocol `Datum` is one too. */
export interface DatumInput {
  /** What the model reads: token ids, or chunks. */
  modelInput: ModelInput | TokenList;
  /** Arrays that the loss wants, by name, such as `target_tokens` and `weights`. */
  lossFnInputs: Readonly<Record<string, TensorInput>>;
}

/** Work is cut so that one slice takes about this long. */
const turnMs = 4;

/** Checks data, cuts them into requests of at most `maxData` data and about `maxBytes` bytes, and encodes those. */
export async function encodeBatches(
  inputs: readonly DatumInput[],
  limits: { maxData: number; maxBytes: number },
  settings: Omit<BatchRequest, "data">,
  pool: BytesPool,
): Promise<EncodedBatch[]> {
  if (inputs.length === 0)
    throw new InvalidInputError("The batch is empty. Pass at least one datum, or leave the call out.");
  const batches: EncodedBatch[] = [];
  let first = 0;
  for (const { data, bytes } of cut(inputs.map(toDatum), limits)) {
    const batch = new EncodedBatch({ ...settings, data }, bytes, first, pool);
    if (!data.every(isTyped)) await batch.write();
    batches.push(batch);
    first += data.length;
  }
  return batches;
}

type BatchRequest = ConstructorParameters<typeof ForwardBackwardEncoder>[0];

/** A request of a batch, checked; written in slices. */
export class EncodedBatch {
  /** What it counts for against the limit on bytes being submitted. */
  readonly bytes: number;
  readonly #request: BatchRequest;
  /** The first datum's place in the caller's list. */
  readonly #first: number;
  readonly #pool: BytesPool;
  #encoder: ForwardBackwardEncoder | undefined;

  constructor(request: BatchRequest, bytes: number, first: number, pool: BytesPool) {
    this.#request = request;
    this.bytes = bytes;
    this.#first = first;
    this.#pool = pool;
  }

  async write(): Promise<ForwardBackwardEncoder> {
    if (this.#encoder) return this.#encoder;
    const encoder = new ForwardBackwardEncoder(this.#request, (size) => this.#pool.take(size));
    const takeTurns = turnTaker(turnMs);
    for (const index of this.#request.data.keys()) {
      encodeNext(encoder, this.#first + index);
      await takeTurns();
    }
    this.#encoder = encoder;
    return encoder;
  }

  /** The whole body; to be asked for when it may be sent. */
  async finish(seqId: number): Promise<Uint8Array> {
    return (await this.write()).finish(seqId);
  }

  /** Its memory may be used again: the body was read to its end. */
  release(): void {
    if (this.#encoder) this.#pool.give(this.#encoder.memory);
    this.#encoder = undefined;
  }
}

/** Whether all of a datum is arrays of numbers: then writing it cannot fail. */
function isTyped({ modelInput, lossFnInputs }: DatumSource): boolean {
  return (
    modelInput.chunks.every((chunk) => "tokens" in chunk && chunk.tokens instanceof Int32Array) &&
    Object.values(lossFnInputs).every(({ data }) => !Array.isArray(data))
  );
}

function encodeNext(encoder: ForwardBackwardEncoder, index: number): void {
  try {
    encoder.next();
  } catch (error) {
    if (!(error instanceof ProtocolError)) throw error;
    throw new InvalidInputError(`data[${index}]: ${error.message}`, { cause: error });
  }
}

function* cut(data: readonly DatumSource[], { maxData, maxBytes }: { maxData: number; maxBytes: number }) {
  let batch: { data: DatumSource[]; bytes: number } = { data: [], bytes: 0 };
  for (const datum of data) {
    const bytes = estimateDatumBytes(datum);
    if (batch.data.length >= maxData || (batch.data.length > 0 && batch.bytes + bytes > maxBytes)) {
      yield batch;
      batch = { data: [], bytes: 0 };
    }
    batch.data.push(datum);
    batch.bytes += bytes;
  }
  yield batch;
}

/** A prompt as the protocol writes it. */
export function toModelInput(input: ModelInput | TokenList): ModelInput {
  if (input instanceof Int32Array) return textInput(input);
  if ("chunks" in input) return input;
  const tokens = new Int32Array(input);
  const bad = input.findIndex((token, index) => tokens[index] !== token);
  if (bad < 0) return textInput(tokens);
  throw new InvalidInputError(`prompt[${bad}] is ${String(input[bad])}, not a 32-bit integer. Pass token ids.`);
}

/** Checks everything but the values of plain lists, which are checked when they are written. */
function toDatum(input: DatumInput, index: number): DatumSource {
  const where = `data[${index}]`;
  const modelInput: DatumSource["modelInput"] =
    "chunks" in input.modelInput ? input.modelInput : { chunks: [{ type: "encoded_text", tokens: input.modelInput }] };
  const length = lengthOf(modelInput, where);
  const lossFnInputs: Record<string, TensorSource> = {};
  for (const name in input.lossFnInputs) {
    const value = toTensor(input.lossFnInputs[name]!, name, where);
    const problem = Array.isArray(value.data) ? undefined : tensorProblem(value as Tensor);
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

function lengthOf(input: DatumSource["modelInput"], where: string): number | undefined {
  try {
    return modelInputLength(input);
  } catch (error) {
    if (!(error instanceof ProtocolError)) throw error;
    throw new InvalidInputError(`${where}.modelInput: ${error.message}`, { cause: error });
  }
}

function toTensor(value: TensorInput, name: string, where: string): TensorSource {
  if (value instanceof Float32Array || value instanceof Int32Array) return tensor(value);
  if ("dtype" in value) return value;
  const dtype = inputDtypes[name];
  if (dtype) return { dtype, data: value, shape: [value.length] };
  throw new InvalidInputError(
    `${where}.lossFnInputs.${name} is a plain list, whose dtype is known only for ${Object.keys(inputDtypes).join(", ")}. Pass a Float32Array or Int32Array.`,
  );
}
