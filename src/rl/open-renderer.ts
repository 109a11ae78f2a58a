// The renderer of a model, on its tokenizer: the one that the config names; else, for a run that begins, the one that the server names;
// else the one that goes by the model's name.
import { type ServiceClient, type TrainingClient, tokenizerIdOf } from "../client/index.ts";
import { WhetstoneError } from "../core/errors.ts";
import { chooseRenderer, type Renderer, recommendedRenderer } from "../renderers/index.ts";
import { readRunConfig } from "../runs/directory.ts";
import type { Logger } from "../runs/log.ts";
import { findLocally } from "../tokenizer/files.ts";
import { loadTokenizer, type Tokenizer } from "../tokenizer/index.ts";
import type { TrainConfig } from "./config.ts";
import { freshTraining } from "./resume.ts";

interface OpenedRenderer {
  renderer: Renderer;
  /** The config with what was found out: the tokenizer that the server names, the renderer's name. */
  config: TrainConfig;
  /** Only a model can be asked for its tokenizer: the one that was made for it, which the run goes on to train. */
  made: TrainingClient | undefined;
}

interface OpenRendererOptions {
  logger: Logger;
  signal: AbortSignal;
  /** Given: a model is made on this server and asked, where nothing else says which tokenizer it is. */
  ask?: { service: ServiceClient; runPath: string } | undefined;
}

/** Loads the tokenizer and chooses the renderer. */
export async function openRenderer(config: TrainConfig, options: OpenRendererOptions): Promise<OpenedRenderer> {
  const { logger } = options;
  const { model_name: model, renderer_name: name, thinking } = config;
  const { tokenizer, source, made } = await openTokenizer(config, options);
  const { renderer, notices, warnings } = chooseRenderer(model, tokenizer, { name, thinking });
  for (const notice of notices) logger.info(`renderer ${notice}`);
  for (const warning of warnings) logger.warn(warning);
  return { renderer, made, config: { ...config, renderer_name: renderer.name, tokenizer: source } };
}

interface OpenedTokenizer {
  tokenizer: Tokenizer;
  /** What tokenizer= would have to say; "" where the model's name is enough. */
  source: string;
  made?: TrainingClient | undefined;
}

async function openTokenizer(
  config: TrainConfig,
  { logger, signal, ask }: OpenRendererOptions,
): Promise<OpenedTokenizer> {
  const { model_name: model } = config;
  const begun = ask && readRunConfig(ask.runPath);
  // A run keeps the tokenizer that it began with.
  const source = config.tokenizer || String(begun?.["tokenizer"] ?? "");
  if (source !== "") return { tokenizer: await loadTokenizer(source, { signal }), source };
  const byItsName = async () => ({ tokenizer: await loadTokenizer(model, { signal }), source: "" });
  if (!ask || begun) return byItsName();

  const userMetadata = { renderer_name: config.renderer_name || recommendedRenderer(model), log_path: ask.runPath };
  const made = await freshTraining(ask.service, config, { userMetadata, signal });
  const { modelData } = await made.getInfo({ signal });
  const named = modelData.tokenizerId && tokenizerIdOf({ tokenizerId: modelData.tokenizerId });
  if (!named || named === tokenizerIdOf({ modelName: model }) || (await areSameFiles(named, model)))
    return { ...(await byItsName()), made };
  try {
    const tokenizer = await loadTokenizer(named, { signal });
    logger.info(`tokenizer ${named}, which the server names for ${model}`);
    return { tokenizer, source: named, made };
  } catch (error) {
    // A server may name a folder of its own machine.
    if (!(error instanceof WhetstoneError) || error.code !== "tokenizer/not-found") throw error;
    logger.warn(
      `the server's tokenizer for ${model}, ${named}, is not here: that of ${model} is used; tokenizer= names another`,
    );
    return { ...(await byItsName()), made };
  }
}

/** Whether both names mean one tokenizer of this machine. */
async function areSameFiles(a: string, b: string): Promise<boolean> {
  const [first, second] = await Promise.all([a, b].map((source) => findLocally(source).catch(() => undefined)));
  return first !== undefined && first === second;
}
