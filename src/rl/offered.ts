// What a server says of its models, read in one way by the command and the library.
import { readFileSync } from "node:fs";
import { join } from "node:path";
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

/** What the model's folder says it was made for, where the model is a folder of this machine. */
function windowOfFolder(model: string): number | undefined {
  try {
    const { max_position_embeddings: window } = JSON.parse(readFileSync(join(model, "config.json"), "utf8"));
    return Number.isInteger(window) ? window : undefined;
  } catch {
    return undefined; // a name at the server's, or a folder on its machine
  }
}

/** The config with the context window that counts: the smallest of its own, the server's and the model folder's. */
export function withinWindow(config: TrainConfig, offer: OfferedModel | undefined, logger: Logger): TrainConfig {
  const { context_window: asked, model_name: model } = config;
  const [ofServer, ofFolder] = [offer?.maxContextLength ?? asked, windowOfFolder(model) ?? asked];
  const window = Math.min(asked, ofServer, ofFolder);
  const why = ofServer === window ? "the most that the server takes for" : "the most that the folder says of";
  if (window < asked) logger.info(`context  ${window} tokens, ${why} ${model} (context_window=${asked})`);
  return { ...config, context_window: window };
}
