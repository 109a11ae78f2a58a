// `@run.json` on a command line: keys from a file of JSON, in which comments and a last comma may stand. The config.json that a run
// wrote is such a file too: what a run found out besides its settings is passed over, and its directory is not used again. Paths that
// begin with ./ are relative to the file.
import { readFileSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { ConfigError, messageOf } from "../../core/errors.ts";
import { JsonTextError, readJsonText } from "../../core/json-text.ts";
import { isRedacted } from "../../runs/log.ts";

export interface ConfigFile {
  entries: { name: string; value: unknown; shown: string; origin: string }[];
  /** It is the record of a run, which also holds facts that are no settings. */
  ofRun: boolean;
  /** What was left out and may be missed. */
  notices: string[];
}

/** The keys of a config file. Throws ConfigError with file and line. */
export function readConfigFile(path: string): ConfigFile {
  const wrong = (what: string) =>
    new ConfigError(
      "config/config-file",
      `${path}${what} Write one JSON object of keys, e.g. {"max_steps": 20}; // comments are allowed.`,
    );
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    throw wrong(` cannot be read: ${messageOf(error)}.`);
  }
  const { value, keyLines } = parse(text.replace(/^\uFEFF/, ""), wrong);
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw wrong(" holds no JSON object.");
  const settings = value as Record<string, unknown>;
  const ofRun = Object.hasOwn(settings, "started_at") && Object.hasOwn(settings, "data_fingerprint");
  const notices: string[] = [];
  const entries = Object.entries(settings).flatMap(([name, item]) => {
    const origin = `${path}, line ${keyLines.get(name)}`;
    if (ofRun && name === "log_path") return [];
    if (isRedacted(item)) {
      notices.push(`${origin}: ${name} was written without its password and is left out; give it again`);
      return [];
    }
    const value = typeof item === "string" && !ofRun ? besideFile(item, path) : item;
    const shown = typeof value === "string" ? value : JSON.stringify(value);
    return [{ name: name.replaceAll("-", "_"), value, shown, origin }];
  });
  return { entries, ofRun, notices };
}

/** Paths that begin with ./ or ../ are meant from where the file is. */
function besideFile(value: string, file: string): string {
  return value.replaceAll(/(^|,)(\s*)(\.\.?\/[^,]*)/g, (_, comma: string, blank: string, path: string) => {
    return `${comma}${blank}${resolve(dirname(file), path)}`;
  });
}

function parse(text: string, wrong: (what: string) => ConfigError) {
  try {
    return readJsonText(text, { comments: true });
  } catch (error) {
    if (error instanceof JsonTextError)
      throw wrong(`, line ${error.line}, column ${error.column} is not JSON: ${error.message}.`);
    throw error;
  }
}
