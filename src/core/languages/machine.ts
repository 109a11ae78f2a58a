// What languages ask this machine: which commands there are, what they say about themselves, and what has to be made once.
import { execFile } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { accessSync, constants, existsSync, mkdirSync, readdirSync, renameSync, rmSync, statSync } from "node:fs";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { cacheFolder } from "../cache.ts";

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

/** Those of a folder whose names match, with their paths. */
export const filesIn = (folder: string, names: RegExp): string[] =>
  existsSync(folder)
    ? readdirSync(folder)
        .filter((name) => names.test(name))
        .map((name) => join(folder, name))
    : [];

/** A name for what is made, another one where anything is that it is made of. */
export const nameFor = (name: string, ...made: readonly unknown[]): string =>
  `${name}-${createHash("sha256").update(JSON.stringify(made)).digest("hex").slice(0, 16)}`;

/** Where a folder lies that is made once and kept in the cache. */
export const madeFolder = (name: string): string => join(cacheFolder(), "languages", name);

/** Makes it, unless it is there. A half-made one is never seen. */
export async function made(name: string, make: (folder: string) => Promise<void>): Promise<void> {
  const folder = madeFolder(name);
  if (existsSync(folder)) return;
  const building = `${folder}.${process.pid}-${randomBytes(4).toString("hex")}`;
  try {
    mkdirSync(building, { recursive: true });
    await make(building);
    try {
      renameSync(building, folder);
    } catch (error) {
      if (!existsSync(folder)) throw error; // another process was faster, and made the same
    }
  } finally {
    rmSync(building, { recursive: true, force: true });
  }
}
