// The environment that env= names: a file, or an npm package, whose default export is one. What is wrong with it is reported with
// its place, before anything is asked of a model.
import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, resolve } from "node:path";
import { ConfigError, messageOf, WhetstoneError } from "../../core/errors.ts";
import { importModule } from "../../core/import-module.ts";
import { whet } from "../../core/program.ts";
import type { TrainingProblem } from "../own-problems.ts";
import { codeEnvironmentNames } from "./code.ts";
import { type Environment, isEnvironment } from "./environment.ts";
import { placeIn } from "./place.ts";
import { environmentProblems } from "./problems.ts";
import { readTools, type ToolSet } from "./tools.ts";

/** A user's environment, with its problems. */
export interface LoadedEnvironment {
  environment: Environment;
  problems: readonly TrainingProblem[];
  testProblems: readonly TrainingProblem[];
  file: string;
  /** Changes when the module does, or one that it imports by a relative name. */
  fingerprint: string;
}

/** How often somebody who waits is reminded. */
const remindMs = 20_000;

/** Loads the module; `tell` is called where that takes long. */
export async function loadEnvironment(named: string, tell: (line: string) => void): Promise<LoadedEnvironment> {
  const file = fileOf(named);
  return withReminders(named, tell, async () => {
    const environment = await defaultExportOf(named, file);
    const problems = await checkedIn(environment).catch((error: unknown) => {
      if (!(error instanceof WhetstoneError)) throw error;
      throw new ConfigError(error.code, `${file}: ${error.message}`, { cause: error });
    });
    return { environment, ...problems, file, fingerprint: fingerprintOf(file) };
  });
}

/** Calls `tell` now and then while an environment is loaded. */
export async function withReminders<Loaded>(
  named: string,
  tell: (line: string) => void,
  load: () => Promise<Loaded>,
): Promise<Loaded> {
  const started = performance.now();
  // It also keeps the process up where nothing but the module's own promise is waited for.
  const waiting = setInterval(
    () => tell(`env=${named} is still being loaded (${Math.round((performance.now() - started) / 1000)} s)`),
    remindMs,
  );
  try {
    return await load();
  } finally {
    clearInterval(waiting);
  }
}

/** Its problems; what is wrong with them or with its tools is found before anything is played. */
async function checkedIn(environment: Environment): Promise<Pick<LoadedEnvironment, "problems" | "testProblems">> {
  const { tools } = environment;
  if (typeof tools !== "function") await readTools(tools as ToolSet | undefined);
  return environmentProblems(environment);
}

async function defaultExportOf(named: string, file: string): Promise<Environment> {
  let exported: Readonly<Record<string, unknown>>;
  const ended = () => {
    process.stderr.write(`${file} ended the process while it was loaded (process.exit): leave that out.\n`);
    process.exitCode = 1;
  };
  process.once("exit", ended);
  try {
    exported = await importModule(file);
  } catch (cause) {
    const place = placeIn(cause, dirname(file));
    const what = messageOf(cause).replace(/\.$/, "");
    throw bad(`env=${named} cannot be loaded: ${what}${place === undefined ? "" : ` (${place})`}. Mend it`, cause);
  } finally {
    process.off("exit", ended);
  }
  const { default: environment } = exported;
  if (isEnvironment(environment)) return environment;
  const remedy = "End the module with: export default environment({ problems, reward })";
  if (environment instanceof Promise) throw bad(`The default export of ${file} is a promise. Await it there`);
  if (environment !== undefined)
    throw bad(`The default export of ${file} is ${kindOf(environment)} and no environment. ${remedy}`);
  const names = Object.keys(exported);
  throw bad(`${file} has no default export${names.length > 0 ? ` (it exports ${names.join(", ")})` : ""}. ${remedy}`);
}

const bad = (what: string, cause?: unknown) =>
  new ConfigError("config/environment-module", `${what}; nothing was asked of a model yet.`, { cause });

const kindOf = (value: unknown): string =>
  typeof value === "function"
    ? "a function"
    : value === null
      ? "null"
      : Array.isArray(value)
        ? "a list"
        : `a ${typeof value}`.replace("a object", "an object");

const isFileName = (name: string) => /^\.{0,2}[/\\]|\.[cm]?[jt]s$/.test(name);

/** The file of a module: of a package, its entry, as it is installed where the command was typed. */
function fileOf(named: string): string {
  if (isFileName(named) || existsSync(named)) {
    const file = resolve(named);
    if (existsSync(file)) return file;
    throw bad(`env=${named}: there is no file ${file}. ${whet} init --env writes an example`);
  }
  const { resolve: find } = createRequire(join(process.cwd(), "here.js"));
  try {
    return find(named);
  } catch (cause) {
    const entry = importedEntryOf(named);
    if (entry !== undefined) return entry;
    throw bad(
      `env=${named} is neither a file nor an npm package that is installed here. Name a file, such as env=./guess.ts (${whet} init --env writes one); ` +
        `or type npm install ${named}; or take one that is built in: ${codeEnvironmentNames.join(", ")}`,
      cause,
    );
  }
}

/** The entry of a package that can only be imported. */
function importedEntryOf(name: string): string | undefined {
  for (let folder = process.cwd(); ; folder = dirname(folder)) {
    const place = join(folder, "node_modules", name);
    if (existsSync(join(place, "package.json"))) {
      const { exports } = JSON.parse(readFileSync(join(place, "package.json"), "utf8")) as { exports?: unknown };
      let target = (exports as Record<string, unknown> | undefined)?.["."] ?? exports;
      while (typeof target === "object" && target !== null) {
        const { node, import: imported, default: other } = target as Record<string, unknown>;
        target = node ?? imported ?? other;
      }
      return typeof target === "string" ? join(place, target) : undefined;
    }
    if (folder === dirname(folder)) return undefined;
  }
}

/** Of the module's text and of what it imports by relative names. */
function fingerprintOf(entry: string): string {
  const hash = createHash("sha256");
  const seen = new Set([entry]);
  for (const file of seen) {
    const text = readFileSync(file, "utf8");
    hash.update(`${text.length}\n`).update(text);
    for (const [, named] of text.matchAll(/\b(?:from|import)\s*\(?\s*["'](\.{1,2}\/[^"']+)["']/g)) {
      const path = resolve(dirname(file), named!);
      if (existsSync(path)) seen.add(path);
    }
  }
  return hash.digest("hex").slice(0, 16);
}
