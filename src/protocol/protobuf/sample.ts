// SampleResponse ↔ protobuf.
import type { PromptAltTokens, SampledSequence, SampleResponse, TopkLogprobs } from "../sampling.ts";
import { readTensor, tensorSize, writeTensor } from "./request.ts";
import { blockSize, malformed, Reader, varintSize, Writer } from "./wire.ts";

/** A cell of a top-k table without a value holds token 0 and this logprob. */
const emptyCell = -99999;

interface TopkTable {
  rows: number;
  k: number;
  tokens: Int32Array;
  logprobs: Float32Array;
}

/** The protobuf body of a sampling result. */
export function encodeSampleResponse(response: SampleResponse): Uint8Array {
  const { promptLogprobs, targetPromptLogprobs: targets, promptAltTokens: alternatives } = response;
  const sequences = response.sequences.map((sequence) => ({
    ...sequence,
    topk: topkTable(sequence.topkSampledLogprobs),
  }));
  const topk = topkTable(response.topkPromptLogprobs);
  let size = countSize(response.promptCacheHitTokens);
  for (const sequence of sequences) size += blockSize(sequenceSize(sequence));
  if (promptLogprobs) size += blockSize(promptLogprobs.byteLength);
  if (topk) size += blockSize(topkSize(topk));
  if (targets) size += blockSize(tensorSize(targets));
  if (alternatives) size += blockSize(alternativesSize(alternatives));

  const writer = new Writer(size);
  for (const sequence of sequences) {
    writer.head(1, sequenceSize(sequence));
    writer.number(1, sequence.stopReason === "length" ? 1 : 0);
    if (sequence.tokens.length > 0) writer.array(2, sequence.tokens);
    if (sequence.logprobs) writer.array(3, sequence.logprobs);
    if (sequence.topk) writeTopk(writer, 4, sequence.topk);
  }
  if (promptLogprobs) writer.array(2, promptLogprobs);
  if (topk) writeTopk(writer, 3, topk);
  writer.number(4, response.promptCacheHitTokens);
  if (targets) {
    writer.head(5, tensorSize(targets));
    writeTensor(writer, targets, "target_prompt_logprobs");
  }
  if (alternatives) {
    writer.head(6, alternativesSize(alternatives));
    for (const [field, value] of [alternatives.tokens, alternatives.logprobs].entries()) {
      writer.head(field + 1, tensorSize(value));
      writeTensor(writer, value, "prompt_alt_tokens");
    }
  }
  return writer.finish();
}

const countSize = (value: number) => (value === 0 ? 0 : 1 + varintSize(value));

const sequenceSize = ({ stopReason, tokens, logprobs, topk }: SampledSequence & { topk: TopkTable | undefined }) =>
  (stopReason === "length" ? 2 : 0) +
  (tokens.length > 0 ? blockSize(tokens.byteLength) : 0) +
  (logprobs ? blockSize(logprobs.byteLength) : 0) +
  (topk ? blockSize(topkSize(topk)) : 0);

const alternativesSize = ({ tokens, logprobs }: PromptAltTokens) =>
  blockSize(tensorSize(tokens)) + blockSize(tensorSize(logprobs));

const topkSize = ({ tokens, logprobs, k, rows }: TopkTable) =>
  blockSize(tokens.byteLength) + blockSize(logprobs.byteLength) + countSize(k) + countSize(rows);

function writeTopk(writer: Writer, field: number, table: TopkTable): void {
  writer.head(field, topkSize(table));
  writer.array(1, table.tokens);
  writer.array(2, table.logprobs);
  writer.number(3, table.k);
  writer.number(4, table.rows);
}

function topkTable(table: TopkLogprobs | undefined): TopkTable | undefined {
  if (!table) return undefined;
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
    else if (reader.field === 5) response.targetPromptLogprobs = readTensor(reader.message());
    else if (reader.field === 6) response.promptAltTokens = readAlternatives(reader.message());
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
    } else if (reader.field === 4) sequence.topkSampledLogprobs = readTopk(reader.message());
    else reader.skip();
  }
  return sequence;
}

function readAlternatives(reader: Reader): PromptAltTokens {
  const parts: Partial<PromptAltTokens> = {};
  while (reader.next()) {
    if (reader.field === 1) parts.tokens = readTensor(reader.message());
    else if (reader.field === 2) parts.logprobs = readTensor(reader.message());
    else reader.skip();
  }
  if (!parts.tokens || !parts.logprobs) throw malformed("alternative tokens come without their logprobs");
  return { tokens: parts.tokens, logprobs: parts.logprobs };
}

function readTopk(reader: Reader): TopkLogprobs {
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
  const table: TopkLogprobs = [];
  for (let row = 0; row < rows; row++) {
    const pairs: [number, number][] = [];
    for (let index = row * k; index < (row + 1) * k && logprobs[index] !== emptyCell; index++)
      pairs.push([tokens[index]!, logprobs[index]!]);
    table.push(pairs.length > 0 ? pairs : null);
  }
  return table;
}
