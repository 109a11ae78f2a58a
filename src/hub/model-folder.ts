// A model by the name a person gives it: a folder, a GGUF file, a bundled model or a repository of the Hugging Face hub. Each is a
// folder of this machine afterwards, with config.json, tokenizer.json and, where they are wanted, the weights.
import { existsSync, mkdirSync, readFileSync, symlinkSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { bundledModel } from "../core/bundled.ts";
import { withoutVariant } from "../core/model-name.ts";
import { ggufFolder, isGguf } from "../gguf/index.ts";
import { HubError } from "./errors.ts";
import { Hub, type HubDownloadOptions, type HubFile, type HubOptions, type HubSnapshot, isHubId } from "./hub.ts";

export interface ModelFolderOptions extends Pick<HubOptions, "onNotice">, HubDownloadOptions {
  /** False: only the files beside the weights are needed. */
  weights?: boolean;
  /** Looks at a folder that has all but its weights, and throws where they need not be fetched. */
  check?(folder: string): void;
}

/** Files that belong to a model besides its weights. Code is not taken along. */
export const companions =
  /^(config\.json|generation_config\.json|(tokenizer|special_tokens|added_tokens|vocab|merges|chat_template|preprocessor|processor)[\w.]*\.(json|txt|model|jinja|tiktoken)|LICENSE(\.\w+)?|NOTICE(\.\w+)?)$/i;
const single = "model.safetensors";
const index = "model.safetensors.index.json";

/** The folder of a model; files of the hub are downloaded into its cache. */
export async function modelFolder(name: string, options: ModelFolderOptions = {}): Promise<string> {
  const folder = isGguf(name)
    ? await ggufFolder(name)
    : existsSync(join(name, "config.json"))
      ? resolve(name)
      : bundledModel(name);
  if (folder !== undefined) {
    options.check?.(folder);
    return folder;
  }
  const id = withoutVariant(name);
  if (existsSync(name) || !isHubId(id))
    throw new HubError(
      "hub/no-model",
      existsSync(name)
        ? `${name} is no model folder: it has no config.json. Name one that has, or a GGUF file.`
        : `${name} is neither a folder nor a GGUF file here, nor a name like owner/model of the hub. Check the path.`,
    );
  return download(id, options);
}

async function download(id: string, options: ModelFolderOptions): Promise<string> {
  const { signal, onProgress, onNotice, weights = true } = options;
  const hub = new Hub({ onNotice });
  const snapshot = await hub.snapshot({ type: "model", id }, signal);
  const folder = hub.folderOf(snapshot);
  mkdirSync(folder, { recursive: true });
  const fetchFile = async (file: HubFile) => {
    const path = await hub.download(snapshot, file, { signal, onProgress });
    link(path, join(folder, file.path));
  };
  const named = (wanted: (path: string) => boolean) => snapshot.files.filter(({ path }) => wanted(path));
  for (const file of named((path) => companions.test(path) || path === "README.md")) await fetchFile(file);
  if (!existsSync(join(folder, "config.json"))) throw noWeights(hub, snapshot, "config.json");
  options.check?.(folder);
  if (!weights) return folder;
  const whole = named((path) => path === single);
  const [indexFile] = whole.length > 0 ? [] : named((path) => path === index);
  if (indexFile) await fetchFile(indexFile);
  else if (whole.length === 0) throw noWeights(hub, snapshot, "safetensors");
  const shards = indexFile ? shardsOf(join(folder, index)) : new Set<string>();
  for (const file of [...whole, ...named((path) => shards.has(path))]) await fetchFile(file);
  return folder;
}

function noWeights(hub: Hub, { repository: { id }, files }: HubSnapshot, what: string): HubError {
  const quantized = files.map(({ path }) => path).filter((path) => path.endsWith(".gguf"));
  return new HubError(
    "hub/no-model",
    `The model ${id} at ${hub.endpoint} has no ${what}. ` +
      (quantized.length > 0
        ? `It has GGUF files (${quantized.slice(0, 4).join(", ")}): download one and name it, or name the model they were made of.`
        : "Name a model in the safetensors format."),
  );
}

/** The files that an index names. A shard lies beside its index, never elsewhere. */
function shardsOf(path: string): Set<string> {
  const { weight_map: map } = JSON.parse(readFileSync(path, "utf8")) as { weight_map?: Record<string, unknown> };
  return new Set(
    Object.values(map ?? {}).filter((shard): shard is string => typeof shard === "string" && basename(shard) === shard),
  );
}

function link(target: string, path: string): void {
  try {
    symlinkSync(target, path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  }
}
