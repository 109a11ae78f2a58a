// An answer token by token, as text with its log-probabilities. The run's tokenizer is taken from this machine: a dashboard asks nobody.

import { messageOf } from "../core/errors.ts";
import { Hub } from "../hub/hub.ts";
import { loadTokenizer, type Tokenizer } from "../tokenizer/index.ts";

const loading = new Map<string, Promise<Tokenizer>>();

/** The tokenizer of a run; rejects where its files are not on this machine. */
export function tokenizerOf(config: Readonly<Record<string, unknown>>): Promise<Tokenizer> {
  const name = String(config["tokenizer"] || (config["model_name"] ?? ""));
  let tokenizer = loading.get(name);
  if (!tokenizer) {
    tokenizer = loadTokenizer(name, { hub: new Hub({ offline: true }) });
    // Tried again next time: it may be there by then.
    tokenizer.catch(() => loading.delete(name));
    loading.set(name, tokenizer);
  }
  return tokenizer;
}

/** The text of each token; a character spread over several stands with the last of them. Without a tokenizer, the numbers. */
export async function pieces(
  config: Readonly<Record<string, unknown>>,
  ids: Int32Array,
): Promise<{ pieces: string[]; note: string | null }> {
  try {
    const tokenizer = await tokenizerOf(config);
    const stream = tokenizer.decodeStream();
    const texts = Array.from(ids, (id) => stream.push(id));
    if (texts.length > 0) texts[texts.length - 1] += stream.end();
    return { pieces: texts, note: null };
  } catch (error) {
    return { pieces: Array.from(ids, (id) => `[${id}]`), note: messageOf(error) };
  }
}

/** The text of a prompt; null with the reason where it is not known. */
export async function promptText(
  config: Readonly<Record<string, unknown>>,
  ids: Int32Array,
): Promise<{ text: string | null; note: string | null }> {
  try {
    return { text: (await tokenizerOf(config)).decode(ids), note: null };
  } catch (error) {
    return { text: null, note: messageOf(error) };
  }
}
