// What a server says of its models, read in one way by the command and the library.
import type { ServiceClient } from "../client/index.ts";
import type { Logger } from "../runs/log.ts";
import type { TrainConfig } from "./config.ts";

export interface OfferedModel {
  name: string;
  maxContextLength: number | undefined;
  /** False: it can be sampled from only. Undefined: the server does not say. */
  trainable: boolean | undefined;
}

/** The models that a server names. */
export async function offeredModels(
  service: ServiceClient,
  options: { signal?: AbortSignal } = {},
): Promise<OfferedModel[]> {
  const { supportedModels } = await service.getServerCapabilities(options);
  return supportedModels.flatMap(({ modelName, maxContextLength, trainable }) =>
    modelName === undefined ? [] : [{ name: modelName, maxContextLength, trainable }],
  );
}

/** The offer of a model by its name, or of the model that it is a variant of: `owner/name:peft:131072` is `owner/name` with a longer window. */
export function offerOf(models: readonly OfferedModel[], name: string): OfferedModel | undefined {
  const exact = models.find((model) => model.name === name);
  const window = /:peft:(\d+)$/.exec(name);
  if (!window) return exact;
  const base = exact ?? models.find((model) => model.name === name.slice(0, window.index));
  return base && { ...base, name, maxContextLength: exact?.maxContextLength ?? Number(window[1]) };
}

/** The config with the context window that counts: the server's, where it is the smaller one. */
export function withinWindow(config: TrainConfig, offer: OfferedModel | undefined, logger: Logger): TrainConfig {
  const { context_window: asked, model_name: model } = config;
  const window = Math.min(asked, offer?.maxContextLength ?? asked);
  if (window < asked)
    logger.info(`context  ${window} tokens, the most that the server takes for ${model} (context_window=${asked})`);
  return { ...config, context_window: window };
}
