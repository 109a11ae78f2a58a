import { WhetstoneError } from "../core/errors.ts";

/** Grading cannot start, or must not go on. */
export class GradingError extends WhetstoneError {}
