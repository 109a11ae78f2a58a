// Settings from the environment: the `.env` file of the working directory, or else of the checkout. Variables already set win.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { ConfigError, messageOf } from "../core/errors.ts";

/** The root of the checkout. */
export const projectRoot = fileURLToPath(new URL("../../", import.meta.url));

/** Loads `.env`; does nothing where there is none. Returns the file that was read. */
export function loadEnvironmentFile(folders: readonly string[] = [process.cwd(), projectRoot]): string | undefined {
  const file = folders.map((folder) => join(folder, ".env")).find((path) => existsSync(path));
  if (file === undefined) return undefined;
  try {
    process.loadEnvFile(file);
  } catch (error) {
    throw new ConfigError("config/env-file", `${file} cannot be read: ${messageOf(error)}. Fix it or remove it.`, {
      cause: error,
    });
  }
  return file;
}
