// Does a sampler stay what it is while its model is trained on, and does sampling from it leave training alone? The protocol says so, and
// servers that keep one copy of an adapter for both do neither: SkyRL loads the sampler's weights over those in training. On such a
// server the newest policy alone may be sampled, between two updates.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { type SamplingClient, type ServiceClient, type TrainingClient, tensor, textInput } from "../client/index.ts";
import { isHosted } from "../client/options.ts";
import { cacheFolder } from "../core/cache.ts";
import { makeFolder, writeFileAtomic } from "../core/files.ts";
import { readRunConfig } from "../runs/directory.ts";
import type { Logger } from "../runs/log.ts";
import type { TrainConfig } from "./config.ts";

/** A text that any vocabulary has. */
const text = Int32Array.of(60, 75, 24, 104, 127, 72, 103, 92, 27, 33, 34, 35, 36);
const promptLength = 6;
/** So large that the update shows; the model is thrown away. */
const learningRate = 1e-2;
/** A server may be replaced by another one at the same address. */
const rememberedMs = 24 * 3600 * 1000;

type Asked = Pick<TrainConfig, "model_name" | "lora_rank">;

/** A server, and the name that its ways are remembered by: an engine that is started here has another address each time. */
interface KnownServer {
  service: ServiceClient;
  identity?: string;
}

/** What a server says itself. Undefined: it has to be tried. */
export async function declaredFrozen(service: ServiceClient, signal?: AbortSignal): Promise<boolean | undefined> {
  if (isHosted(service.baseUrl)) return true;
  return (await service.getServerCapabilities(signal ? { signal } : {})).frozenSamplers;
}

/** Whether a stored sampler is independent of its model. On other servers it is gone when the model is, or loading it overwrites the model. */
export async function keepsSamplers(server: KnownServer, model: string, signal?: AbortSignal): Promise<boolean> {
  return (await declaredFrozen(server.service, signal)) ?? remembered()[keyOf(server, model)]?.frozen ?? false;
}

/** Tries it, on a model of its own, and remembers the answer for a day. */
export async function probeFrozen(
  server: KnownServer,
  { model_name: baseModel, lora_rank: rank }: Asked,
  signal?: AbortSignal,
): Promise<boolean> {
  const training = await server.service.createLoraTrainingClient({ baseModel, rank, seed: 0, signal });
  let frozen: boolean;
  try {
    frozen = await staysFrozen(training, signal);
  } finally {
    await training.unload().catch(() => {}); // the session's end frees it too
  }
  const known = remembered();
  known[keyOf(server, baseModel)] = { frozen, at: Date.now() };
  makeFolder(cacheFolder());
  writeFileAtomic(memoryFile(), `${JSON.stringify(known, null, 1)}\n`);
  return frozen;
}

/**
 * The config with the lag that the server allows, which is said where it is another; and whether its samplers are frozen. A run that
 * began without stays without.
 */
export async function withinServer(
  config: TrainConfig,
  server: KnownServer,
  { runPath, logger, signal }: { runPath: string; logger: Logger; signal: AbortSignal },
): Promise<{ config: TrainConfig; frozenSamplers: boolean }> {
  const began = readRunConfig(runPath)?.["frozen_samplers"] === false ? false : undefined;
  let frozenSamplers =
    began ?? (await declaredFrozen(server.service, signal)) ?? remembered()[keyOf(server, config.model_name)]?.frozen;
  if (frozenSamplers === undefined) {
    logger.info(
      "samplers trying once whether this server keeps a sampler apart from training; the answer is remembered",
    );
    frozenSamplers = await probeFrozen(server, config, signal);
  }
  if (frozenSamplers) return { config, frozenSamplers };
  const instead = config.max_lag > 0 ? ` instead of ${config.max_lag}` : "";
  const tail = config.tail === "wait" ? "" : " tail=wait instead of carry";
  logger.info(`samplers ${notFrozen}; so max_lag=0${instead}${tail}, and evaluations between two steps`);
  return { config: { ...config, max_lag: 0, tail: "wait", carry_rounds: false }, frozenSamplers };
}

export const notFrozen = "not frozen on this server: sampling an older policy would change what is trained";

async function staysFrozen(training: TrainingClient, signal?: AbortSignal): Promise<boolean> {
  const options = { signal };
  const targets = text.subarray(1);
  const datum = {
    modelInput: textInput(text.subarray(0, -1)),
    lossFnInputs: {
      target_tokens: tensor(targets),
      weights: tensor(new Float32Array(targets.length).fill(1)),
    },
  };
  const learner = async () =>
    (await training.forwardBackward([datum], "cross_entropy", options)).lossFnOutputs[0]?.["logprobs"]
      ?.data as Float32Array;
  const newSampler = () => training.saveWeightsAndGetSamplingClient(options);
  const older = await newSampler();
  const [before, learnerBefore] = [await answerOf(older, signal), await learner()];
  await training.optimStep({ learningRate }, options);
  const newer = await newSampler();
  const [after, learnerAfter] = [await answerOf(newer, signal), await learner()];
  const [again, learnerAgain] = [await answerOf(older, signal), await learner()];
  // Nearer to what it was than to what the other one is; numbers of a GPU differ a little from one time to the next.
  const held = (is: ArrayLike<number>, was: ArrayLike<number>, other: ArrayLike<number>) =>
    distance(is, was) < distance(is, other);
  return held(again, before, after) && held(learnerAgain, learnerAfter, learnerBefore);
}

/** A few greedy tokens, each followed by its log-probability. */
async function answerOf(sampler: SamplingClient, signal?: AbortSignal): Promise<number[]> {
  const { sequences } = await sampler.sample({
    prompt: [...text.subarray(0, promptLength)],
    samplingParams: { maxTokens: 4, temperature: 0, seed: 1 },
    signal,
  });
  const { tokens, logprobs } = sequences[0]!;
  return [...tokens].flatMap((token, index) => [1000 * token, logprobs?.[index] ?? 0]);
}

const distance = (a: ArrayLike<number>, b: ArrayLike<number>) =>
  a.length === b.length
    ? Array.from(a).reduce((most, value, index) => Math.max(most, Math.abs(value - b[index]!)), 0)
    : Number.POSITIVE_INFINITY;

type Memory = Record<string, { frozen: boolean; at: number }>;
const memoryFile = () => join(cacheFolder(), "servers.json");
const keyOf = ({ service, identity = service.baseUrl }: KnownServer, model: string) => `${identity} ${model}`;

function remembered(): Memory {
  try {
    const known = existsSync(memoryFile()) ? (JSON.parse(readFileSync(memoryFile(), "utf8")) as Memory) : {};
    return Object.fromEntries(Object.entries(known).filter(([, { at }]) => Date.now() - at < rememberedMs));
  } catch {
    return {}; // a file that cannot be read is written anew
  }
}
