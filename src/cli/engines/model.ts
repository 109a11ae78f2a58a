// The model that an engine of this machine computes, as a folder: fetched from the hub where it is not here, and refused before its weights
// are fetched where they would not fit.
import { totalmem } from "node:os";
import { basename } from "node:path";
import { bundledModel } from "../../core/bundled.ts";
import { WhetstoneError } from "../../core/errors.ts";
import { HubError } from "../../hub/errors.ts";
import { isHubId } from "../../hub/hub.ts";
import { modelFolder } from "../../hub/model-folder.ts";
import { whileDownloading } from "../terminal/progress.ts";
import { gib } from "./machine.ts";

/** The bundled model. */
export const bundledName = "nano-coder";

/** Beside the weights: adapters with their optimizer, keys and values, what a training pass keeps. */
const besideWeights = 1.25;

/** The folder of a model; `check` looks at what comes before its weights. */
export const fetchModel = (source: string, check: (folder: string) => void, signal?: AbortSignal): Promise<string> =>
  whileDownloading(basename(source), (show) => modelFolder(source, { ...show, check, ...(signal && { signal }) }));

/** The same of a model that the embedded engine is to compute. */
export async function embeddedModel(source: string, signal?: AbortSignal): Promise<string> {
  // Loaded here: most commands never ask for a model of their own.
  const { readConfig } = await import("../../engine/hf-folder.ts");
  const { parameterCount } = await import("../../engine/architecture.ts");
  const check = (folder: string) => {
    const parameters = parameterCount(readConfig(folder));
    const needed = 4 * parameters * besideWeights;
    if (needed <= totalmem()) return;
    throw new WhetstoneError(
      "cli/model-too-large",
      `${source} has ${(parameters / 1e9).toFixed(1)} billion parameters: the embedded engine would need ${(needed / gib).toFixed(0)} GiB of memory, and this ` +
        `machine has ${(totalmem() / gib).toFixed(0)}. Choose a smaller model, or train it elsewhere: with TINKER_API_KEY on the hosted service, or on a server with base_url=.`,
    );
  };
  return fetchModel(source, check, signal);
}

/** What clients ask for. */
export const modelNameOf = (source: string) =>
  bundledModel(source) || isHubId(source) ? source : basename(source).replace(/\.gguf$/, "");

/** Whether a failure says that there is no such model. */
export const isMissing = (error: unknown): error is HubError =>
  error instanceof HubError &&
  ["hub/no-model", "hub/not-found", "hub/unreachable", "hub/unauthorized"].includes(error.code);
