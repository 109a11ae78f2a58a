import { WhetstoneError } from "../core/errors.ts";

/** A tokenizer could not be found, read or used. */
export class TokenizerError extends WhetstoneError {}
