// SkyRL's server as a child process on a loopback port: its database and checkpoints in the run's folder, its log read for what it waits
// for and what is wrong. It ends with this process, however that ends.

import { execFileSync } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { WhetstoneError } from "../../../core/errors.ts";
import { shellCommand } from "../../../core/shell.ts";
import { waitingFor } from "../../terminal/progress.ts";
import type { EngineStart, RunningEngine } from "../engine.ts";
import { closeLog, openLog, spawnEngine, stopEngine } from "../process.ts";
import { compiledFolder } from "./install.ts";
import { addressIn, causeIn, compiledIn, isReady, savesSampler, stageIn } from "./log.ts";
import { dropSamplers } from "./samplers.ts";

interface SkyrlStart extends EngineStart {
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
/** Clients unload their models; this is for a client that was killed. */
const sessionTimeoutS = 7200;
const stopMs = 30_000;
/** Training samples the newest; the trial of a server samples two. */
const samplersKept = 3;
const checkpointsOf = ({ stateDir }: Pick<SkyrlStart, "stateDir">) => join(stateDir, "checkpoints");

/** Starts it and waits until it computes. */
export async function startSkyrl(start: SkyrlStart): Promise<RunningEngine> {
  const { stateDir, logFile, logger, signal } = start;
  signal?.throwIfAborted();
  const database = join(stateDir, "skyrl.db");
  forgetRequests(start.python, database);
  const log = openLog(logFile);
  const words = [keeper, "run", "-m", "skyrl.tinker.api", ...argumentsOf(start, database)];
  const child = spawnEngine(start.python, words, { cwd: start.workFolder, env: environmentOf(start) });
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
    await stopEngine(child, stopMs);
    dropSamplers(checkpointsOf(start), 0);
    await closeLog(log);
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

/** Requests of an earlier process would be computed first, although nobody waits for them. */
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
    `#!/bin/sh\n${shellCommand("exec", python, keeper, "uv", beside("engine.py"))} "$@"\n`,
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
