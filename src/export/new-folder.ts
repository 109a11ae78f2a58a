// A folder that is either wholly there or not there at all: it is filled beside its place and moved there in one step.

import { existsSync, readdirSync, renameSync, rmSync, statSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { bytesOf } from "../core/count.ts";
import { messageOf, WhetstoneError } from "../core/errors.ts";
import { freeBytes, makeFolder, syncFolder } from "../core/files.ts";
import { lives } from "../core/lock-file.ts";
import { ExportError } from "./errors.ts";

/** Refuses a place where something is already, or where nothing can be made; nothing is changed yet. */
export function checkPlace(out: string): void {
  const path = resolve(out);
  const known = statSync(path, { throwIfNoEntry: false });
  if (known && (!known.isDirectory() || readdirSync(path).length > 0))
    throw new ExportError(
      "export/exists",
      `out=${out} is there already${known.isDirectory() ? " and is not empty" : ", as a file"}. Name a new folder; nothing was changed.`,
    );
}

/** Calls `write` with an empty folder, which then appears as `out`. When it fails, nothing is left. */
export async function writeFolder(
  out: string,
  neededBytes: number,
  write: (folder: string) => Promise<void>,
): Promise<void> {
  const path = resolve(out);
  checkPlace(out);
  const free = freeBytes(path);
  if (free < neededBytes)
    throw new ExportError(
      "export/disk-full",
      `out=${out} needs ${bytesOf(neededBytes)}, and ${bytesOf(free)} are free there. Free some space, or name a folder on another disk.`,
    );
  const draft = join(dirname(path), `.${basename(path)}.${process.pid}.part`);
  try {
    removeLeftovers(path);
    makeFolder(draft);
    await write(draft);
    for (const name of readdirSync(draft)) if (statSync(join(draft, name)).isDirectory()) syncFolder(join(draft, name));
    syncFolder(draft);
    renameSync(draft, path);
    syncFolder(dirname(path));
  } catch (error) {
    throw explainDisk(error, `out=${out}`);
  } finally {
    rmSync(draft, { recursive: true, force: true });
  }
}

/** Drafts of exports to this place that were killed. */
function removeLeftovers(path: string): void {
  const folder = dirname(path);
  if (!existsSync(folder)) return;
  for (const name of readdirSync(folder)) {
    const draft = name.startsWith(`.${basename(path)}.`) ? /\.(\d+)\.part$/.exec(name) : null;
    if (draft && draft[0].length + 1 + basename(path).length === name.length && !lives(Number(draft[1])))
      rmSync(join(folder, name), { recursive: true, force: true });
  }
}

/** A failure of the disk in words; any other error as it is. */
export function explainDisk(error: unknown, place: string): unknown {
  if (error instanceof WhetstoneError) return error;
  const code = (error as NodeJS.ErrnoException).code ?? "";
  if (["ENOSPC", "EDQUOT", "EFBIG"].includes(code))
    return new ExportError(
      "export/disk-full",
      `The disk is full (${code}): nothing is left of ${place}. Free some space, or name a folder on another disk.`,
      { cause: error },
    );
  if (["EACCES", "EPERM", "EROFS", "ENOENT", "ENOTDIR", "ENAMETOOLONG", "ENOTEMPTY", "EEXIST"].includes(code))
    return new ExportError(
      "export/not-writable",
      `${place} cannot be written (${messageOf(error)}). Name a folder where you may write.`,
      { cause: error },
    );
  return error;
}
