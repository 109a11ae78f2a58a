// Checkpoints that the embedded engine of a run left on this machine, found without starting it: the run's own process may be live.

import { randomUUID } from "node:crypto";
import { cpSync, existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { parseTinkerPath } from "../../client/index.ts";
import { ConfigError } from "../../core/errors.ts";
import { checkpointFolders } from "../../protocol/index.ts";
import { engineFiles } from "../parts/connect.ts";
import { foldersBeside } from "./find-run.ts";

/** Copies the checkpoint at a tinker:// path into another engine's `stateDir`, where it stays; it appears there in one step. */
export function borrowCheckpoint(path: string, run: string, stateDir: string): void {
  const inside = folderInside(path);
  const target = join(stateDir, inside);
  if (existsSync(target)) return;
  const source = join(stateOf(path, run), inside);
  // After a kill the engine removes what is left in here when it starts.
  const temporary = join(stateDir, "incoming", randomUUID());
  cpSync(source, temporary, { recursive: true });
  const record = join(temporary, "checkpoint.json");
  writeFileSync(record, JSON.stringify({ ...JSON.parse(readFileSync(record, "utf8")), expiresAt: null }));
  mkdirSync(dirname(target), { recursive: true });
  renameSync(temporary, target);
}

/** The folder with the files of the checkpoint at a tinker:// path. */
export function checkpointFolder(path: string, run: string): string {
  const folder = join(stateOf(path, run), folderInside(path));
  try {
    const { uid } = JSON.parse(readFileSync(join(folder, "checkpoint.json"), "utf8")) as { uid: string };
    return join(folder, uid);
  } catch (cause) {
    throw new ConfigError(
      "config/no-checkpoint",
      `${folder} holds no whole checkpoint. Choose another one with checkpoint=.`,
      { cause },
    );
  }
}

function folderInside(path: string): string {
  const { trainingRunId, kind, name } = parseTinkerPath(path);
  return join("checkpoints", encodeURIComponent(trainingRunId), checkpointFolders[kind], name);
}

/** The engine folder that has it: of the run, of a run beside it, or of one in the usual folder. */
function stateOf(path: string, run: string): string {
  const inside = folderInside(path);
  const folder = [...(run === "" ? [] : [run]), ...foldersBeside(run)]
    .map((candidate) => engineFiles(candidate).stateDir)
    .find((state) => existsSync(join(state, inside)));
  if (folder !== undefined) return folder;
  throw new ConfigError(
    "config/no-checkpoint",
    `${path} is in none of the runs ${run === "" ? "under ~/code-rl-logs" : `beside ${run}`}: it was deleted, or belongs to a run elsewhere. ` +
      "Name the run it belongs to with run=, or the server that has it with base_url=.",
  );
}
