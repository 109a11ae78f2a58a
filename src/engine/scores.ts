// Computes what a request asks for beside its completions (the questions of protocol/questions.ts). Every answer is made from the
// distributions of the tokens at its positions, so an engine only has to provide those, one after the other.
import { Random } from "../core/random.ts";
import type { TopkLogprobs } from "../protocol/arrays.ts";
import type { PromptAnswers, SampleQuestions, SequenceAnswers } from "../protocol/questions.ts";
import { type Tensor, tensor } from "../protocol/tensors.ts";
import { argmax, draw, tempered } from "./pick.ts";

interface AskedPrompt extends SampleQuestions {
  prompt: Int32Array;
  temperature: number;
  seed: number | string;
}

/** Makes one answer. */
interface Keeper<Answer> {
  answer: Answer;
  add(position: number, logprobs: Float32Array): void;
}
type Keepers<Answers, Asked> = {
  readonly [Name in keyof Answers]-?: (asked: Asked) => Keeper<NonNullable<Answers[Name]>> | undefined;
};

/** For each answer about a prompt: what makes it, or undefined when nobody asked. */
const promptKeepers: Keepers<PromptAnswers, AskedPrompt> = {
  promptLogprobs({ promptLogprobs, promptLogprobsLastN, prompt }) {
    if (!promptLogprobs) return undefined;
    const answer = new Float32Array(prompt.length).fill(Number.NaN);
    const first = firstOf(prompt, promptLogprobsLastN);
    return {
      answer,
      add(position, logprobs) {
        if (position >= first) answer[position] = logprobs[prompt[position]!]!;
      },
    };
  },
  topkPromptLogprobs({ topkPromptLogprobs: k = 0, promptLogprobsLastN, prompt }) {
    if (k === 0) return undefined;
    const answer: TopkLogprobs = new Array<null>(prompt.length).fill(null);
    const first = firstOf(prompt, promptLogprobsLastN);
    return {
      answer,
      add(position, logprobs) {
        if (position >= first) answer[position] = largest(logprobs, k);
      },
    };
  },
  targetPromptLogprobs({ targetPromptLogprobs: targets }) {
    if (!targets) return undefined;
    const { data: tokens, shape, sparse } = targets;
    const data = new Float32Array(tokens.length);
    const answer: Tensor = { dtype: "float32", data, shape, ...(sparse && { sparse }) };
    return {
      answer,
      add(position, logprobs) {
        const row = position - 1;
        const start = sparse ? sparse.crowIndices[row]! : row * shape[1]!;
        const end = sparse ? sparse.crowIndices[row + 1]! : position * shape[1]!;
        for (let index = start; index < end; index++)
          if (tokens[index]! >= 0) data[index] = logprobs[Number(tokens[index])]!;
      },
    };
  },
  promptAltTokens({ promptAltTokensK: k = 0, prompt, temperature, seed }) {
    if (k === 0) return undefined;
    const shape = [prompt.length - 1, k];
    const tokens = new Int32Array(shape[0]! * k);
    const values = new Float32Array(tokens.length);
    return {
      answer: { tokens: tensor(tokens, shape), logprobs: tensor(values, shape) },
      add(position, logprobs) {
        const random = new Random("alternatives", seed, position - 1);
        const probs = temperature === 0 ? logprobs : tempered(logprobs, temperature);
        for (let index = (position - 1) * k; index < position * k; index++) {
          const token = temperature === 0 ? argmax(probs) : draw(probs, { temperature, topK: -1, topP: 1 }, random);
          tokens[index] = token;
          values[index] = logprobs[token]!;
        }
      },
    };
  },
};

const firstOf = (prompt: Int32Array, lastN = prompt.length) => prompt.length - lastN;

/** For each answer about a completion, with a row per token: what makes it. */
const sequenceKeepers: Keepers<SequenceAnswers, SampleQuestions> = {
  topkSampledLogprobs({ topkSampleLogprobs: k = 0 }) {
    if (k === 0) return undefined;
    const answer: TopkLogprobs = [];
    return {
      answer,
      add(position, logprobs) {
        answer[position] = largest(logprobs, k);
      },
    };
  },
};

/** Makes the answers that were asked for, position by position. */
export class Scores<Answers> {
  readonly #keepers: readonly (readonly [name: string, keeper: Keeper<unknown>])[];
  readonly #length: number;

  /** Positions from `length` on do not count. */
  constructor(keepers: Readonly<Record<string, Keeper<unknown> | undefined>>, length = Number.POSITIVE_INFINITY) {
    this.#keepers = Object.entries(keepers).flatMap(([name, keeper]) => (keeper ? [[name, keeper] as const] : []));
    this.#length = length;
  }

  get wanted(): boolean {
    return this.#keepers.length > 0;
  }

  /** `logprobs` are those of the token at `position`, counted from 0; that of a prompt's first token is not known. */
  add(position: number, logprobs: Float32Array): void {
    if (position < this.#length) for (const [, keeper] of this.#keepers) keeper.add(position, logprobs);
  }

  get answers(): Answers {
    return Object.fromEntries(this.#keepers.map(([name, { answer }]) => [name, answer])) as Answers;
  }
}

const each = <Answers, Asked>(make: Keepers<Answers, Asked>, asked: Asked) =>
  Object.fromEntries(
    Object.entries<(asked: Asked) => Keeper<unknown> | undefined>(make).map(([name, keeper]) => [name, keeper(asked)]),
  );

export const promptScores = (asked: AskedPrompt) =>
  new Scores<PromptAnswers>(each(promptKeepers, asked), asked.prompt.length);
export const sequenceScores = (asked: SampleQuestions) => new Scores<SequenceAnswers>(each(sequenceKeepers, asked));

type Rows = { slice(start: number, end: number): unknown };

/** The first `length` tokens of a sequence, with what belongs to them. */
export function cutTo<Sequence extends { stopReason: string }>(sequence: Sequence, length: number): Sequence {
  const { stopReason, ...rows } = sequence;
  const cut = Object.entries(rows as Record<string, Rows>).map(([name, values]) => [name, values.slice(0, length)]);
  return { stopReason, ...Object.fromEntries(cut) } as Sequence;
}

/** The `count` largest values with their indices, largest first, the lower index first among equals. */
export function largest(values: Float32Array, count: number): [number, number][] {
  const threshold = values.slice().sort()[Math.max(0, values.length - count)]!;
  const found: [number, number][] = [];
  for (let index = 0; index < values.length; index++) {
    if (values[index]! >= threshold) found.push([index, values[index]!]);
  }
  return found.sort((a, b) => b[1] - a[1] || a[0] - b[0]).slice(0, count);
}
