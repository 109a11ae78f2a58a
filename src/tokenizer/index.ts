// `whetstone/tokenizer`: text to token ids and back, with the tokenizer of a model.
export type { DecodeStream } from "./decode.ts";
export { TokenizerError } from "./errors.ts";
export { type LoadOptions, loadTokenizer } from "./load.ts";
export type { AddedToken, DecodeOptions, EncodeOptions, Tokenizer } from "./tokenizer.ts";
