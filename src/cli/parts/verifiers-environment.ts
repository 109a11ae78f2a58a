// The environment that env=verifiers:NAME names: a Python environment of the verifiers package as it is, against the address of each episode.
import { execFile } from "node:child_process";
import { existsSync, readFileSync, statSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { promisify } from "node:util";
import { VerifiersEnvironment, VerifiersGone } from "../../agents/verifiers.ts";
import { ConfigError, messageOf } from "../../core/errors.ts";
import type { TrainConfig } from "../../rl/config.ts";
import { type Episode, environment, verifiersPrefix } from "../../rl/environment/environment.ts";
import type { LoadedEnvironment } from "../../rl/environment/module.ts";
import { Unavailable } from "../../rl/environment/tools.ts";
import type { TrainingProblem } from "../../rl/own-problems.ts";
import { environmentWith, packageList } from "../../sandbox/packages.ts";
import { type AgentSettings, againstEndpoint } from "./agent-environment.ts";

/** What is installed where nothing else is asked for; uv starts the agents that verifiers brings. */
const newest = ["verifiers==0.4.0", "uv"];
/** The last one that knows load_environment. */
const classic = ["verifiers==0.3.1"];

interface Problem extends TrainingProblem {
  row: number;
  split: "train" | "test";
}

type Settings = Pick<TrainConfig, "env" | "env_args" | "env_packages" | "env_python"> & AgentSettings;

/** Loads it, into a Python of its own where none is named; `say` hears what takes long. */
export async function loadVerifiers(
  config: Settings,
  say: (line: string) => void,
): Promise<LoadedEnvironment & { close(): Promise<void> }> {
  const { env, env_args: args } = config;
  const bad = (what: string, cause?: unknown) =>
    new ConfigError(
      "config/verifiers",
      `env=${env} cannot be loaded: ${what.replace(/\.$/, "")}. Nothing was asked of a model yet.`,
      { cause },
    );
  const open = async () => {
    const { name, place, packages } = await sourceOf(env.slice(verifiersPrefix.length));
    return VerifiersEnvironment.open({ python: await pythonOf(config, packages, say), name, place, args });
  };
  const { environment: played, facts } = await open().catch((error: unknown) => {
    throw bad(messageOf(error), error);
  });
  const run = async ({ problem: { row, split }, endpoint, signal, log }: Episode<Problem>) => {
    const { reward, metrics, stop } = await played.play({ split, row, endpoint }, signal).catch((error: unknown) => {
      throw error instanceof VerifiersGone ? new Unavailable(error.message) : error;
    });
    if (stop !== null) log("stop", stop);
    return { reward: reward === null ? null : Number(reward), metrics: numbersOf(metrics) };
  };
  const problemsOf = (split: Problem["split"], rows: readonly Omit<Problem, "split">[]): Problem[] =>
    rows.map((row) => ({ ...row, split }));
  const problems = problemsOf("train", facts.problems);
  const testProblems = problemsOf("test", facts.testProblems);
  if (problems.length === 0) throw bad("it has no data to train on");
  const { maxTurns } = facts;
  const one = environment<Problem>({
    problems,
    testProblems,
    run: againstEndpoint(config, run),
    ...(maxTurns !== null && maxTurns > 0 && { maxTurns }),
  });
  return {
    environment: one as unknown as LoadedEnvironment["environment"],
    problems,
    testProblems,
    file: `${env} (verifiers ${facts.version})`,
    fingerprint: facts.fingerprint,
    close: () => played.close(),
  };
}

const numbersOf = (metrics: Readonly<Record<string, number | string>>): Record<string, number> =>
  Object.fromEntries(
    Object.entries(metrics).flatMap(([name, value]) => (typeof value === "number" ? [[name, value]] : [])),
  );

/** A file, a project's folder, or the name of what is installed; and what it needs. */
async function sourceOf(named: string): Promise<{ name: string; place: string; packages: readonly string[] }> {
  const path = resolve(named);
  const isPath = /^\.{0,2}[/\\]|\.py$/.test(named);
  if (isPath && !existsSync(path)) throw new Error(`there is nothing at ${path}`);
  if (!isPath) return { name: named, place: "", packages: newest };
  if (!statSync(path).isDirectory()) {
    const packages = readFileSync(path, "utf8").includes("def load_environment") ? classic : newest;
    return { name: basename(path, ".py"), place: dirname(path), packages };
  }
  const { name, dependencies = [] } = await projectOf(path);
  const needs = dependencies.some((one) => /^verifiers\b/.test(one)) ? dependencies : [...dependencies, ...newest];
  const place = existsSync(join(path, "src")) ? join(path, "src") : path;
  return { name: name.replaceAll("-", "_"), place, packages: [...new Set([...needs, "uv"])] };
}

/** What its pyproject.toml says; Python reads it. */
async function projectOf(folder: string): Promise<{ name: string; dependencies?: string[] }> {
  const file = join(folder, "pyproject.toml");
  if (!existsSync(file)) throw new Error(`${folder} has no pyproject.toml. Name a .py file, or a folder that has one`);
  const read = "import json, sys, tomllib; print(json.dumps(tomllib.load(open(sys.argv[1], 'rb'))['project']))";
  const { stdout } = await promisify(execFile)("python3", ["-c", read, file]);
  return JSON.parse(stdout) as { name: string; dependencies?: string[] };
}

async function pythonOf(
  { env_python: own, env_packages: asked }: Settings,
  packages: readonly string[],
  say: (line: string) => void,
): Promise<string> {
  const wanted = packageList(asked, "env_packages");
  if (own !== "" && wanted.length === 0)
    return existsSync(join(own, "bin", "python")) ? join(own, "bin", "python") : own;
  const use = { of: "the environment", python: "env_python", sources: true };
  return join(
    await environmentWith(wanted.length > 0 ? wanted : packages, own || undefined, say, use),
    "bin",
    "python",
  );
}
