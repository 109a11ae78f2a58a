import { WhetstoneError } from "../core/errors.ts";

/** Problems cannot be found or read. */
export class DataError extends WhetstoneError {}
