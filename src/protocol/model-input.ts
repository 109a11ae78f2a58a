// What a model reads: a sequence of chunks of text tokens, images and audio.
import { z } from "zod";
import { concat } from "../core/arrays.ts";
import { base64Bytes, int32Array } from "./arrays.ts";
import { ProtocolError } from "./errors.ts";
import { fallback, message, optional } from "./message.ts";

const imageFormat = z.enum(["png", "jpeg"]);

const encodedTextChunk = message({
  type: fallback(z.literal("encoded_text"), "encoded_text"),
  tokens: int32Array,
});
const imageChunk = message({
  type: z.literal("image"),
  data: base64Bytes,
  format: imageFormat,
  expected_tokens: optional(z.int().min(0)),
});
const imageAssetPointerChunk = message({
  type: z.literal("image_asset_pointer"),
  location: z.string(),
  format: imageFormat,
  expected_tokens: optional(z.int().min(0)),
});
const dmelChunk = message({ type: z.literal("dmel"), dmel: base64Bytes });

export const chunkSchema = z.union([
  /** Tokens of text. */
  encodedTextChunk,
  /** An image's bytes; `expectedTokens` is how many positions it takes. */
  imageChunk,
  /** An image that the server has. */
  imageAssetPointerChunk,
  /** Audio, as a serialised tensor. */
  dmelChunk,
]);
export const modelInputSchema = message({
  /** Its pieces, in order. */
  chunks: z.array(chunkSchema),
});

/** A piece of a model's input: text tokens, or an image or sound. */
export type Chunk = z.output<typeof chunkSchema>;
/** A chunk whose tokens may also be a plain list. */
export type ChunkSource =
  | Exclude<Chunk, { type: "encoded_text" }>
  | { type: "encoded_text"; tokens: Int32Array | readonly number[] };
/** What a model reads. */
export type ModelInput = z.output<typeof modelInputSchema>;

/** A text-only input. */
export function textInput(tokens: Int32Array): ModelInput {
  return { chunks: [{ type: "encoded_text", tokens }] };
}

/** The tokens of a text-only input, or undefined when it holds anything else. */
export function textTokens(input: ModelInput): Int32Array | undefined {
  const parts: Int32Array[] = [];
  for (const chunk of input.chunks) {
    if (chunk.type !== "encoded_text") return undefined;
    parts.push(chunk.tokens);
  }
  return parts.length === 1 ? parts[0] : concat(Int32Array, parts);
}

/** How many positions the input takes, or undefined when an image does not say. */
export function modelInputLength(input: { chunks: readonly ChunkSource[] }): number | undefined {
  let length = 0;
  for (const chunk of input.chunks) {
    const part = chunkLength(chunk);
    if (part === undefined) return undefined;
    length += part;
  }
  return length;
}

/** Bytes an input counts for, with so many for each token of text. */
export function estimateInputBytes({ chunks }: { chunks: readonly ChunkSource[] }, perToken: number): number {
  let bytes = 0;
  for (const chunk of chunks) {
    if (chunk.type === "encoded_text") bytes += perToken * chunk.tokens.length;
    else if (chunk.type === "image") bytes += chunk.data.length;
    else if (chunk.type === "dmel") bytes += chunk.dmel.length;
    else bytes += chunk.location.length;
  }
  return bytes;
}

function chunkLength(chunk: ChunkSource): number | undefined {
  if (chunk.type === "encoded_text") return chunk.tokens.length;
  return chunk.type === "dmel" ? dmelLength(chunk.dmel) : chunk.expectedTokens;
}

const constantTensorMark = 254;

/** The first dimension of an audio tensor: [mark] dtype ndim dim…, the numbers as varints. */
function dmelLength(bytes: Uint8Array): number {
  let position = bytes[0] === constantTensorMark ? 1 : 0;
  const dtype = bytes[position++];
  if (dtype === undefined || dtype > 7) throw badDmel(`dtype byte ${dtype}`);
  const varint = (): number => {
    let value = 0;
    for (let shift = 0; shift < 35; shift += 7) {
      const byte = bytes[position++];
      if (byte === undefined) throw badDmel("it ends inside its header");
      value += (byte & 0x7f) * 2 ** shift;
      if (byte < 0x80) return value;
    }
    throw badDmel("a dimension is too large");
  };
  if (varint() === 0) throw badDmel("it has no dimensions");
  return varint();
}

function badDmel(reason: string): ProtocolError {
  return new ProtocolError(
    "protocol/invalid-message",
    `An audio (dmel) chunk cannot be read: ${reason}. Send the tensor container that the audio encoder made.`,
  );
}
