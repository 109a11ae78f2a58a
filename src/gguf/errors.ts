import { WhetstoneError } from "../core/errors.ts";

/** A GGUF file is damaged, or holds what cannot be computed faithfully. */
export class GgufError extends WhetstoneError {}

export function badFile(path: string, what: string): GgufError {
  return new GgufError("gguf/bad-file", `${path} ${what}. Copy or download the file again.`);
}
