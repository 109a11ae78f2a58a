// A loaded model: its weights, and the compiled graphs that every sampler of it shares. A snapshot is the frozen set of values
// that one sampler feeds to those graphs.
import { concat, floats, input, Session, Sessions, type Tensor, type Value, value } from "../graph/index.ts";
import { type AdapterWeights, type DecoderConfig, parameterCount, type Weights } from "./architecture.ts";
import { compileDecode, compilePrefill, type DecodeKind, type PrefillKind } from "./decoder.ts";
import type { LoraSpec } from "./engine.ts";
import { readConfig, readWeights } from "./hf-folder.ts";
import { adaptedLayers, type LoraTargets, loraInputs, loraScale, mergeLora, targetsOf } from "./lora.ts";
import { RopeTables } from "./transformer.ts";
import { productsOf, productWeight } from "./weights.ts";

/** Models up to this size get a merged copy of their weights per snapshot; larger ones keep the adapter beside the weights. */
const mergeLimitBytes = 256 * 2 ** 20;

/** Compiled when they are first asked for: most samplers need two of the four. */
export interface SamplingGraphs {
  decode(kind: DecodeKind): Promise<Session>;
  prefill(kind: PrefillKind): Promise<Session>;
}

export interface Snapshot {
  /** Weights, adapter and rotary tables, by input name. */
  feeds: Readonly<Record<string, Value>>;
  graphs: SamplingGraphs;
}

export class BaseModel {
  readonly name: string;
  readonly config: DecoderConfig;
  readonly weights: Weights;
  readonly #threads: number;
  readonly #baseFeeds: Readonly<Record<string, Value>>;
  readonly #sessions = new Sessions();

  constructor(name: string, dir: string, threads: number) {
    this.name = name;
    this.config = readConfig(dir);
    this.weights = readWeights(dir, this.config);
    this.#threads = threads;
    this.#baseFeeds = {
      ...baseFeeds(this.config, this.weights),
      ...new RopeTables(this.config).feeds(this.config.maxPositions),
    };
  }

  /** What a sampler of the bare model feeds. */
  baseSnapshot(): Snapshot {
    return { feeds: this.#baseFeeds, graphs: this.#graphs(undefined) };
  }

  /** Freezes an adapter: the caller may change its arrays afterwards. */
  async snapshot(adapter: AdapterWeights, lora: LoraSpec): Promise<Snapshot> {
    const own: Record<string, Value> = { lora_scale: value(Float32Array.of(loraScale(lora.rank)), []) };
    const targets = targetsOf(lora);
    if (4 * parameterCount(this.config) > mergeLimitBytes) {
      for (const [name, weight] of adapter) own[name] = value(weight.data.slice(), weight.shape);
      return { feeds: { ...this.#baseFeeds, ...own }, graphs: this.#graphs(targets) };
    }
    for (const [name, weight] of adapter) own[name] = value(weight.data, weight.shape);
    const merge = await this.#sessions.get(`merge ${JSON.stringify(targets)}`, () => this.#compileMerge(targets));
    const merged = await merge.run({ ...this.#baseFeeds, ...own });
    const feeds = { ...this.#baseFeeds };
    for (const [name, output] of Object.entries(merged)) {
      feeds[name.slice(mergedPrefix.length)] = value(floats(output), output.dims);
    }
    return { feeds, graphs: this.#graphs(undefined) };
  }

  close(): Promise<void> {
    return this.#sessions.release();
  }

  #graphs(side: LoraTargets | undefined): SamplingGraphs {
    const suffix = side ? JSON.stringify(side) : "";
    const { config } = this;
    const threads = this.#threads;
    return {
      decode: (kind) =>
        this.#sessions.get(`${kind} decode ${suffix}`, () => compileDecode(config, kind, side, threads)),
      prefill: (kind) =>
        this.#sessions.get(`${kind} prefill ${suffix}`, () => compilePrefill(config, kind, side, threads)),
    };
  }

  /** The graph of merged weights, for every layer that has an adapter, under the sampler's names. */
  #compileMerge(targets: LoraTargets): Promise<Session> {
    const adapted = adaptedLayers(this.config, targets);
    const outputs: Record<string, Tensor> = {};
    for (const { name, layers } of productsOf(this.config)) {
      // An adapter sits on all layers of a product or on none.
      if (!adapted.has(layers[0]!)) continue;
      const merged = layers.map((layer) => {
        const shape = adapted.get(layer)!;
        return mergeLora(input(`${layer}.weight`, shape), loraInputs(layer, shape));
      });
      outputs[mergedPrefix + name] = concat(merged, 0);
    }
    return Session.compile(outputs, this.#threads);
  }
}

/** Outputs need names of their own beside the inputs. */
const mergedPrefix = "merged.";

/** Every weight by its own name, and those that are multiplied as one by the name of the whole. */
function baseFeeds(config: DecoderConfig, weights: Weights): Record<string, Value> {
  const feeds: Record<string, Value> = {};
  for (const [name, weight] of weights) feeds[name] = value(weight.data, weight.shape);
  for (const product of productsOf(config)) {
    const { data, shape } = productWeight(config, weights, product);
    feeds[product.name] = value(data, shape);
  }
  return feeds;
}
