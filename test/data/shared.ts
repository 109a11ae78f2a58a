// What tests use from ../shared, the read-only folder beside the repository: the real Qwen3 tokenizer and the golden vectors. A
// checkout without that folder skips the tests that need it, and says so.
import { copyFileSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { gunzipSync } from "node:zlib";

const data = fileURLToPath(new URL("../../../shared/data/", import.meta.url));

export const sharedIsThere = existsSync(join(data, "golden"));
if (!sharedIsThere) console.warn(`skipping the golden vectors: ${data} is not there`);

/** Vectors of one file under golden/. */
export function golden<T>(name: string, read = (path: string): unknown => JSON.parse(readFileSync(path, "utf8"))): T[] {
  const parsed = read(join(data, "golden", `${name}.json`)) as T[] | { vectors: T[] };
  return Array.isArray(parsed) ? parsed : parsed.vectors;
}

/** A temporary model folder with the real Qwen3 tokenizer and chat template; removed when the process ends. */
export function qwen3Folder(): string {
  const folder = temporaryFolder();
  const source = join(data, "qwen3-tokenizer");
  writeFileSync(join(folder, "tokenizer.json"), gunzipSync(readFileSync(join(source, "tokenizer.json.gz"))));
  copyFileSync(join(source, "tokenizer_config.json"), join(folder, "tokenizer_config.json"));
  return folder;
}

/** A temporary folder that is removed when the process ends. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "whetstone-"));
  process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
  return folder;
}
