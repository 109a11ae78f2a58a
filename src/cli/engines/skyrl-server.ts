// SkyRL's server as a child process on a loopback port: its database and checkpoints in the run's folder, its log read for what it waits
// for and what is wrong. It ends with this process, however that ends.
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { chmodSync, createWriteStream, existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { WhetstoneError } from "../../core/errors.ts";
import { shellCommand } from "../../core/shell.ts";
import type { EngineStart, RunningEngine } from "./engine.ts";
import { compiledFolder } from "./skyrl-install.ts";
import { addressIn, causeIn, compiledIn, isReady, savesSampler, stageIn } from "./skyrl-log.ts";
import { dropSamplers } from "./skyrl-samplers.ts";
import { waitingFor } from "./stages.ts";

export interface SkyrlStart extends EngineStart {
  python: string;
  platform: "cuda" | "cpu";
  /** Where it runs. */
  workFolder: string;
  backendConfig: Readonly<Record<string, unknown>>;
  /** Products of float32 numbers are computed in full. */
  exact: boolean;
}

const beside = (name: string) => fileURLToPath(new URL(`./${name}`, import.meta.url));
const keeper = beside("keep.py");
/** A session's models are unloaded by who made them; this is for those that could not. */
const sessionTimeoutS = 7200;
const stopMs = 30_000;
/** The newest is sampled; the trial of a server samples two. */
const samplersKept = 3;
const checkpointsOf = ({ stateDir }: Pick<SkyrlStart, "stateDir">) => join(stateDir, "checkpoints");

/** Starts it and waits until it computes. */
export async function startSkyrl(start: SkyrlStart): Promise<RunningEngine> {
  const { stateDir, logFile, logger, signal } = start;
  signal?.throwIfAborted();
  const database = join(stateDir, "skyrl.db");
  forgetRequests(start.python, database);
  const log = createWriteStream(logFile, { flags: "a" });
  // A log that cannot be written (a full disk) is no reason to end: what matters of it is said.
  log.on("error", () => {});
  const child = spawn(start.python, [keeper, "run", "-m", "skyrl.tinker.api", ...argumentsOf(start, database)], {
    cwd: start.workFolder,
    env: environmentOf(start),
    stdio: ["pipe", "pipe", "pipe"],
    // A process group of its own: a signal to the parent's group must not take away the server that it saves its state on.
    detached: true,
  });
  child.stdin.on("error", () => {});
  const life = {
    stopping: false,
    ready: false,
    lastWords: [] as string[],
    cause: undefined as ReturnType<typeof causeIn>,
  };
  const began = performance.now();
  let url: string | undefined;

  const ready = (note: (what: string) => void) =>
    new Promise<void>((resolve, reject) => {
      const take = (line: string) => {
        log.write(`${line.trimEnd()}\n`);
        life.lastWords = [...life.lastWords.slice(-30), line.trimEnd()];
        url ??= addressIn(line);
        const stage = stageIn(line);
        if (stage) note(stage);
        const compiled = life.ready ? compiledIn(line) : undefined;
        if (compiled) logger.info(`engine   ${compiled}`);
        const cause = causeIn(line);
        if (cause) {
          life.cause = cause;
          if (life.ready) logger.warn(`SkyRL says that ${cause.what}: ${cause.next}`);
        }
        if (savesSampler(line)) dropSamplers(checkpointsOf(start), samplersKept);
        if (isReady(line)) resolve();
      };
      for (const stream of [child.stdout, child.stderr]) createInterface({ input: stream }).on("line", take);
      child.once("error", reject);
      child.once("close", (code, signal) => {
        const error = ended(start, life, signal ?? `exit code ${code}`);
        reject(error);
        if (life.ready && !life.stopping) start.onLost?.(error);
      });
      signal?.addEventListener("abort", () => reject(signal.reason), { once: true });
    });

  const close = async () => {
    life.stopping = true;
    await stop(child);
    dropSamplers(checkpointsOf(start), 0);
    await new Promise<void>((resolve) => log.end(() => resolve()));
  };
  try {
    await waitingFor("starting SkyRL:", ready);
    if (url === undefined) throw ended(start, life, "it named no address");
    life.ready = true;
    logger.info(
      `engine   SkyRL is up after ${Math.round((performance.now() - began) / 1000)} s; what it computes first it compiles, once`,
    );
    return { url, apiKey: "tml-loopback", close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Requests of an earlier process, which nobody waits for, would be computed first. */
function forgetRequests(python: string, database: string): void {
  if (!existsSync(database)) return;
  const statement =
    "import sqlite3, sys\nwith sqlite3.connect(sys.argv[1]) as d:\n  if d.execute(\"select 1 from sqlite_master where name='futures'\").fetchone(): d.execute('delete from futures')";
  execFileSync(python, ["-I", "-c", statement, database], { timeout: 60_000, stdio: "ignore" });
}

function argumentsOf({ model, stateDir, backendConfig }: SkyrlStart, database: string): string[] {
  return [
    ...["--base-model", model, "--host", "127.0.0.1", "--port", "0", "--backend", "jax"],
    ...["--backend-config", JSON.stringify(backendConfig), "--session-timeout-sec", String(sessionTimeoutS)],
    ...["--database-url", `sqlite:///${database}`, "--checkpoints-base", checkpointsOf({ stateDir })],
  ];
}

function environmentOf({ python, platform, stateDir, exact }: SkyrlStart): NodeJS.ProcessEnv {
  // The server needs no key, and the hub's is not its business.
  const { TINKER_API_KEY: _, HF_TOKEN: __, WANDB_API_KEY: ___, ...given } = process.env;
  const bin = join(stateDir, "bin");
  mkdirSync(bin, { recursive: true });
  writeFileSync(
    join(bin, "uv"),
    `#!/bin/sh\n${shellCommand("exec", python, keeper, "uv", beside("skyrl_engine.py"))} "$@"\n`,
  );
  chmodSync(join(bin, "uv"), 0o755);
  return {
    XLA_PYTHON_CLIENT_MEM_FRACTION: "0.9",
    ...(exact && { JAX_DEFAULT_MATMUL_PRECISION: "highest" }),
    JAX_COMPILATION_CACHE_DIR: compiledFolder(),
    ...given,
    PATH: `${bin}:${given["PATH"] ?? "/usr/bin:/bin"}`,
    JAX_PLATFORMS: platform,
    HF_HUB_OFFLINE: "1",
    PYTHONUNBUFFERED: "1",
    // Its log breaks lines at this width.
    COLUMNS: "1000",
  };
}

function ended(
  { logFile }: SkyrlStart,
  { ready, cause, lastWords }: { ready: boolean; cause: ReturnType<typeof causeIn>; lastWords: readonly string[] },
  how: string,
): WhetstoneError {
  const why = cause
    ? `${cause.what}. To mend that: ${cause.next}`
    : `its last words: ${lastWords.filter(Boolean).slice(-5).join(" | ").slice(-600) || "none"}`;
  return new WhetstoneError(
    ready ? "cli/skyrl-lost" : "cli/skyrl-start",
    `SkyRL ${ready ? "ended" : "did not start"} (${how}): ${why}. The whole log is ${logFile}.${ready ? " Resume the run: it goes on where this one ended." : ""}`,
  );
}

/** Closing its standard input asks it to stop; one that hangs is ended, and what it started with it. */
async function stop(child: ChildProcess): Promise<void> {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  const gone = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  child.stdin?.end();
  const timer = setTimeout(() => child.kill("SIGKILL"), stopMs);
  await gone;
  clearTimeout(timer);
}
