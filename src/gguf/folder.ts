// A GGUF file as the folder that the same model would be on the Hugging Face hub: config.json, tokenizer.json and what stands beside
// them, with a link to the file in the place of its weights. Made once per file, in the cache.
import { createHash } from "node:crypto";
import { existsSync, realpathSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { cacheFolder } from "../core/cache.ts";
import { makeOnce } from "../core/files.ts";
import { configOf } from "./config.ts";
import { GgufFile } from "./file.ts";
import { tokenizerOf } from "./tokenizer.ts";

/** The weights in such a folder. */
export const weightsLink = "model.gguf";
/** Goes into the folder's name, so that folders of another form are made anew. */
const form = 1;

export const isGguf = (path: string): boolean => path.endsWith(".gguf") && existsSync(path);

export async function ggufFolder(path: string): Promise<string> {
  const real = realpathSync(path);
  const { size, mtimeMs } = statSync(real);
  const key = createHash("sha256")
    .update(JSON.stringify([form, real, size, mtimeMs]))
    .digest("hex")
    .slice(0, 16);
  const folder = join(cacheFolder(), "gguf", key);
  await makeOnce(folder, async (draft) => {
    const file = new GgufFile(real);
    try {
      const files = { "config.json": configOf(file), ...tokenizerOf(file) };
      for (const [name, content] of Object.entries(files)) writeFileSync(join(draft, name), JSON.stringify(content));
      symlinkSync(real, join(draft, weightsLink));
    } finally {
      file.close();
    }
  });
  return folder;
}
