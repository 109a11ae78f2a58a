// SampleResponse ↔ protobuf.
import { MessageWriter } from "../../core/protobuf.ts";
import { type AnswerForm, promptAnswers, sequenceAnswers } from "../questions.ts";
import type { SampledSequence, SampleResponse } from "../sampling.ts";
import { bytesOf, malformed, Reader } from "./wire.ts";

type Forms = Readonly<Record<string, AnswerForm<unknown>>>;

/** The protobuf body of a sampling result. */
export function encodeSampleResponse(response: SampleResponse): Uint8Array {
  const message = new MessageWriter();
  for (const sequence of response.sequences) message.message(1, sequenceMessage(sequence));
  // In the order of their numbers, as the official SDK writes them.
  const { promptLogprobs, topkPromptLogprobs, ...others } = promptAnswers as Forms;
  addAnswers(message, { promptLogprobs, topkPromptLogprobs } as Forms, response);
  message.count(4, response.promptCacheHitTokens);
  addAnswers(message, others, response);
  return message.finish();
}

function sequenceMessage(sequence: SampledSequence): MessageWriter {
  const { stopReason, tokens, logprobs } = sequence;
  const message = new MessageWriter().count(1, stopReason === "length" ? 1 : 0);
  if (tokens.length > 0) message.bytes(2, bytesOf(tokens));
  if (logprobs) message.bytes(3, bytesOf(logprobs));
  addAnswers(message, sequenceAnswers as Forms, sequence);
  return message;
}

/** Writes the answers that are there. */
function addAnswers(message: MessageWriter, forms: Forms, answers: object): void {
  for (const [name, { field, codec }] of Object.entries(forms)) {
    const value = (answers as Record<string, unknown>)[name];
    if (value !== undefined) message.bytes(field, codec.encode(value));
  }
}

/** Readers that put answers into `target`; one without a value is as good as absent. */
function answerReaders(forms: Forms, reader: Reader, target: object): Record<number, () => void> {
  const readers = Object.entries(forms).map(([name, { field, codec }]) => {
    const read = () => {
      const value = codec.decode(reader);
      if ((value as { length?: number }).length !== 0) (target as Record<string, unknown>)[name] = value;
    };
    return [field, read] as const;
  });
  return Object.fromEntries(readers);
}

/** Reads a sampling result. Throws `protocol/malformed-protobuf` and nothing else. */
export function decodeSampleResponse(bytes: Uint8Array): SampleResponse {
  const reader = new Reader(bytes);
  const response: SampleResponse = { sequences: [], promptCacheHitTokens: 0 };
  reader.fields({
    ...answerReaders(promptAnswers as Forms, reader, response),
    1: () => response.sequences.push(readSequence(reader.message())),
    4: () => (response.promptCacheHitTokens = reader.int32()),
  });
  return response;
}

function readSequence(reader: Reader): SampledSequence {
  const sequence: SampledSequence = { stopReason: "stop", tokens: new Int32Array() };
  reader.fields({
    ...answerReaders(sequenceAnswers as Forms, reader, sequence),
    1: () => {
      const reason = reader.int32();
      if (reason !== 0 && reason !== 1) throw malformed(`stop reason ${reason} is unknown`);
      sequence.stopReason = reason === 1 ? "length" : "stop";
    },
    2: () => (sequence.tokens = reader.int32s()),
    3: () => {
      const logprobs = reader.float32s();
      if (logprobs.length > 0) sequence.logprobs = logprobs;
    },
  });
  return sequence;
}
