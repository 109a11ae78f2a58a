// Stop strings: the engine knows token ids only, so it asks after every token whether the text so far ends the sample.

/** Token ids → text, as the model's tokenizer decodes them. */
export type Decode = (tokens: readonly number[]) => string;

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
