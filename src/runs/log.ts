// Messages for people: every line goes to logs.log with its time and level, and to the console. Secrets are blanked on the way.
import { appendFileSync } from "node:fs";

export type Level = "INFO" | "WARNING" | "ERROR";

/** Where a run's messages go. `detail` is for the file alone. */
export interface Logger {
  info(message: string): void;
  warn(message: string): void;
  error(message: string): void;
  detail(message: string): void;
}

/** Environment variables whose values must never be written anywhere. */
const secretName = /(_KEY|_TOKEN|_SECRET|PASSWORD)$/;

/** Replaces the values of secret environment variables, and credentials inside URLs, by a mark. */
export function redact(text: string, environment: NodeJS.ProcessEnv = process.env): string {
  let clean = text.replaceAll(/(\w+:\/\/)[^\s/@]+@/g, "$1***@");
  for (const [name, value] of Object.entries(environment)) {
    if (value && value.length >= 8 && secretName.test(name)) clean = clean.replaceAll(value, "***");
  }
  return clean;
}

export class RunLogger implements Logger {
  readonly #path: string;
  readonly #print: (line: string, level: Level) => void;

  /** `print` shows a line to a person; the file gets every line. */
  constructor(path: string, print: (line: string, level: Level) => void) {
    this.#path = path;
    this.#print = print;
  }

  info(message: string): void {
    this.#write("INFO", message, true);
  }

  warn(message: string): void {
    this.#write("WARNING", message, true);
  }

  error(message: string): void {
    this.#write("ERROR", message, true);
  }

  detail(message: string): void {
    this.#write("INFO", message, false);
  }

  #write(level: Level, message: string, print: boolean): void {
    const clean = redact(message);
    try {
      appendFileSync(this.#path, `${new Date().toISOString()} [${level}] ${clean}\n`);
    } catch (error) {
      // The run's facts are in metrics.jsonl; a log that cannot be written must not end the run.
      this.#print(`logs.log could not be written (${(error as Error).message})`, "WARNING");
    }
    if (print) this.#print(clean, level);
  }
}
