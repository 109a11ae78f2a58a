// Stop strings: the engine knows token ids only, so it asks after every token whether the text so far ends the sample.

import type { Tokenizer } from "../tokenizer/index.ts";

/** Token ids → text, as the model's tokenizer decodes them, control tokens written out: a stop string may begin or end inside one. */
export type Decode = (tokens: readonly number[]) => string;

/** What the server has to know about a model's text. */
export interface ModelText {
  decode: Decode;
  /** The id of a control token by its text: such a stop string is a stop token. */
  controlToken?: (text: string) => number | undefined;
  /** Tokens that end every sample, as the model's own configuration says. */
  endTokens?: readonly number[];
}

/** A predicate over a sample's tokens so far: true once their text holds one of the strings. */
export function stopAtStrings(strings: readonly string[], decode: Decode): (tokens: readonly number[]) => boolean {
  // The newest token completes a match, so only the end of the text can be new. A token stands for at least one byte in nearly
  // every tokenizer; where some decode to nothing, the window grows until its text is long enough.
  const longest = Math.max(...strings.map((text) => Buffer.byteLength(text)));
  return (tokens) => {
    for (let window = longest + 4; ; window *= 2) {
      const text = decode(tokens.slice(-window));
      if (strings.some((stop) => text.includes(stop))) return true;
      if (window >= tokens.length || Buffer.byteLength(text) >= longest + 8) return false;
    }
  };
}

/** A tokenizer as the server uses it for stop strings. */
export function modelText(tokenizer: Tokenizer): ModelText {
  return {
    decode: (tokens) => tokenizer.decode(tokens),
    controlToken(token) {
      const id = tokenizer.tokenId(token);
      return id !== undefined && tokenizer.isSpecial(id) ? id : undefined;
    },
  };
}
