// Finds and reads the files of a tokenizer: in a folder, among the bundled models, or on the Hugging Face hub.
import { readdir, readFile, stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { bundledModel } from "../core/bundled.ts";
import { messageOf } from "../core/errors.ts";
import { withoutVariant } from "../core/model-name.ts";
import { ggufFolder, isGguf } from "../gguf/index.ts";
import type { Hub } from "../hub/hub.ts";
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
  /** The parsed generation_config.json, or {}. */
  generation: Record<string, unknown>;
  chatTemplate: string | undefined;
}

/** The tokenizer.json that `source` (a folder, a file, a GGUF file, or the name of a bundled model) means, if there is one on this machine. */
export async function findLocally(source: string): Promise<string | undefined> {
  if (isGguf(source)) return join(await ggufFolder(source), "tokenizer.json");
  const bundled = bundledModel(withoutVariant(source));
  for (const candidate of bundled === undefined ? [source] : [source, bundled]) {
    const entry = await stat(candidate).catch(() => undefined);
    if (entry?.isFile()) return candidate;
    if (!entry?.isDirectory()) continue;
    const file = join(candidate, "tokenizer.json");
    if (await stat(file).catch(() => undefined)) return file;
    throw withoutTokenizerJson(`The folder ${candidate}`, await readdir(candidate).catch(() => []));
  }
  return undefined;
}

/** Vocabularies in other formats: what a folder without tokenizer.json has instead. */
const otherVocabularies: Readonly<Record<string, string>> = {
  "tiktoken.model": "a tiktoken vocabulary",
  "tokenizer.model": "a SentencePiece model",
  "spiece.model": "a SentencePiece model",
  "tekken.json": "a Tekken vocabulary of mistral-common",
  "vocab.json": "the vocabulary and merges of a slow tokenizer",
  "vocab.txt": "a WordPiece vocabulary",
};

function withoutTokenizerJson(where: string, files: readonly string[]): TokenizerError {
  const other = Object.keys(otherVocabularies).find((name) => files.includes(name));
  if (other === undefined) {
    return new TokenizerError(
      "tokenizer/not-found",
      `${where} has no tokenizer.json. Give a Hugging Face model folder that has one, or the file itself.`,
    );
  }
  return new TokenizerError(
    "tokenizer/unsupported",
    `${where} has no tokenizer.json but ${other}, ${otherVocabularies[other]}, which cannot be read here. Convert it with ` +
      "transformers (a fast tokenizer's save_pretrained writes tokenizer.json), and set tokenizer= to that folder.",
  );
}

/** Where the files of one tokenizer are; only the first must be there. */
export interface TokenizerPaths {
  tokenizer: string;
  config?: string | undefined;
  generation?: string | undefined;
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
    generation: join(folder, "generation_config.json"),
    chatTemplate: join(folder, "chat_template.jinja"),
  };
}

/** Downloads the tokenizer of a model of the Hugging Face hub into its cache. */
export async function downloadTokenizer(id: string, hub: Hub, signal?: AbortSignal): Promise<TokenizerPaths> {
  const snapshot = await hub.snapshot({ type: "model", id }, signal);
  const fetchFile = async (path: string) => {
    const file = snapshot.files.find((candidate) => candidate.path === path);
    return file && hub.download(snapshot, file, { signal });
  };
  const [tokenizer, config, generation, chatTemplate] = await Promise.all(
    ["tokenizer.json", "tokenizer_config.json", "generation_config.json", "chat_template.jinja"].map(fetchFile),
  );
  if (tokenizer !== undefined) return { tokenizer, config, generation, chatTemplate };
  throw withoutTokenizerJson(
    `The model ${id} at ${hub.endpoint}`,
    snapshot.files.map((file) => file.path),
  );
}

/** Reads the files of a tokenizer. */
export async function readTokenizerFiles(paths: TokenizerPaths, name: string): Promise<TokenizerFiles> {
  const tokenizer = await readJson(paths.tokenizer, name);
  if (tokenizer === undefined) {
    throw new TokenizerError("tokenizer/not-found", `There is no file ${paths.tokenizer}. Check the path.`);
  }
  const config = (paths.config && (await readJson(paths.config, name))) || {};
  const generation = (paths.generation && (await readJson(paths.generation, name))) || {};
  const template = paths.chatTemplate && (await readText(paths.chatTemplate));
  return {
    name,
    paths,
    tokenizer,
    config,
    generation,
    chatTemplate: template ?? templateOf(config["chat_template"]),
  };
}

/** A config's template: one text, or several by name, of which the default one is meant. */
function templateOf(value: unknown): string | undefined {
  if (typeof value === "string") return value;
  if (!Array.isArray(value)) return undefined;
  const named = value as { name?: unknown; template?: unknown }[];
  const { template } = named.find(({ name }) => name === "default") ?? named[0] ?? {};
  return typeof template === "string" ? template : undefined;
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
