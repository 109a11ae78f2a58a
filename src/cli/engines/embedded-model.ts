// The model that the embedded engine is to compute, as a folder of this machine: fetched from the hub where it is not here, and refused
// before its weights are fetched where they would not fit.
import { totalmem } from "node:os";
import { basename } from "node:path";
import { bundledModel } from "../../core/bundled.ts";
import { WhetstoneError } from "../../core/errors.ts";
import { HubError } from "../../hub/errors.ts";
import { isHubId } from "../../hub/hub.ts";
import { modelFolder } from "../../hub/model-folder.ts";
import { Progress, showDownload } from "../terminal/progress.ts";

/** The one that comes along. */
export const bundledName = "nano-coder";

export interface EmbeddedModel {
  /** What clients ask for. */
  name: string;
  folder: string;
}

/** The model is not here and cannot be had, or does not fit. */
export class EmbeddedModelError extends WhetstoneError {}

/** Beside the weights: adapters with their optimizer, keys and values, what a training pass keeps. */
const besideWeights = 1.25;
const gib = 2 ** 30;

export async function embeddedModel(source: string, signal?: AbortSignal): Promise<EmbeddedModel> {
  // Loaded here: most commands never ask for a model of their own.
  const { readConfig } = await import("../../engine/hf-folder.ts");
  const { parameterCount } = await import("../../engine/architecture.ts");
  const progress = new Progress({ label: basename(source) });
  const check = (folder: string) => {
    const parameters = parameterCount(readConfig(folder));
    const needed = 4 * parameters * besideWeights;
    if (needed <= totalmem()) return;
    throw new EmbeddedModelError(
      "cli/model-too-large",
      `${source} has ${(parameters / 1e9).toFixed(1)} billion parameters: the embedded engine would need ${(needed / gib).toFixed(0)} GiB of memory, and this ` +
        `machine has ${(totalmem() / gib).toFixed(0)}. Choose a smaller model, or train it elsewhere: with TINKER_API_KEY on the hosted service, or on a server with base_url=.`,
    );
  };
  try {
    const folder = await modelFolder(source, {
      check,
      onNotice: (line) => progress.print(line),
      onProgress: showDownload(progress),
      ...(signal && { signal }),
    });
    return { name: nameOf(source), folder };
  } finally {
    progress.end();
  }
}

/** Whether a failure says that there is no such model to be had. */
export const isMissing = (error: unknown): error is HubError =>
  error instanceof HubError &&
  ["hub/no-model", "hub/not-found", "hub/unreachable", "hub/unauthorized"].includes(error.code);

const nameOf = (source: string) =>
  bundledModel(source) || isHubId(source) ? source : basename(source).replace(/\.gguf$/, "");
