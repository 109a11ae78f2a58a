// `./whet checkpoints`: what lies on the server or in a run's engine, how large, how old, until when, and which run refers to it; and
// prunes what a run no longer needs.

import { existsSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { bytesOf, countOf, spanOf } from "../../core/count.ts";
import { ConfigError, messageOf } from "../../core/errors.ts";
import { whet } from "../../core/program.ts";
import { visible, visibleLine } from "../../core/visible.ts";
import { TrainConfig } from "../../rl/config.ts";
import { storagePerGigabyteMonth } from "../../rl/prices.ts";
import { type KeepRule, parseKeep, pathsOf, runCheckpoints } from "../../rl/prune.ts";
import { readCheckpoints } from "../../runs/checkpoints.ts";
import { lockRunDirectory, runFiles } from "../../runs/directory.ts";
import { redact } from "../../runs/log.ts";
import { readJournal } from "../../runs/read-journal.ts";
import { commandOf } from "../command.ts";
import { isLocal } from "../engines/index.ts";
import { chargedAs, engineFiles, engineKind } from "../parts/connect.ts";
import { askYes } from "../terminal/ask.ts";
import { interruptible } from "../terminal/interrupt.ts";
import { textTable } from "../text/table.ts";
import { foldersBeside, runKey, runOf } from "../weights/find-run.ts";
import { engineOfRun } from "../weights/find-weights.ts";
import { engineStorage, type Storage, type StoredCheckpoint, serverStorage } from "../weights/stored-checkpoints.ts";

const CheckpointsOptions = TrainConfig.pick({ base_url: true }).extend({
  run: runKey.describe(
    "a run: its name, its path or latest; unless named all on the server, or without one the newest run's",
  ),
  prune: z
    .boolean()
    .default(false)
    .describe("delete what the run does not need and keep= does not name; lists it first"),
  keep: z
    .string()
    .default("best,last:3,final")
    .describe("checkpoints that stay: best (by Pass@1), last:N, final, none; what resuming needs stays always"),
  yes: z.boolean().default(false).describe("delete without asking"),
  json: z.boolean().default(false).describe("one JSON object per checkpoint instead of the table"),
});
type CheckpointsOptions = z.output<typeof CheckpointsOptions>;

export const command = commandOf(CheckpointsOptions, {
  usage: "checkpoints [RUN] [key=value …]",
  about: [
    "Lists the checkpoints of a run, or of the server at base_url= or hosted Tinker: size, age, expiry, and which run refers to them.",
    "prune=true deletes those that a run needs no more; it lists them and asks first.",
  ],
  words: "run",
  async run({ options }) {
    const rule = parseKeep(options.keep);
    if (options.run === "" && options.prune)
      throw new ConfigError(
        "config/incomplete",
        "prune=true deletes, so the run whose checkpoints are to go must be named: run=RUN, or run=latest.",
      );
    if (options.run !== "" || isLocal(engineKind(options))) options.run = runOf(options.run);
    return interruptible(async (signal) => {
      if (!options.prune) return look(options, undefined, signal);
      // Locked: a process that writes the run could change what it needs.
      const release = lockRunDirectory(options.run);
      try {
        return await look(options, rule, signal);
      } finally {
        release();
      }
    });
  },
});

/** Lists what is there; with a rule prunes by it. */
async function look(options: CheckpointsOptions, rule: KeepRule | undefined, signal: AbortSignal): Promise<number> {
  const { storage, isBilled } = openStorage(options, signal);
  try {
    const rows = await rowsOf(options, storage);
    if (rule) return await prune(storage, rows, { options, rule, isBilled }, signal);
    if (options.json) for (const row of rows) console.log(JSON.stringify(jsonOf(row)));
    else console.log(shown([storage.description, "", ...table(rows), "", totals(rows, isBilled)].join("\n")));
    return 0;
  } finally {
    await storage.close();
  }
}

interface Row extends StoredCheckpoint {
  /** Which run refers to it, and as what. */
  of: string;
}

/** Text without keys and without control characters. */
const shown = (text: string) => visible(redact(text));

async function prune(
  storage: Storage,
  rows: readonly Row[],
  asked: { options: CheckpointsOptions; rule: KeepRule; isBilled: boolean },
  signal: AbortSignal,
): Promise<number> {
  const { run, yes } = asked.options;
  const there = new Set(rows.map(({ path }) => path));
  const { ids, needed, kept } = runCheckpoints(readJournal(run), (path) => there.has(path));
  const keep = kept(asked.rule);
  const others = referredByOthers(run);
  const reasonToStay = ({ path }: Row): string | undefined => {
    if (needed.has(path)) return "needed to resume";
    if (keep.has(path)) return keep.get(path);
    if (others.has(path)) return `of ${others.get(path)}`;
    return ids.some((id) => path.startsWith(`tinker://${id}/`)) ? undefined : "not of this run";
  };
  const staying = rows.flatMap((row) => {
    const why = reasonToStay(row);
    return why === undefined ? [] : [{ ...row, of: `${row.of}: ${why}` }];
  });
  const going = rows.filter((row) => reasonToStay(row) === undefined);
  if (staying.length > 0) console.log(shown(["these stay", ...table(staying), ""].join("\n")));
  if (going.length === 0) {
    console.log("nothing to delete");
    return 0;
  }
  const heading = yes ? "deleting" : "these would be deleted";
  console.log(shown([heading, ...table(going), "", totals(going, asked.isBilled)].join("\n")));
  const question = `Delete ${going.length === 1 ? "this" : `these ${going.length}`}?`;
  if (yes || (await askYes(question, signal))) return deleteAll(storage, going, signal);
  console.log(`nothing was deleted; yes=true deletes ${going.length === 1 ? "it" : "them"} without a question`);
  return 0;
}

async function deleteAll(storage: Storage, going: readonly Row[], signal: AbortSignal): Promise<number> {
  let deleted = 0;
  const failures: string[] = [];
  for (const { path } of going) {
    signal.throwIfAborted();
    try {
      if (await storage.delete(path)) deleted++;
    } catch (error) {
      failures.push(`${path}: ${messageOf(error)}`);
    }
  }
  console.log(`${deleted} deleted`);
  for (const failure of failures) console.error(shown(`whetstone: not deleted: ${failure}`));
  return failures.length === 0 ? 0 : 1;
}

/** Where the checkpoints are, and whether keeping them there is billed: the run says, unless base_url= does. */
function openStorage({ run, base_url }: CheckpointsOptions, signal: AbortSignal) {
  const { kind: own, baseUrl } = engineOfRun(run, base_url);
  const kind = own ?? engineKind({ base_url: baseUrl });
  if (kind === "skyrl")
    throw new ConfigError(
      "config/no-server",
      `${run || "A run"} was trained with engine=skyrl, which is up only while a command uses it. Its checkpoints are files of RUN/engine/checkpoints; ${whet} show lists those of the run.`,
    );
  if (kind === "embedded") {
    if (run !== "") return { storage: engineStorage(engineFiles(run).stateDir), isBilled: false };
    throw new ConfigError(
      "config/no-run",
      "There is no server to ask: neither base_url= nor TINKER_API_KEY is set. For checkpoints of the embedded engine, name the run: run=RUN.",
    );
  }
  const ids = run === "" ? undefined : runCheckpoints(readJournal(run)).ids;
  const isBilled = chargedAs({ base_url: baseUrl }, process.env, kind) === "hosted";
  return { storage: serverStorage(baseUrl === "" ? {} : { baseUrl }, ids, signal), isBilled };
}

async function rowsOf(options: CheckpointsOptions, storage: Storage): Promise<Row[]> {
  const found = await storage.list();
  const own = options.run === "" ? undefined : runCheckpoints(readJournal(options.run)).names;
  const others = referredByOthers(options.run);
  return found
    .map((checkpoint) => ({
      ...checkpoint,
      of: own?.get(checkpoint.path) ?? others.get(checkpoint.path) ?? "no run here",
    }))
    .sort((a, b) => a.savedAt - b.savedAt);
}

/** Paths in the records of the runs in the usual folder and beside this one, with the run that has them. */
function referredByOthers(run: string): Map<string, string> {
  const referred = new Map<string, string>();
  for (const path of foldersBeside(run)) {
    if (!existsSync(join(path, runFiles.checkpoints))) continue;
    try {
      for (const record of readCheckpoints(path))
        for (const stored of pathsOf(record)) referred.set(stored, `${path} ${record.name}`);
    } catch {
      // Not a readable run. Its checkpoints appear without an owner, and no other run deletes them.
    }
  }
  return referred;
}

function table(rows: readonly Row[]): string[] {
  const now = Date.now();
  const cells = rows.map(({ name, bytes, savedAt, expiresAt, of }) => [
    visibleLine(name, 60),
    bytes === undefined ? "not said" : bytesOf(bytes),
    spanOf((now - savedAt) / 1000),
    expiresAt === undefined ? "never" : expiresAt <= now ? "now" : `in ${spanOf((expiresAt - now) / 1000)}`,
    visibleLine(of, 80),
  ]);
  return textTable(["checkpoint", "size", "age", "expires", "of"], cells, "lrrrl");
}

function totals(rows: readonly Row[], isBilled: boolean): string {
  const bytes = rows.reduce((sum, row) => sum + (row.bytes ?? 0), 0);
  const month = (bytes / 1e9) * storagePerGigabyteMonth;
  const cost = isBilled ? `; storing them costs about $${month.toFixed(month < 0.1 ? 4 : 2)} a month` : "";
  return `${countOf(rows.length, "checkpoint")}, ${bytesOf(bytes)}${cost}`;
}

const jsonOf = ({ path, bytes, savedAt, expiresAt, of }: Row) => ({
  path,
  size_bytes: bytes ?? null,
  saved_at: new Date(savedAt).toISOString(),
  expires_at: expiresAt === undefined ? null : new Date(expiresAt).toISOString(),
  of,
});
