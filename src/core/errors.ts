// The one base class of every error Whetstone raises on purpose. A subclass marks a boundary that a failure can cross
// (client, server, sandbox, config …); `code` is stable and documented in docs/errors.md.

/** An error with a stable code and a message that says what happened (with the value seen) and what to do next. */
export class WhetstoneError extends Error {
  /** Stable, and documented in docs/errors.md: `area/what`. */
  readonly code: string;
  /** A command that goes on from here; `./whet` prints it below the message. */
  next?: string;

  constructor(code: string, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = new.target.name;
    this.code = code;
  }
}

/** The command line or a config value is wrong: exit code 2. */
export class ConfigError extends WhetstoneError {}

/** The message of anything that was thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
