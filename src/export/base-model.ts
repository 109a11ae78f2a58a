// The base model that an adapter belongs to: a folder of this machine, a bundled model, or a repository of the Hugging Face hub. What a
// merged model takes along of it, and every tensor of its weights, wherever its files are.
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { bundledModel } from "../core/bundled.ts";
import { SafetensorsFile, type TensorEntry } from "../engine/safetensors.ts";
import { Hub, type HubFile, type HubSnapshot, isHubId } from "../hub/hub.ts";
import { ExportError } from "./errors.ts";

export interface BaseModel {
  /** What was asked for. */
  name: string;
  /** The local path of each file, by its name in the model. */
  files: ReadonlyMap<string, string>;
}

/** Files that belong to a model besides its weights. Code is not taken along. */
const companions =
  /^(config\.json|generation_config\.json|(tokenizer|special_tokens|added_tokens|vocab|merges|chat_template|preprocessor|processor)[\w.]*\.(json|txt|model|jinja|tiktoken)|LICENSE(\.\w+)?|NOTICE(\.\w+)?)$/i;
const single = "model.safetensors";
const index = "model.safetensors.index.json";

export interface BaseOptions {
  signal: AbortSignal;
  /** False: only the files beside the weights are needed. */
  weights: boolean;
  onNotice(message: string): void;
  onProgress(file: string, receivedBytes: number, totalBytes: number): void;
}

/** Finds a base model; files of the hub are downloaded into its cache. */
export async function openBaseModel(name: string, options: BaseOptions): Promise<BaseModel> {
  const folder = existsSync(join(name, "config.json")) ? resolve(name) : bundledModel(name);
  if (folder !== undefined) {
    const names = readdirSync(folder).filter((file) => statSync(join(folder, file)).isFile());
    return { name, files: new Map(wanted(names, options.weights).map((file) => [file, join(folder, file)])) };
  }
  if (existsSync(name) || !isHubId(name))
    throw new ExportError(
      "export/no-base",
      existsSync(name)
        ? `base=${name} is no model folder: it has no config.json. Name one that has.`
        : `base=${name} is neither a folder here nor a name like owner/model of the hub. Name the folder with the base model's weights.`,
    );
  const hub = new Hub({ onNotice: options.onNotice });
  const snapshot = await hub.snapshot({ type: "model", id: name }, options.signal);
  return { name, files: await downloadAll(hub, snapshot, options) };
}

async function downloadAll(hub: Hub, snapshot: HubSnapshot, options: BaseOptions): Promise<Map<string, string>> {
  const { signal, onProgress } = options;
  const files = new Map<string, string>();
  const names = wanted(
    snapshot.files.map(({ path }) => path),
    options.weights,
  );
  const fetchFile = async (file: HubFile) =>
    files.set(
      file.path,
      await hub.download(snapshot, file, {
        signal,
        onProgress: ({ receivedBytes, totalBytes }) => onProgress(file.path, receivedBytes, totalBytes),
      }),
    );
  for (const file of snapshot.files) if (names.includes(file.path)) await fetchFile(file);
  if (!options.weights || files.has(single) || !files.has(index)) return files;
  const shards = new Set(weightMap(files.get(index)!).values());
  for (const file of snapshot.files) if (shards.has(file.path)) await fetchFile(file);
  return files;
}

/** The files to take; the weights are in one file, or in those that the index names, which follow. */
function wanted(names: readonly string[], weights: boolean): string[] {
  const kept = names.filter((name) => companions.test(name) || name === "README.md");
  if (!weights) return kept;
  if (names.includes(single)) return [...kept, single];
  // In a folder the shards are here already; on the hub they are downloaded once the index says which.
  return [...kept, ...names.filter((name) => name === index || /^model-\d+-of-\d+\.safetensors$/.test(name))];
}

/** Files that a merged model takes along as they are. */
export const companionsOf = ({ files }: BaseModel): [name: string, path: string][] =>
  [...files].filter(([name]) => companions.test(name));

export interface BaseTensor {
  entry: TensorEntry;
  file: SafetensorsFile;
}

/** Every tensor of a base model, in the order of its files. */
export class BaseWeights {
  readonly tensors: ReadonlyMap<string, BaseTensor>;
  readonly #files: SafetensorsFile[] = [];

  constructor({ name, files }: BaseModel) {
    const tensors = new Map<string, BaseTensor>();
    this.tensors = tensors;
    try {
      for (const path of weightPaths(name, files)) {
        const file = new SafetensorsFile(path);
        this.#files.push(file);
        const entries = [...file.entries.values()].sort((first, second) => first.start - second.start);
        for (const entry of entries) tensors.set(entry.name, { entry, file });
      }
    } catch (error) {
      this.close();
      throw error;
    }
  }

  close(): void {
    for (const file of this.#files.splice(0)) file.close();
  }
}

function weightPaths(name: string, files: ReadonlyMap<string, string>): string[] {
  const whole = files.get(single);
  if (whole !== undefined) return [whole];
  const indexPath = files.get(index);
  if (indexPath === undefined)
    throw new ExportError(
      "export/no-base",
      `base=${name} holds neither ${single} nor ${index}. Name a folder or a repository with safetensors weights.`,
    );
  return [...new Set(weightMap(indexPath).values())].sort().map((shard) => {
    const path = files.get(shard);
    if (path !== undefined) return path;
    throw new ExportError("export/no-base", `base=${name} lacks ${shard}, which its index names. Download it again.`);
  });
}

function weightMap(path: string): Map<string, string> {
  const { weight_map: map } = readJsonFile(path);
  const entries = Object.entries((map ?? {}) as Record<string, unknown>);
  // A shard lies beside its index, never elsewhere.
  for (const [tensor, shard] of entries)
    if (typeof shard !== "string" || basename(shard) !== shard)
      throw new ExportError(
        "export/no-base",
        `${path} puts ${tensor} into ${JSON.stringify(shard)}. Do not use this model.`,
      );
  return new Map(entries as [string, string][]);
}

/** A JSON file that must hold an object. */
export function readJsonFile(path: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(readFileSync(path, "utf8"));
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
  } catch (error) {
    throw new ExportError("export/no-base", `${path} cannot be read as JSON. Download the file again.`, {
      cause: error,
    });
  }
  throw new ExportError("export/no-base", `${path} is not a JSON object. Download the file again.`);
}

/** The licence that a model's card states; undefined where it states none. */
export function licenceOf({ files }: BaseModel): { id: string; name?: string; link?: string } | undefined {
  const path = files.get("README.md");
  if (path === undefined) return undefined;
  const [, front] = /^---\r?\n([\s\S]*?)\r?\n---/.exec(readFileSync(path, "utf8")) ?? [];
  const field = (key: string) => new RegExp(`^${key}:\\s*["']?([\\w.:/ -]+?)["']?\\s*$`, "m").exec(front ?? "")?.[1];
  const [id, name, link] = [field("license"), field("license_name"), field("license_link")];
  return id === undefined ? undefined : { id, ...(name ? { name } : {}), ...(link ? { link } : {}) };
}
