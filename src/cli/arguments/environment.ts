// Settings from the environment: the `.env` file of the working directory, or else of the checkout. Variables already set win.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { ConfigError, messageOf } from "../../core/errors.ts";
import { readEnvText } from "./env-text.ts";

/** The root of the checkout. */
export const projectRoot = fileURLToPath(new URL("../../../", import.meta.url));

/** Loads `.env`; does nothing where there is none. Lines that set nothing are reported to `warn`, by number alone. */
export function loadEnvironmentFile(
  warn: (message: string) => void,
  folders: readonly string[] = [process.cwd(), projectRoot],
  environment: NodeJS.ProcessEnv = process.env,
): void {
  const file = folders.map((folder) => join(folder, ".env")).find((path) => existsSync(path));
  if (file === undefined) return;
  const { values, problems } = readEnvText(readText(file), (name) => environment[name]);
  for (const { line, what } of problems) warn(`${file}, line ${line} ${what} and is left out. Write NAME=value.`);
  for (const [name, value] of values) environment[name] ??= value;
}

function readText(file: string): string {
  const refused = (what: string, cause?: unknown) =>
    new ConfigError("config/env-file", `${file} cannot be read: ${what}. Fix it or remove it.`, { cause });
  let bytes: Buffer;
  try {
    bytes = readFileSync(file);
  } catch (error) {
    throw refused(messageOf(error), error);
  }
  if (bytes.includes(0)) throw refused("it is not UTF-8 text (an editor may have saved it as UTF-16)");
  return bytes.toString("utf8");
}
