import { WhetstoneError } from "../core/errors.ts";

/** A trained model cannot be taken out of its run as asked. Nothing was left behind. */
export class ExportError extends WhetstoneError {}
