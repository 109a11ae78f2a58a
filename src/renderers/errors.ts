import { WhetstoneError } from "../core/errors.ts";

/** A conversation cannot be written, or a response cannot be read, in the format asked for. */
export class RendererError extends WhetstoneError {}
