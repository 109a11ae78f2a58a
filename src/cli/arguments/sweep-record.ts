// What a sweep was asked for, in its folder: naming the folder goes on with it, from anywhere.
import { existsSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { z } from "zod";
import { ConfigError, messageOf } from "../../core/errors.ts";
import { writeFileAtomic } from "../../core/files.ts";
import { whet } from "../../core/program.ts";
import { shellCommand } from "../../core/shell.ts";
import { runsFolder } from "../../runs/directory.ts";
import { redact } from "../../runs/log.ts";
import { sweepFile } from "../../runs/overview.ts";
import type { Asked } from "./sweep-grid.ts";

const Record = z.object({
  /** Where it was typed: names of files are relative to it. */
  cwd: z.string(),
  files: z.array(z.string()),
  typed: z.array(z.object({ name: z.string(), shown: z.string() })),
  /** Keys with a password, which is never written down: they have to be given again. */
  secret: z.array(z.string()),
  /** The most that all runs may cost, as it was agreed to. */
  agreed: z.number().optional(),
});
type Record = z.output<typeof Record>;

/** The folder of the sweep that a word names, as a run is named. */
export const findSweep = (word: string): string | undefined =>
  [resolve(word), join(runsFolder(), word)].find((folder) => existsSync(join(folder, sweepFile)));

/** Undefined where there is none. */
export function readSweep(folder: string): Record | undefined {
  const path = join(folder, sweepFile);
  if (!existsSync(path)) return undefined;
  try {
    return Record.parse(JSON.parse(readFileSync(path, "utf8")));
  } catch (cause) {
    throw new ConfigError(
      "config/sweep-record",
      `${path} cannot be read (${messageOf(cause)}). Delete it, and type the whole sweep again with log_path=${folder}: its runs are kept.`,
      { cause },
    );
  }
}

export function writeSweep(folder: string, { files, typed }: Asked, agreed: number): void {
  const isSecret = ({ shown }: Asked["typed"][number]) => redact(shown) !== shown;
  const record: Record = {
    cwd: process.cwd(),
    files: [...files],
    typed: typed.flatMap((entry) => (isSecret(entry) ? [] : [{ name: entry.name, shown: entry.shown }])),
    secret: [...new Set(typed.filter(isSecret).map(({ name }) => name))],
    ...(Number.isFinite(agreed) && { agreed }),
  };
  writeFileAtomic(join(folder, sweepFile), `${JSON.stringify(record, null, 2)}\n`);
}

/** What was asked for then, but for the keys that are typed now. */
export function askedAgain(folder: string, { files, typed, secret }: Record, now: Asked): Asked {
  const given = new Set(now.typed.map(({ name }) => name));
  const missing = secret.filter((name) => !given.has(name));
  if (missing.length > 0)
    throw new ConfigError(
      "config/sweep-secret",
      `${missing.join(", ")} of ${folder} had a password, which is not written down. Give it again: ${shellCommand(`${whet} sweep`, folder)} ${missing.map((name) => `${name}=…`).join(" ")}`,
    );
  return { files: [...files, ...now.files], typed: [...typed.filter(({ name }) => !given.has(name)), ...now.typed] };
}
