// ForwardBackwardRequest ↔ protobuf.
import { MessageWriter, type Part } from "../../core/protobuf.ts";
import { ProtocolError } from "../errors.ts";
import type { Chunk, ChunkSource } from "../model-input.ts";
import type { Datum, DatumSource, ForwardBackwardRequest, ForwardBackwardSource } from "../training.ts";
import { readTensor, tensorMessage } from "./tensor.ts";
import { bytesOf, malformed, numbers, Reader, setEntry } from "./wire.ts";

/** Writes the body of `POST /forward_backward`, one datum at a time, so that a large batch need not be encoded in one go. */
export class ForwardBackwardEncoder {
  /** What `allocate` gave. */
  readonly memory: Uint8Array;
  readonly #data: readonly Part[];
  /** What follows the data. */
  readonly #tail: Part;
  #written = 0;
  #position = 0;

  /** `allocate` gives at least as many bytes as it is asked for. Throws `protocol/not-expressible` for image asset pointers. */
  constructor(
    request: Omit<ForwardBackwardSource, "seqId">,
    allocate: (size: number) => Uint8Array = Buffer.allocUnsafeSlow,
  ) {
    const head = new MessageWriter();
    if (request.modelId !== "") head.string(1, request.modelId);
    this.#data = request.data.map((datum) => new MessageWriter().message(3, datumMessage(datum)));
    this.#tail = settingsOf(request);
    const sizes = [head, ...this.#data, this.#tail].map(({ length }) => length);
    this.memory = allocate(sizes.reduce((sum, size) => sum + size, largestSeqIdSize));
    this.#write(head);
  }

  /** Writes the next datum; false when all are written. Throws `protocol/invalid-message` for a value that is no number of its kind. */
  next(): boolean {
    const datum = this.#data[this.#written++];
    if (datum) this.#write(datum);
    return datum !== undefined;
  }

  /** The finished body. The sequence number stands last, because it may be known last; fields may come in any order. */
  finish(seqId: number): Uint8Array {
    while (this.next());
    this.#write(this.#tail);
    this.#write(new MessageWriter().count(2, seqId));
    return this.memory.subarray(0, this.#position);
  }

  #write(part: Part): void {
    part.writeTo(this.memory, this.#position);
    this.#position += part.length;
  }
}

/** A tag and a varint of 31 bits. */
const largestSeqIdSize = 6;

/** The body of `POST /forward_backward` in one go; see ForwardBackwardEncoder. */
export function encodeForwardBackwardRequest(request: ForwardBackwardSource): Uint8Array {
  return new ForwardBackwardEncoder(request).finish(request.seqId);
}

/** The loss and its settings. Those come in two forms; the newer one (7) also takes text: a message of a double (1) or a string (2). */
function settingsOf({ lossFn, lossFnConfig, forwardOnly }: Omit<ForwardBackwardSource, "seqId" | "data">): Part {
  const message = new MessageWriter();
  if (lossFn !== "") message.string(4, lossFn);
  const entries = Object.entries(lossFnConfig);
  for (const [key, value] of entries)
    if (typeof value === "number") message.message(5, new MessageWriter().string(1, key).double(2, value));
  message.count(6, forwardOnly ? 1 : 0);
  for (const [key, value] of entries) {
    const either = new MessageWriter();
    if (typeof value === "number") either.double(1, value);
    else either.string(2, value);
    message.message(7, new MessageWriter().string(1, key).message(2, either));
  }
  return message;
}

function datumMessage({ modelInput, lossFnInputs }: DatumSource): MessageWriter {
  const message = new MessageWriter();
  for (const chunk of modelInput.chunks) message.message(1, chunkMessage(chunk));
  for (const [name, value] of Object.entries(lossFnInputs))
    message.message(2, new MessageWriter().string(1, name).message(2, tensorMessage(value, name)));
  return message;
}

function chunkMessage(chunk: ChunkSource): MessageWriter {
  const content = new MessageWriter();
  switch (chunk.type) {
    case "encoded_text": {
      const { tokens } = chunk;
      if (tokens.length > 0)
        content.bytes(1, tokens instanceof Int32Array ? bytesOf(tokens) : numbers(tokens, "int32", "tokens"));
      return new MessageWriter().message(1, content);
    }
    case "image":
      content.bytes(1, chunk.data).string(2, chunk.format);
      if (chunk.expectedTokens !== undefined) content.varint(3, chunk.expectedTokens);
      return new MessageWriter().message(2, content);
    case "dmel":
      return new MessageWriter().message(3, content.bytes(1, chunk.dmel));
    case "image_asset_pointer":
      throw new ProtocolError(
        "protocol/not-expressible",
        `An image asset pointer ("${chunk.location}") cannot be used in training data. Send the image itself as an "image" chunk.`,
      );
  }
}

/** Reads the body of `POST /forward_backward`. Throws `protocol/malformed-protobuf` and nothing else. */
export function decodeForwardBackwardRequest(bytes: Uint8Array): ForwardBackwardRequest {
  const reader = new Reader(bytes);
  const data: Datum[] = [];
  // Numbers come twice, in the older and in the newer form; the newer one counts.
  const older: [string, number][] = [];
  const newer: [string, number | string][] = [];
  const request = { modelId: "", seqId: 0, lossFn: "", forwardOnly: false };
  reader.fields({
    1: () => (request.modelId = reader.string()),
    2: () => (request.seqId = reader.int32()),
    3: () => data.push(readDatum(reader.message())),
    4: () => (request.lossFn = reader.string()),
    5: () => older.push(reader.entry(0, (entry) => entry.double())),
    6: () => (request.forwardOnly = reader.bool()),
    7: () => newer.push(reader.entry<number | string>(0, (entry) => readSetting(entry.message()))),
  });
  const lossFnConfig: Record<string, number | string> = {};
  for (const [key, value] of [...older, ...newer]) setEntry(lossFnConfig, key, value);
  return { ...request, data, lossFnConfig };
}

function readSetting(reader: Reader): number | string {
  let value: number | string = 0;
  reader.fields({ 1: () => (value = reader.double()), 2: () => (value = reader.string()) });
  return value;
}

function readDatum(reader: Reader): Datum {
  const datum: Datum = { modelInput: { chunks: [] }, lossFnInputs: {} };
  reader.fields({
    1: () => datum.modelInput.chunks.push(readChunk(reader.message())),
    2: () => {
      const [name, value] = reader.entry(undefined, (entry) => readTensor(entry.message()));
      if (!value) throw malformed(`loss input "${name}" has no tensor`);
      setEntry(datum.lossFnInputs, name, value);
    },
  });
  return datum;
}

function readChunk(reader: Reader): Chunk {
  const found: { chunk?: Chunk } = {};
  reader.fields({
    1: () => (found.chunk = readTextChunk(reader.message())),
    2: () => (found.chunk = readImageChunk(reader.message())),
    3: () => (found.chunk = readDmelChunk(reader.message())),
  });
  if (!found.chunk) throw malformed("a chunk is neither text, nor an image, nor audio");
  return found.chunk;
}

function readTextChunk(reader: Reader): Chunk {
  let tokens = new Int32Array();
  reader.fields({ 1: () => (tokens = reader.int32s()) });
  return { type: "encoded_text", tokens };
}

function readImageChunk(reader: Reader): Chunk {
  const image = { data: new Uint8Array(), format: "" };
  const size: { expectedTokens?: number } = {};
  reader.fields({
    1: () => (image.data = reader.copy()),
    2: () => (image.format = reader.string()),
    3: () => (size.expectedTokens = reader.int32()),
  });
  const { data, format } = image;
  if (format !== "png" && format !== "jpeg") throw malformed(`image format "${format}" is neither png nor jpeg`);
  return { type: "image", data, format, ...size };
}

function readDmelChunk(reader: Reader): Chunk {
  let dmel = new Uint8Array();
  reader.fields({ 1: () => (dmel = reader.copy()) });
  return { type: "dmel", dmel };
}
