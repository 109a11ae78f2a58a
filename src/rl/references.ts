// What other models think of the answers that are trained on: the model that training started from (kl_coef), a teacher (teacher). Each
// adds to the advantage of every token its weight times the difference of its own log-probability and the sampler's:
//   A_t += weight · (log π_reference(t) − log π_sampler(t))
// For a teacher this is on-policy distillation; for the start it is a penalty for the distance from it (k1, in the reward, per token).
import type { SamplingClient, ServiceClient } from "../client/index.ts";
import { concat } from "../core/arrays.ts";
import { entryOf } from "../core/maps.ts";
import { tensor, textTokens } from "../protocol/index.ts";
import type { Arrays, UpdateRule } from "../runs/events.ts";
import type { Batch, BatchExample } from "./batch.ts";
import type { TrainConfig } from "./config.ts";
import { ownValues } from "./datums.ts";
import { eachMasked, maskedCount } from "./mask.ts";
import { TrainError } from "./resume.ts";

type Reference = UpdateRule["references"][number];

/** The references that the config asks for. */
export const referencesOf = (config: TrainConfig): Reference[] => [
  ...(config.kl_coef > 0 ? [{ name: "start", model: config.kl_reference, weight: config.kl_coef } as const] : []),
  ...(config.teacher === "" ? [] : [{ name: "teacher", model: config.teacher, weight: config.teacher_coef } as const]),
];

/** How often the tokens of a batch are read besides training on them. */
export const extraReads = ({ references, mismatch }: Pick<UpdateRule, "references" | "mismatch">): number =>
  references.length + (mismatch === "none" ? 0 : 1);

/** Log-probabilities of the model's own tokens by reference: an array for each example. */
export type ReferenceValues = ReadonlyMap<string, readonly Float32Array[]>;

/** Asks references what they think. Their samplers are opened once for a run. */
export class References {
  readonly #service: ServiceClient;
  readonly #config: Pick<TrainConfig, "model_name" | "context_window">;
  readonly #samplers = new Map<string, Promise<SamplingClient>>();

  constructor(service: ServiceClient, config: Pick<TrainConfig, "model_name" | "context_window">) {
    this.#service = service;
    this.#config = config;
  }

  async ask(examples: readonly BatchExample[], rule: UpdateRule, signal: AbortSignal): Promise<ReferenceValues> {
    const asked = rule.references.map(async (reference) => {
      const sampler = await this.#open(reference.model, signal);
      const values = await Promise.all(examples.map((example) => this.#valuesOf(example, reference, sampler, signal)));
      return [reference.name, values] as const;
    });
    return new Map(await Promise.all(asked));
  }

  #open(model: string, signal: AbortSignal): Promise<SamplingClient> {
    return entryOf(this.#samplers, model, () => {
      const isPath = model.startsWith("tinker://");
      const source = isPath ? { modelPath: model } : { baseModel: model || this.#config.model_name };
      const opening = this.#service.createSamplingClient({ ...source, signal });
      opening.catch(() => this.#samplers.delete(model));
      return opening;
    });
  }

  async #valuesOf(
    example: BatchExample,
    { name, model }: Reference,
    sampler: SamplingClient,
    signal: AbortSignal,
  ): Promise<Float32Array> {
    const tokens = tokensOf(example);
    // A server samples one token behind what it is to look at: where the window is full, the last one is not asked about.
    const asked = tokens.subarray(0, this.#config.context_window - 1);
    const logprobs = await sampler.computeLogprobs(asked, { signal });
    const values = Float32Array.from(ownValues(example, "logprobs"));
    eachMasked(example.mask, (position, place) => {
      if (position + 1 >= asked.length) return;
      const value = logprobs[position + 1];
      if (value == null || !Number.isFinite(value)) throw unknownToken(name, model, tokens[position + 1]!, value);
      values[place] = value;
    });
    return values;
  }
}

const unknownToken = (name: string, model: string, token: number, value: number | null | undefined) =>
  new TrainError(
    "rl/reference-logprob",
    `The ${name === "teacher" ? `teacher (teacher=${model})` : `reference (kl_reference=${model})`} gives token ${token} the log-probability ${String(value)}. ` +
      "It must read the same tokens as the model that is trained: name a model of the same family, or a checkpoint of this one.",
  );

/** All tokens of an example: what the model reads, and the last target. */
function tokensOf({ datum }: BatchExample): Int32Array {
  const targets = datum.lossFnInputs["target_tokens"]!.data as Int32Array;
  const tokens = new Int32Array(targets.length + 1);
  tokens.set(textTokens(datum.modelInput)!.subarray(0, 1));
  tokens.set(targets, 1);
  return tokens;
}

/** The batch with what its references add to the advantages. */
export function withReferences(batch: Batch, rule: Pick<UpdateRule, "references">, values: ReferenceValues): Batch {
  const examples = batch.examples.map((example, index) => {
    const advantages = Float32Array.from(example.datum.lossFnInputs["advantages"]!.data as Float32Array);
    for (const { name, weight } of rule.references) {
      const own = values.get(name)![index]!;
      const sampled = ownValues(example, "logprobs");
      eachMasked(example.mask, (position, place) => {
        advantages[position]! += example.scale * weight * (own[place]! - sampled[place]!);
      });
    }
    const { datum } = example;
    return { ...example, datum: { ...datum, lossFnInputs: { ...datum.lossFnInputs, advantages: tensor(advantages) } } };
  });
  return { ...batch, examples, references: values };
}

/** The values as a journal has them: one array a reference, the examples end to end. */
export function arraysOf(values: ReferenceValues): Arrays {
  return Object.fromEntries([...values].map(([name, parts]) => [name, concat(Float32Array, parts)]));
}

/** The reverse; undefined where the arrays were thinned away or are of other examples. */
export function valuesOf(
  arrays: Arrays,
  examples: readonly BatchExample[],
  { references }: Pick<UpdateRule, "references">,
): ReferenceValues | undefined {
  const counts = examples.map(({ mask }) => maskedCount(mask));
  const all = counts.reduce((sum, count) => sum + count, 0);
  const values = new Map<string, Float32Array[]>();
  for (const { name } of references) {
    const whole = arrays[name];
    if (!(whole instanceof Float32Array) || whole.length !== all) return undefined;
    const parts: Float32Array[] = [];
    let offset = 0;
    for (const count of counts) {
      parts.push(whole.subarray(offset, offset + count));
      offset += count;
    }
    values.set(name, parts);
  }
  return values;
}

/** Mean difference of each reference's log-probabilities and the sampler's, over the model's own tokens. */
export function referenceMetrics({ examples, references }: Batch): Record<string, number> {
  if (!references) return {};
  return Object.fromEntries(
    [...references].map(([name, values]) => {
      let sum = 0;
      let tokens = 0;
      for (const [index, example] of examples.entries()) {
        const sampled = ownValues(example, "logprobs");
        for (let place = 0; place < sampled.length; place++) sum += sampled[place]! - values[index]![place]!;
        tokens += sampled.length;
      }
      return [`optim/kl_${name}`, sum / Math.max(1, tokens)];
    }),
  );
}
