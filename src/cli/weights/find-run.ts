// The run that a command is about: named as `./whet runs` lists it, by its path, or `latest`; the newest where none is named.
import { existsSync, readdirSync, realpathSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { z } from "zod";
import { ConfigError } from "../../core/errors.ts";
import { nearest } from "../../core/nearest.ts";
import { whet } from "../../core/program.ts";
import { shellCommand } from "../../core/shell.ts";
import { visibleLine } from "../../core/visible.ts";
import { readRunConfig, runFiles, runsFolder } from "../../runs/directory.ts";
import { findRuns, journalFiles, looksLikeRun, sweepFile } from "../../runs/overview.ts";

/** The key of every command that is about a run. */
export const runKey = z.string().default("").describe("a run: its name, its path or latest; the newest unless named");

interface KnownRun {
  /** The word by which a command finds it from the current folder. */
  name: string;
  path: string;
}

/** The runs of the usual folder and of the current one, or of `folder`; the last written first. */
export function knownRuns(folder?: string): KnownRun[] {
  const folders = folder === undefined ? [runsFolder(), process.cwd()] : [resolve(folder)];
  const paths = new Map(folders.flatMap((place) => findRuns(place)).map((path) => [realpathSync(path), path]));
  return [...paths.values()]
    .map((path) => ({ path, ...journalFiles(path) }))
    .sort((a, b) => b.changedAt - a.changedAt)
    .map(({ path }) => ({ name: nameOf(path), path }));
}

/** The shortest word that finds the run from here. */
function nameOf(path: string): string {
  const inside = (folder: string) => relative(folder, path) || ".";
  const names = [inside(runsFolder()), inside(process.cwd())].filter((name) => !name.startsWith(".."));
  return names.find((name) => lookUp(name) === path) ?? path;
}

/** The run's path; undefined where the word names none. A folder that is there comes before a name in the usual folder. */
export function lookUp(word: string): string | undefined {
  if (word === "") return undefined;
  if (word === "latest") return newestRun();
  return [resolve(word), join(runsFolder(), word)].find(looksLikeRun);
}

/** The run that was written last, of those that began. */
export const newestRun = () => knownRuns().find(({ path }) => readRunConfig(path) !== undefined)?.path;

/** Folders that may be other runs: those beside a run, and those of the usual folder. */
export function foldersBeside(run: string): string[] {
  const own = run === "" ? undefined : resolve(run);
  const parents = new Set([...(own === undefined ? [] : [dirname(own)]), runsFolder()]);
  return [...parents].flatMap((parent) =>
    existsSync(parent)
      ? readdirSync(parent, { withFileTypes: true }).flatMap((entry) => {
          const path = join(parent, entry.name);
          return entry.isDirectory() && path !== own ? [path] : [];
        })
      : [],
  );
}

/** Says on stderr which run was chosen where none was named. */
export const sayRun = (path: string) => console.error(`whetstone: run ${visibleLine(path, 200)}`);

/** The path of the run that a word names; throws with what is there instead. */
export function findRun(word: string): string {
  const path = lookUp(word);
  if (path === undefined) throw noSuchRun(word);
  if (existsSync(join(path, runFiles.journal))) return path;
  throw new ConfigError(
    "config/no-run",
    `${path} holds no run that can be read: it has no ${runFiles.journal} folder.`,
  );
}

/** The run that a command line names; else the newest. */
export function runOf(named: string): string {
  const path = named === "" ? newestRun() : findRun(named);
  if (path === undefined) throw noSuchRun("latest");
  if (named === "") sayRun(path);
  return path;
}

function noSuchRun(word: string): ConfigError {
  const names = knownRuns().map(({ name }) => name);
  const sweep = existsSync(join(word, sweepFile))
    ? `: that is the folder of a sweep, with which ${shellCommand(`${whet} sweep`, word)} goes on`
    : "";
  const place = sweep || (existsSync(word) ? ": that folder holds none" : "");
  if (names.length === 0)
    return new ConfigError(
      "config/no-run",
      `There is no run "${visibleLine(word, 80)}"${place}, and none in ${runsFolder()} or in this folder. ${whet} train starts one; one elsewhere is named by its path.`,
    );
  const guess = nearest(word, names);
  const near = [...new Set([...(guess ? [guess] : []), ...names.filter((name) => name.includes(word)), ...names])];
  return new ConfigError(
    "config/no-run",
    `There is no run "${visibleLine(word, 80)}"${place}. ${guess ? `Did you mean "${visibleLine(guess, 80)}"? ` : ""}` +
      `There are ${near
        .slice(0, 5)
        .map((name) => visibleLine(name, 80))
        .join(", ")}${near.length > 5 ? ` and ${near.length - 5} more` : ""}; ${whet} runs lists them.`,
  );
}
