// SampleResponse ↔ protobuf.
import { type AnswerForm, promptAnswers, sequenceAnswers } from "../questions.ts";
import type { SampledSequence, SampleResponse } from "../sampling.ts";
import { bytesOf, decodeFields, encodeFields, type Field } from "./fields.ts";
import { malformed, Reader } from "./wire.ts";

type Forms = Readonly<Record<string, AnswerForm<unknown>>>;

/** The protobuf body of a sampling result. */
export function encodeSampleResponse(response: SampleResponse): Uint8Array {
  const sequences = response.sequences.map((sequence): Field => [1, encodeSequence(sequence)]);
  const count: Field = [4, response.promptCacheHitTokens];
  return encodeFields([...sequences, ...[count, ...answerFields(promptAnswers as Forms, response)].sort(byNumber)]);
}

function encodeSequence(sequence: SampledSequence): Uint8Array {
  const { stopReason, tokens, logprobs } = sequence;
  const fields: Field[] = [[1, stopReason === "length" ? 1 : 0]];
  if (tokens.length > 0) fields.push([2, bytesOf(tokens)]);
  if (logprobs) fields.push([3, bytesOf(logprobs)]);
  return encodeFields([...fields, ...answerFields(sequenceAnswers as Forms, sequence)]);
}

const byNumber = (a: Field, b: Field) => a[0] - b[0];

/** The fields of the answers that are there. */
function answerFields(forms: Forms, answers: object): Field[] {
  return Object.entries(forms).flatMap(([name, { field, codec }]): Field[] => {
    const value = (answers as Record<string, unknown>)[name];
    return value === undefined ? [] : [[field, codec.encode(value)]];
  });
}

/** Readers that put answers into `target`; one without a value is as good as absent. */
function answerReaders(forms: Forms, target: object): Record<number, (reader: Reader) => void> {
  const readers = Object.entries(forms).map(([name, { field, codec }]) => {
    const read = (reader: Reader) => {
      const value = codec.decode(reader);
      if ((value as { length?: number }).length !== 0) (target as Record<string, unknown>)[name] = value;
    };
    return [field, read] as const;
  });
  return Object.fromEntries(readers);
}

/** Reads a sampling result. Throws `protocol/malformed-protobuf` and nothing else. */
export function decodeSampleResponse(bytes: Uint8Array): SampleResponse {
  const response: SampleResponse = { sequences: [], promptCacheHitTokens: 0 };
  decodeFields(new Reader(bytes), {
    ...answerReaders(promptAnswers as Forms, response),
    1: (reader) => response.sequences.push(readSequence(reader.message())),
    4: (reader) => (response.promptCacheHitTokens = reader.int32()),
  });
  return response;
}

function readSequence(reader: Reader): SampledSequence {
  const sequence: SampledSequence = { stopReason: "stop", tokens: new Int32Array() };
  decodeFields(reader, {
    ...answerReaders(sequenceAnswers as Forms, sequence),
    1: (at) => {
      const reason = at.enum();
      if (reason !== 0 && reason !== 1) throw malformed(`stop reason ${reason} is unknown`);
      sequence.stopReason = reason === 1 ? "length" : "stop";
    },
    2: (at) => (sequence.tokens = at.int32s()),
    3: (at) => {
      const logprobs = at.float32s();
      if (logprobs.length > 0) sequence.logprobs = logprobs;
    },
  });
  return sequence;
}
