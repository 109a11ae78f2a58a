// From a name to a tokenizer.
import { tokenizerIdOf } from "../core/model-name.ts";
import { Hub, isHubId } from "../hub/hub.ts";
import { TokenizerError } from "./errors.ts";
import { besideTokenizer, downloadTokenizer, findLocally } from "./files.ts";
import { openTokenizer, type Tokenizer } from "./tokenizer.ts";

/** Where a tokenizer comes from. */
export interface LoadOptions {
  /** Where models that are not on this machine come from. Default: the hub of HF_ENDPOINT, with HF_TOKEN. */
  hub?: Hub;
  /** Ends a download. */
  signal?: AbortSignal;
}

/**
 * Loads a tokenizer: from a model folder, a tokenizer.json, a bundled model's name ("nano-coder") or a hub id ("Qwen/Qwen3-8B"). The name of
 * a hosted model's variant ("Qwen/Qwen3-8B:peft:131072") stands for the model, and that of a Llama 3 for the copy that needs no permission.
 */
export async function loadTokenizer(source: string, options: LoadOptions = {}): Promise<Tokenizer> {
  const local = await findLocally(source);
  if (local) return openTokenizer(besideTokenizer(local), source);
  const id = tokenizerIdOf({ modelName: source }) ?? source;
  if (!isHubId(id)) {
    throw new TokenizerError(
      "tokenizer/not-found",
      `No tokenizer for ${JSON.stringify(source)}: it is no folder or file here, no bundled model, and no name of the form owner/model. ` +
        "Give a model folder, a tokenizer.json or a Hugging Face id.",
    );
  }
  return openTokenizer(await downloadTokenizer(id, options.hub ?? new Hub(), options.signal), source);
}
