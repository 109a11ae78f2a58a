// What languages need of this machine: which commands it has, what they print, and folders that are made once.
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { accessSync, constants, existsSync, readdirSync, statSync } from "node:fs";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { cacheFolder } from "../cache.ts";
import { makeOnce } from "../files.ts";

const patienceMs = 10 * 60_000;

/** The full path of a command on PATH, or of a path; undefined when it is not there. */
export function findOnPath(name: string): string | undefined {
  if (name.includes("/")) return isExecutable(name) ? resolve(name) : undefined;
  for (const folder of (process.env["PATH"] ?? "/usr/bin:/bin").split(":")) {
    const path = join(folder || ".", name);
    if (isExecutable(path)) return resolve(path);
  }
  return undefined;
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

/** What a command prints. */
export async function said(command: string, ...args: readonly string[]): Promise<string> {
  const { stdout, stderr } = await promisify(execFile)(command, args, {
    timeout: patienceMs,
    maxBuffer: 1 << 24,
    cwd: "/",
  });
  return stdout + stderr;
}

/** Lines that are not blank. */
export const linesOf = (text: string): string[] => text.split("\n").filter((line) => line.trim() !== "");

/** The paths of a folder's entries whose names match. */
export const filesIn = (folder: string, names: RegExp): string[] =>
  existsSync(folder)
    ? readdirSync(folder)
        .filter((name) => names.test(name))
        .map((name) => join(folder, name))
    : [];

/** A name that changes with anything that goes into what it names. */
export const nameFor = (name: string, ...made: readonly unknown[]): string =>
  `${name}-${createHash("sha256").update(JSON.stringify(made)).digest("hex").slice(0, 16)}`;

/** A folder that is made once and kept in the cache. Programs see it at `place`. */
export function keptFolder(name: string, place: string, make: (folder: string) => Promise<void>) {
  const folder = join(cacheFolder(), "languages", name);
  const held = [folder, place] as const;
  return { folder, held, prepare: () => makeOnce(folder, make) };
}
