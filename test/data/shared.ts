// What tests use from ../shared, the read-only folder beside the repository: the real Qwen3 tokenizer and the golden vectors. A
// checkout without that folder skips the tests that need it, and says so.
import { copyFileSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { gunzipSync } from "node:zlib";
import { temporaryFolders } from "../support/folders.ts";

const data = fileURLToPath(new URL("../../../shared/data/", import.meta.url));

export const sharedIsThere = existsSync(join(data, "golden"));
if (!sharedIsThere) console.warn(`skipping the golden vectors: ${data} is not there`);

/** Vectors of one file under golden/. */
export function golden<T>(name: string, read = (path: string): unknown => JSON.parse(readFileSync(path, "utf8"))): T[] {
  const parsed = read(join(data, "golden", `${name}.json`)) as T[] | { vectors: T[] };
  return Array.isArray(parsed) ? parsed : parsed.vectors;
}

/** Makes folders that are gone when the test file ends. */
export const temporaryFolder = temporaryFolders();

/** A temporary model folder with the real Qwen3 tokenizer and chat template. */
export function qwen3Folder(): string {
  const folder = temporaryFolder();
  const source = join(data, "qwen3-tokenizer");
  writeFileSync(join(folder, "tokenizer.json"), gunzipSync(readFileSync(join(source, "tokenizer.json.gz"))));
  copyFileSync(join(source, "tokenizer_config.json"), join(folder, "tokenizer_config.json"));
  return folder;
}
