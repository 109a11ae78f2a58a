// The base model that an adapter belongs to: a folder of this machine, a bundled model, or a repository of the Hugging Face hub. What a
// merged model takes along of it, and every tensor of its weights, wherever its files are.

import { readdirSync, readFileSync, statSync } from "node:fs";
import { basename, join } from "node:path";
import { isRecord } from "../core/json.ts";
import { expandGguf } from "../engine/expand-gguf.ts";
import { SafetensorsFile, type TensorEntry } from "../engine/safetensors.ts";
import { HubError } from "../hub/errors.ts";
import { companions, type ModelFolderOptions, modelFolder } from "../hub/model-folder.ts";
import { ExportError } from "./errors.ts";

export interface BaseModel {
  /** What was asked for. */
  name: string;
  /** The local path of each file, by its name in the model. */
  files: ReadonlyMap<string, string>;
}

const single = "model.safetensors";
const index = "model.safetensors.index.json";

/** Finds a base model; files of the hub are downloaded into its cache. */
export async function openBaseModel(name: string, options: ModelFolderOptions): Promise<BaseModel> {
  let folder: string;
  try {
    folder = await modelFolder(name, options);
  } catch (error) {
    if (!(error instanceof HubError) || error.code !== "hub/no-model") throw error;
    throw new ExportError("export/no-base", `base=${error.message}`, { cause: error });
  }
  if (options.weights !== false) expandGguf(folder);
  const names = readdirSync(folder).filter((file) => statSync(join(folder, file)).isFile());
  return { name, files: new Map(names.map((file) => [file, join(folder, file)])) };
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
    if (isRecord(value)) return value;
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
