// What the engine refuses or cannot do, one class. The server maps `fault` to the category that a Tinker client sees.
import { WhetstoneError } from "../core/errors.ts";

/** "user": the request or the files given are wrong; "server": this machine could not do it (disk full, a crash). */
export type Fault = "user" | "server";

export class EngineError extends WhetstoneError {
  readonly fault: Fault;

  constructor(code: string, message: string, options: ErrorOptions & { fault?: Fault } = {}) {
    super(code, message, options.cause === undefined ? undefined : { cause: options.cause });
    this.fault = options.fault ?? "user";
  }
}
