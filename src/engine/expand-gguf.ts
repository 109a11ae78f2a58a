// A model of a GGUF file for those that read safetensors alone: its weights in float32, beside the files that were made of it.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { replaceFile } from "../core/files.ts";
import { weightsLink } from "../gguf/index.ts";
import { readConfig, readWeights } from "./hf-folder.ts";
import { writeSafetensors } from "./write-safetensors.ts";

/** Writes model.safetensors into the folder of a GGUF file; does nothing to other folders, or twice. */
export function expandGguf(folder: string): void {
  const path = join(folder, "model.safetensors");
  if (!existsSync(join(folder, weightsLink)) || existsSync(path)) return;
  replaceFile(path, (temporary) => writeSafetensors(temporary, readWeights(folder, readConfig(folder))));
}
