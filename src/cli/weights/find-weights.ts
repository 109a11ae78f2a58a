// What run=, checkpoint= and compare= name: the base model, a checkpoint of a run, or weights at a server.
import { basename, dirname, join } from "node:path";
import { ConfigError } from "../../core/errors.ts";
import { lockHolder } from "../../core/lock-file.ts";
import type { EngineName } from "../../rl/prices.ts";
import type { CheckpointRecord } from "../../runs/checkpoints.ts";
import { readRunConfig, resumeCommand, runFiles } from "../../runs/directory.ts";
import { isRedacted } from "../../runs/log.ts";
import { RunView } from "../../runs/view.ts";
import { isLocal } from "../engines/index.ts";
import { findRun, lookUp } from "./find-run.ts";

/** Weights to sample from. */
export interface FoundWeights {
  label: string;
  /** The run they belong to; "" for none. */
  run: string;
  /** Of a run's checkpoint. */
  record: CheckpointRecord | undefined;
  /** tinker:// path of sampler weights; undefined for the base model. */
  path: string | undefined;
}

/**
 * Finds what a word names: "base", a tinker:// path, a checkpoint's name in `run`, another run (its last checkpoint), or a run with a
 * checkpoint's name behind it, `runs/first/000010`. "" is the last checkpoint of `run`, or the base model without one.
 */
export function findWeights(which: string, run: string, modelName: string): FoundWeights {
  if (which === "base" || (which === "" && run === ""))
    return { label: run === "" ? modelName : `base model ${modelName}`, run, record: undefined, path: undefined };
  if (which.startsWith("tinker://")) {
    const record =
      run === "" ? undefined : RunView.read(run).checkpoints.find((known) => pathsOf(known).includes(which));
    return { label: which, run, record, path: which };
  }
  if (which === "" || checkpointsOf(run).some(({ name }) => name === which)) return checkpointOf(run, which, "");
  const named = runNamedIn(which);
  if (named) {
    const label = named.checkpoint === "" ? which : dirname(which);
    return checkpointOf(named.run, named.checkpoint, `${label}, `);
  }
  // A word with a slash is meant as a run.
  return which.includes("/") ? checkpointOf(findRun(which), "", "") : checkpointOf(run, which, "");
}

/** The run in RUN or RUN/CHECKPOINT; undefined where the word names none. */
export function runNamedIn(word: string): { run: string; checkpoint: string } | undefined {
  const whole = lookUp(word);
  if (whole !== undefined) return { run: findRun(word), checkpoint: "" };
  if (!word.includes("/") || lookUp(dirname(word)) === undefined) return undefined;
  return { run: findRun(dirname(word)), checkpoint: basename(word) };
}

const pathsOf = ({ sampler_path: sampler, state_path: state }: CheckpointRecord) => [sampler, state];

function checkpointOf(run: string, name: string, prefix: string): FoundWeights {
  const records = checkpointsOf(run);
  const record = name === "" ? records.at(-1) : records.findLast((known) => known.name === name);
  if (record) return { label: `${prefix}checkpoint ${record.name}`, run, record, path: record.sampler_path };
  throw new ConfigError("config/no-checkpoint", missing(run, name, records));
}

const checkpointsOf = (run: string) =>
  run === "" ? [] : RunView.read(run).checkpoints.filter(({ sampler_path: path }) => path !== undefined);

function missing(run: string, name: string, records: readonly CheckpointRecord[]): string {
  const names = [...new Set(records.map((record) => record.name))].join(", ");
  const holder = run === "" ? undefined : lockHolder(join(run, runFiles.lock));
  if (run !== "" && names === "")
    return holder === undefined
      ? `run=${run} has saved no checkpoint. Go on with it until it has: ${resumeCommand(run)}. Or choose another run.`
      : `run=${run} is live (process ${holder}) and has saved no checkpoint yet. Wait until it has: save_every says how often.`;
  return `There is no checkpoint "${name || "(last)"}" in run=${run || "(none)"}; it has: ${names || "none"}. Name one of them, a tinker:// path, or base.`;
}

/** Where a run's weights are: the engine that trained it, unless another server is named. Undefined: as the environment says. */
export function engineOfRun(run: string, givenUrl: string | undefined): { kind?: EngineName; baseUrl: string } {
  if (givenUrl) return { baseUrl: givenUrl };
  const { engine, base_url: recorded } = (run === "" ? undefined : readRunConfig(run)) ?? {};
  const baseUrl = typeof recorded === "string" ? recorded : "";
  if (isLocal(engine)) return { kind: engine, baseUrl: "" };
  if (isRedacted(baseUrl))
    throw new ConfigError(
      "config/no-server",
      `run=${run} was trained on ${baseUrl}, whose password was not written down. Name the server again with base_url=.`,
    );
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
