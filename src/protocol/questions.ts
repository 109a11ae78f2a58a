// What a sample can be asked beside its completions. Each question is declared once: how a request says it, which values make sense,
// and how the answer travels, in JSON and in protobuf. The server checks and answers by these tables, the client takes its options from
// them, and the engine gives every answer its computation (engine/scores.ts).
import { z } from "zod";
import { float32Array, type TopkLogprobs, topkRows } from "./arrays.ts";
import { camel, fallback, message, optional } from "./message.ts";
import { type FieldCodec, floats, recordOf, tensorField, topkTable } from "./protobuf/fields.ts";
import { type Tensor, tensorProblem, tensorSchema } from "./tensors.ts";

/** The fields of a request that ask. */
export const questionFields = {
  /** Also returns the log-probability of every prompt token. */
  prompt_logprobs: fallback(z.boolean(), false),
  /** Also returns the k likeliest tokens at every prompt position. */
  topk_prompt_logprobs: fallback(z.int(), 0),
  /** Also returns the k likeliest tokens at every generated position. */
  topk_sample_logprobs: fallback(z.int(), 0),
  /** int64 [N - 1, K]: row i names tokens to score at prompt position i + 1; -1 is not asked. */
  target_prompt_logprobs: optional(tensorSchema),
  /** Also draws k tokens at every prompt position from the second on. */
  prompt_alt_tokens_k: fallback(z.int(), 0),
  /** Prompt logprobs of the last n positions only. */
  prompt_logprobs_last_n: optional(z.int()),
  /** Keeps what the loss stable_reinforce needs, on servers that have it. */
  record_stability_info: fallback(z.boolean(), false),
};
const questionsSchema = message(questionFields);
/** What is asked beside the completions. */
export type Questions = z.output<typeof questionsSchema>;
/** What a sample is asked beside its completions; what is left out is not asked. */
export type SampleQuestions = { [Name in keyof Questions]?: Questions[Name] | undefined };

/** What the answers about a prompt are. */
export interface PromptAnswers {
  /** One per prompt token, NaN where undefined (the first). */
  promptLogprobs?: Float32Array | undefined;
  /** The likeliest tokens at each position of the prompt. */
  topkPromptLogprobs?: TopkLogprobs | undefined;
  /** float32, of the shape and layout that was asked for. */
  targetPromptLogprobs?: Tensor | undefined;
  /** Tokens drawn at each position of the prompt. */
  promptAltTokens?: PromptAltTokens | undefined;
}

/** What the answers about a completion are: one row for each of its tokens. */
export interface SequenceAnswers {
  /** The likeliest tokens at each position. */
  topkSampledLogprobs?: TopkLogprobs | undefined;
}

/** Drawn tokens and their log-probabilities, both [N - 1, k]. */
export interface PromptAltTokens {
  /** Token ids, one row for each position of the prompt. */
  tokens: Tensor;
  /** Their log-probabilities. */
  logprobs: Tensor;
}

/** How an answer travels: its JSON, and its field in the protobuf message. */
export interface AnswerForm<T> {
  json: z.ZodType<T>;
  field: number;
  codec: FieldCodec<T>;
}
type Forms<Answers> = { readonly [Name in keyof Answers]-?: AnswerForm<NonNullable<Answers[Name]>> };

const topk = { json: topkRows, codec: topkTable };
const promptAltTokens = message({ tokens: tensorSchema, logprobs: tensorSchema });
export const promptAnswers: Forms<PromptAnswers> = {
  promptLogprobs: { json: float32Array, field: 2, codec: floats },
  topkPromptLogprobs: { ...topk, field: 3 },
  targetPromptLogprobs: { json: tensorSchema, field: 5, codec: tensorField },
  promptAltTokens: {
    json: promptAltTokens,
    field: 6,
    codec: recordOf<PromptAltTokens>({ tokens: [1, tensorField], logprobs: [2, tensorField] }),
  },
};
export const sequenceAnswers: Forms<SequenceAnswers> = {
  topkSampledLogprobs: { ...topk, field: 4 },
};

/** What questions are asked about. */
export interface AskedOf {
  promptLength: number;
  vocabSize: number;
  questions: Questions;
}

const maxTopk = 256;
/** Numbers that one request may ask about its prompt: positions times what is wanted at each. */
const maxScores = 1 << 22;

const outside = (value: number, low: number, high: number) =>
  value >= low && value <= high ? undefined : `=${value} is out of range. Send ${low} to ${high}.`;
const topkProblem = (k: number, { vocabSize }: AskedOf) => outside(k, 0, Math.min(maxTopk, vocabSize));

/** Why a value cannot be answered, as the rest of a sentence that begins with the field's name. */
const problems: {
  readonly [Name in keyof Questions]?: (value: NonNullable<Questions[Name]>, of: AskedOf) => string | undefined;
} = {
  topkPromptLogprobs: topkProblem,
  topkSampleLogprobs: topkProblem,
  targetPromptLogprobs: targetsProblem,
  promptAltTokensK: (k, { promptLength }) => outside(k, 0, Math.floor(maxScores / promptLength)),
  promptLogprobsLastN: (n, { promptLength, questions: { promptLogprobs, topkPromptLogprobs } }) =>
    promptLogprobs || topkPromptLogprobs > 0
      ? outside(n, 1, Math.max(1, promptLength - 1))
      : " cuts prompt logprobs, which were not asked for. Set prompt_logprobs, or leave it out.",
};

function targetsProblem(targets: Tensor, { promptLength, vocabSize }: AskedOf): string | undefined {
  const { dtype, shape, data, sparse } = targets;
  const rows = promptLength - 1;
  const advice = `Send int64 [${rows}, K], one row per position from the second on.`;
  if (dtype !== "int64") return ` has dtype ${dtype}. ${advice}`;
  if (rows < 1 || shape.length !== 2 || shape[0] !== rows || shape[1]! < 1) return ` has shape [${shape}]. ${advice}`;
  if (data.length > maxScores) return ` asks for more than ${maxScores} numbers. ${advice}`;
  const problem = tensorProblem(targets);
  if (problem) return ` does not fit together: ${problem}. ${advice}`;
  let asked = false;
  for (const token of data) {
    if (token < -1 || token >= vocabSize)
      return ` has token id ${token}. Send ids from 0 to ${vocabSize - 1}, and -1 where nothing is asked.`;
    asked ||= Number(token) !== -1;
  }
  return asked ? undefined : ` asks for no token at all${sparse ? "" : ", only -1"}. ${advice}`;
}

const nothing: Readonly<Questions> = z.decode(questionsSchema, {});
const names = Object.keys(questionFields).map((wire) => ({ wire, name: camel(wire) as keyof Questions }));

/** The questions among the fields of something larger. */
export function questionsOf(fields: Readonly<SampleQuestions>): Questions {
  const given = names.filter(({ name }) => fields[name] !== undefined).map(({ name }) => [name, fields[name]]);
  return { ...nothing, ...Object.fromEntries(given) };
}

/** Why questions cannot be answered; undefined where they can. */
export function questionProblem(questions: Questions, of: Omit<AskedOf, "questions">): string | undefined {
  for (const { wire, name } of names) {
    const problemOf = problems[name] as ((value: unknown, of: AskedOf) => string | undefined) | undefined;
    const problem = questions[name] === undefined ? undefined : problemOf?.(questions[name], { ...of, questions });
    if (problem !== undefined) return wire + problem;
  }
  return undefined;
}
