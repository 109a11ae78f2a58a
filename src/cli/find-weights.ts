// What run=, checkpoint= and compare= name: the base model, a checkpoint of a run, or weights at a server.
import { existsSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { ConfigError } from "../core/errors.ts";
import { lockHolder } from "../core/lock-file.ts";
import type { CheckpointRecord } from "../runs/checkpoints.ts";
import { readRunConfig, runFiles } from "../runs/directory.ts";
import { RunView } from "../runs/view.ts";
import type { EngineKind } from "./connect.ts";
import { requireRun } from "./require-run.ts";

/** Weights to sample from. */
export interface NamedWeights {
  label: string;
  /** The run they belong to; "" for none. */
  run: string;
  /** Of a run's checkpoint. */
  record: CheckpointRecord | undefined;
  /** tinker:// path of sampler weights; undefined for the base model. */
  path: string | undefined;
}

/**
 * Finds what a word names: "base", a tinker:// path, a checkpoint's name in `run`, a run directory (its last checkpoint), or a run
 * directory with a checkpoint's name behind it, `runs/first/000010`. "" is the last checkpoint of `run`, or the base model without one.
 */
export function findWeights(which: string, run: string, modelName: string): NamedWeights {
  if (which === "base" || (which === "" && run === ""))
    return { label: run === "" ? modelName : `base model ${modelName}`, run, record: undefined, path: undefined };
  if (which.startsWith("tinker://")) {
    const record =
      run === "" ? undefined : RunView.read(run).checkpoints.find((known) => pathsOf(known).includes(which));
    return { label: which, run, record, path: which };
  }
  if (which !== "" && isRun(which)) return checkpointOf(which, "", `${which}, `);
  if (which.includes("/") && isRun(dirname(which)))
    return checkpointOf(dirname(which), basename(which), `${dirname(which)}, `);
  if (which.includes("/"))
    throw new ConfigError(
      "config/no-run",
      `${which} is no run directory, and no checkpoint of one. Name a run, or RUN/CHECKPOINT.`,
    );
  return checkpointOf(run, which, "");
}

const isRun = (path: string) => existsSync(join(path, runFiles.journal)) || readRunConfig(path) !== undefined;
const pathsOf = ({ sampler_path: sampler, state_path: state }: CheckpointRecord) => [sampler, state];

function checkpointOf(run: string, name: string, prefix: string): NamedWeights {
  if (run !== "") requireRun(run);
  const records =
    run === "" ? [] : RunView.read(run).checkpoints.filter(({ sampler_path: path }) => path !== undefined);
  const record = name === "" ? records.at(-1) : records.findLast((known) => known.name === name);
  if (record) return { label: `${prefix}checkpoint ${record.name}`, run, record, path: record.sampler_path };
  throw new ConfigError("config/no-checkpoint", missing(run, name, records));
}

function missing(run: string, name: string, records: readonly CheckpointRecord[]): string {
  const names = [...new Set(records.map((record) => record.name))].join(", ");
  const holder = run === "" ? undefined : lockHolder(join(run, runFiles.lock));
  if (run !== "" && names === "")
    return holder === undefined
      ? `run=${run} has saved no checkpoint. Go on with it (the same train command) until it has, or choose another run.`
      : `run=${run} is live (process ${holder}) and has saved no checkpoint yet. Wait until it has: save_every says how often.`;
  return `There is no checkpoint "${name || "(last)"}" in run=${run || "(none)"}; it has: ${names || "none"}. Name one of them, a tinker:// path, or base.`;
}

/** Where a run's weights are: the engine that trained it, unless another server is named. Undefined: as the environment says. */
export function engineOfRun(run: string, givenUrl: string | undefined): { kind?: EngineKind; baseUrl: string } {
  if (givenUrl) return { baseUrl: givenUrl };
  const { engine, base_url: recorded } = (run === "" ? undefined : readRunConfig(run)) ?? {};
  const baseUrl = typeof recorded === "string" ? recorded : "";
  if (engine === "embedded") return { kind: "embedded", baseUrl: "" };
  if (engine === "server" && baseUrl === "" && !process.env["TINKER_BASE_URL"])
    throw new ConfigError(
      "config/no-server",
      `run=${run} was trained on a server whose address stood in TINKER_BASE_URL, which is not set. Set it, or name the server with base_url=.`,
    );
  if (engine === "hosted" && !process.env["TINKER_API_KEY"])
    throw new ConfigError(
      "config/api-key",
      `run=${run} was trained on hosted Tinker. Set TINKER_API_KEY, in .env or the environment.`,
    );
  return { baseUrl };
}
