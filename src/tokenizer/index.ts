// The public entry "whetstone/tokenizer".
export { DecodeStream } from "./decode.ts";
export { TokenizerError } from "./errors.ts";
export { loadTokenizer } from "./load.ts";
export type { DecodeOptions, EncodeOptions, Tokenizer } from "./tokenizer.ts";
