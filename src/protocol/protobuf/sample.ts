// SampleResponse ↔ protobuf.
import type { SampledSequence, SampleResponse, TopkPromptLogprobs } from "../sampling.ts";
import { blockSize, malformed, Reader, varintSize, Writer } from "./wire.ts";

/** A cell of the top-k table without a value holds token 0 and this logprob. */
const emptyCell = -99999;

const sequenceSize = ({ stopReason, tokens, logprobs }: SampledSequence) =>
  (stopReason === "length" ? 2 : 0) +
  (tokens.length > 0 ? blockSize(tokens.byteLength) : 0) +
  (logprobs ? blockSize(logprobs.byteLength) : 0);

/** The protobuf body of a sampling result. */
export function encodeSampleResponse(response: SampleResponse): Uint8Array {
  const topk = response.topkPromptLogprobs && topkTable(response.topkPromptLogprobs);
  const topkSize = topk
    ? blockSize(topk.tokens.byteLength) + blockSize(topk.logprobs.byteLength) + countSize(topk.k) + countSize(topk.rows)
    : 0;
  let size = countSize(response.promptCacheHitTokens);
  for (const sequence of response.sequences) size += blockSize(sequenceSize(sequence));
  if (response.promptLogprobs) size += blockSize(response.promptLogprobs.byteLength);
  if (topk) size += blockSize(topkSize);

  const writer = new Writer(size);
  for (const sequence of response.sequences) {
    writer.head(1, sequenceSize(sequence));
    writer.number(1, sequence.stopReason === "length" ? 1 : 0);
    if (sequence.tokens.length > 0) writer.array(2, sequence.tokens);
    if (sequence.logprobs) writer.array(3, sequence.logprobs);
  }
  if (response.promptLogprobs) writer.array(2, response.promptLogprobs);
  if (topk) {
    writer.head(3, topkSize);
    writer.array(1, topk.tokens);
    writer.array(2, topk.logprobs);
    writer.number(3, topk.k);
    writer.number(4, topk.rows);
  }
  writer.number(4, response.promptCacheHitTokens);
  return writer.finish();
}

const countSize = (value: number) => (value === 0 ? 0 : 1 + varintSize(value));

function topkTable(table: TopkPromptLogprobs) {
  const rows = table.length;
  const k = table.reduce((most, row) => Math.max(most, row?.length ?? 0), 0);
  const tokens = new Int32Array(rows * k);
  const logprobs = new Float32Array(rows * k).fill(emptyCell);
  for (const [index, row] of table.entries())
    for (const [column, [token, logprob]] of (row ?? []).entries()) {
      tokens[index * k + column] = token;
      logprobs[index * k + column] = logprob;
    }
  return { rows, k, tokens, logprobs };
}

/** Reads a sampling result. Throws `protocol/malformed-protobuf` and nothing else. */
export function decodeSampleResponse(bytes: Uint8Array): SampleResponse {
  const reader = new Reader(bytes);
  const response: SampleResponse = { sequences: [], promptCacheHitTokens: 0 };
  while (reader.next()) {
    if (reader.field === 1) response.sequences.push(readSequence(reader.message()));
    else if (reader.field === 2) {
      const logprobs = reader.float32s();
      if (logprobs.length > 0) response.promptLogprobs = logprobs;
    } else if (reader.field === 3) response.topkPromptLogprobs = readTopk(reader.message());
    else if (reader.field === 4) response.promptCacheHitTokens = reader.int32();
    else reader.skip();
  }
  return response;
}

function readSequence(reader: Reader): SampledSequence {
  const sequence: SampledSequence = { stopReason: "stop", tokens: new Int32Array() };
  while (reader.next()) {
    if (reader.field === 1) {
      const reason = reader.enum();
      if (reason !== 0 && reason !== 1) throw malformed(`stop reason ${reason} is unknown`);
      sequence.stopReason = reason === 1 ? "length" : "stop";
    } else if (reader.field === 2) sequence.tokens = reader.int32s();
    else if (reader.field === 3) {
      const logprobs = reader.float32s();
      if (logprobs.length > 0) sequence.logprobs = logprobs;
    } else reader.skip();
  }
  return sequence;
}

function readTopk(reader: Reader): TopkPromptLogprobs {
  let tokens = new Int32Array();
  let logprobs = new Float32Array();
  let k = 0;
  let rows = 0;
  while (reader.next()) {
    if (reader.field === 1) tokens = reader.int32s();
    else if (reader.field === 2) logprobs = reader.float32s();
    else if (reader.field === 3) k = reader.size();
    else if (reader.field === 4) rows = reader.size();
    else reader.skip();
  }
  if (tokens.length !== rows * k || logprobs.length !== rows * k)
    throw malformed(`a top-k table of ${rows} × ${k} has ${tokens.length} tokens and ${logprobs.length} logprobs`);
  if (k === 0 && rows > 1_000_000) throw malformed(`an empty top-k table claims ${rows} rows`);
  const table: TopkPromptLogprobs = [];
  for (let row = 0; row < rows; row++) {
    const pairs: [number, number][] = [];
    for (let index = row * k; index < (row + 1) * k && logprobs[index] !== emptyCell; index++)
      pairs.push([tokens[index]!, logprobs[index]!]);
    table.push(pairs.length > 0 ? pairs : null);
  }
  return table;
}
