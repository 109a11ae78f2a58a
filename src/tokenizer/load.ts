// From a name to a tokenizer.
import { TokenizerError } from "./errors.ts";
import { findLocally, readTokenizerFiles } from "./files.ts";
import { ByteLevelTokenizer, type Tokenizer } from "./tokenizer.ts";

/** Loads a tokenizer from a model folder, a tokenizer.json or the name of a bundled model. */
export async function loadTokenizer(source: string): Promise<Tokenizer> {
  const path = await findLocally(source);
  if (!path) {
    throw new TokenizerError(
      "tokenizer/not-found",
      `No tokenizer found for ${JSON.stringify(source)}. Check the path.`,
    );
  }
  return new ByteLevelTokenizer(await readTokenizerFiles(path, source));
}
