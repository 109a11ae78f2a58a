// A checkpoint of a run on the embedded engine, copied into another engine's folder: the run's own may be held by its live process.
import { cpSync, existsSync, readdirSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { parseTinkerPath } from "../client/index.ts";
import { ConfigError } from "../core/errors.ts";
import { engineFiles } from "./connect.ts";

/** Copies the checkpoint at a tinker:// path into `stateDir`; it is looked for in the run, then in its neighbours and the usual folder. */
export function borrowCheckpoint(path: string, run: string, stateDir: string): void {
  const { trainingRunId, kind, name } = parseTinkerPath(path);
  const inside = join(
    "checkpoints",
    encodeURIComponent(trainingRunId),
    kind === "training" ? "weights" : "sampler_weights",
    name,
  );
  const folder = candidates(run)
    .map((candidate) => engineFiles(candidate).stateDir)
    .find((state) => existsSync(join(state, inside)));
  if (folder === undefined)
    throw new ConfigError(
      "config/no-checkpoint",
      `${path} is in none of the runs ${run === "" ? "under ~/code-rl-logs" : `beside ${run}`}. Name the run it belongs to with run=, or the server that has it with base_url=.`,
    );
  cpSync(join(folder, inside), join(stateDir, inside), { recursive: true });
}

function candidates(run: string): string[] {
  const usual = join(homedir(), "code-rl-logs");
  const own = run === "" ? [] : [resolve(run)];
  const parents = [...own.map(dirname), usual];
  const neighbours = parents.flatMap((parent) =>
    existsSync(parent)
      ? readdirSync(parent, { withFileTypes: true }).flatMap((entry) =>
          entry.isDirectory() ? [join(parent, entry.name)] : [],
        )
      : [],
  );
  return [...own, ...neighbours];
}
