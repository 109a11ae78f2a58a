// Finds and reads the files of a tokenizer: in a folder, beside a tokenizer.json, or among the bundled models.
import { readFile, stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { messageOf } from "../core/errors.ts";
import { TokenizerError } from "./errors.ts";

/** What a tokenizer is made of. */
export interface TokenizerFiles {
  /** For messages: what the user asked for. */
  name: string;
  /** The path of tokenizer.json. */
  path: string;
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

/** Reads tokenizer.json and, where they stand beside it, tokenizer_config.json and chat_template.jinja. */
export async function readTokenizerFiles(path: string, name: string): Promise<TokenizerFiles> {
  const tokenizer = await readJson(path, name);
  // A file by another name (tests, snapshots) has no neighbours that belong to it.
  const neighbours = basename(path) === "tokenizer.json";
  const config = neighbours ? await readJson(join(dirname(path), "tokenizer_config.json"), name, true) : {};
  const template = neighbours ? await readText(join(dirname(path), "chat_template.jinja")) : undefined;
  const fromConfig = config["chat_template"];
  return {
    name,
    path,
    tokenizer,
    config,
    chatTemplate: template ?? (typeof fromConfig === "string" ? fromConfig : undefined),
  };
}

async function readJson(path: string, name: string, optional = false): Promise<Record<string, unknown>> {
  const text = await readText(path);
  if (text === undefined) {
    if (optional) return {};
    throw new TokenizerError(
      "tokenizer/not-found",
      `The tokenizer file ${path} of ${name} cannot be read. Check the path.`,
    );
  }
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
