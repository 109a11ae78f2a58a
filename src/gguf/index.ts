// GGUF files: their numbers as float32, and each as the Hugging Face folder that it would be.
export { blockTypes } from "./block-types.ts";
export { GgufFile } from "./file.ts";
export { ggufFolder, isGguf, weightsLink } from "./folder.ts";
export { readWeight, tensorOf } from "./names.ts";
