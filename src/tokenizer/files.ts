// Finds and reads the files of a tokenizer: in a folder, among the bundled models, or on the Hugging Face hub.
import { readFile, stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { messageOf } from "../core/errors.ts";
import type { Hub } from "../core/hub.ts";
import { TokenizerError } from "./errors.ts";

/** What a tokenizer is made of. */
export interface TokenizerFiles {
  /** For messages: what the user asked for. */
  name: string;
  paths: TokenizerPaths;
  /** The parsed tokenizer.json. */
  tokenizer: object;
  /** The parsed tokenizer_config.json, or {}. */
  config: Record<string, unknown>;
  chatTemplate: string | undefined;
}

const bundledModels = fileURLToPath(new URL("../../models/", import.meta.url));

/** The tokenizer.json that `source` (a folder, a file, or the name of a bundled model) means, if there is one on this machine. */
export async function findLocally(source: string): Promise<string | undefined> {
  for (const candidate of [source, join(bundledModels, source)]) {
    const entry = await stat(candidate).catch(() => undefined);
    if (entry?.isFile()) return candidate;
    if (!entry?.isDirectory()) continue;
    const file = join(candidate, "tokenizer.json");
    if (await stat(file).catch(() => undefined)) return file;
    throw new TokenizerError(
      "tokenizer/not-found",
      `The folder ${candidate} has no tokenizer.json. Give a Hugging Face model folder, or the file itself.`,
    );
  }
  return undefined;
}

/** Where the files of one tokenizer are; only the first must be there. */
export interface TokenizerPaths {
  tokenizer: string;
  config?: string | undefined;
  chatTemplate?: string | undefined;
}

/** The files that stand beside a tokenizer.json. */
export function besideTokenizer(tokenizer: string): TokenizerPaths {
  // A file by another name (a test's, a snapshot) has no neighbours that belong to it.
  if (basename(tokenizer) !== "tokenizer.json") return { tokenizer };
  const folder = dirname(tokenizer);
  return {
    tokenizer,
    config: join(folder, "tokenizer_config.json"),
    chatTemplate: join(folder, "chat_template.jinja"),
  };
}

/** Downloads the tokenizer of a model of the Hugging Face hub into its cache. */
export async function downloadTokenizer(id: string, hub: Hub, signal?: AbortSignal): Promise<TokenizerPaths> {
  const snapshot = await hub.snapshot({ type: "model", id }, signal);
  const fetchFile = async (path: string) => {
    const file = snapshot.files.find((candidate) => candidate.path === path);
    return file && hub.download(snapshot, file, signal ? { signal } : {});
  };
  const [tokenizer, config, chatTemplate] = await Promise.all(
    ["tokenizer.json", "tokenizer_config.json", "chat_template.jinja"].map(fetchFile),
  );
  if (tokenizer !== undefined) return { tokenizer, config, chatTemplate };
  throw new TokenizerError(
    "tokenizer/not-found",
    `The model ${id} has no tokenizer.json at ${hub.endpoint}. Choose a model that has one.`,
  );
}

/** Reads the files of a tokenizer. */
export async function readTokenizerFiles(paths: TokenizerPaths, name: string): Promise<TokenizerFiles> {
  const tokenizer = await readJson(paths.tokenizer, name);
  if (tokenizer === undefined) {
    throw new TokenizerError("tokenizer/not-found", `There is no file ${paths.tokenizer}. Check the path.`);
  }
  const config = (paths.config && (await readJson(paths.config, name))) || {};
  const template = paths.chatTemplate && (await readText(paths.chatTemplate));
  const fromConfig = config["chat_template"];
  return {
    name,
    paths,
    tokenizer,
    config,
    chatTemplate: template ?? (typeof fromConfig === "string" ? fromConfig : undefined),
  };
}

async function readJson(path: string, name: string): Promise<Record<string, unknown> | undefined> {
  const text = await readText(path);
  if (text === undefined) return undefined;
  try {
    return JSON.parse(text) as Record<string, unknown>;
  } catch (error) {
    throw new TokenizerError(
      "tokenizer/bad-file",
      `${path} is not JSON (${messageOf(error)}). Delete it and load the tokenizer of ${name} again.`,
      { cause: error },
    );
  }
}

async function readText(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}
