// Installs SkyRL, once, into a folder of the cache: those of versions.txt, by uv, in an environment of its own. Nothing outside that
// folder is changed; what was fetched before an interruption is not fetched again.

import { spawn } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { cacheFolder } from "../../../core/cache.ts";
import { WhetstoneError } from "../../../core/errors.ts";
import { freeBytes } from "../../../core/files.ts";
import { findOnPath } from "../../../core/languages/machine.ts";
import { waitForLock } from "../../../core/lock-file.ts";
import { whet } from "../../../core/program.ts";
import type { Logger } from "../../../runs/log.ts";
import { findInterpreter } from "../../../sandbox/interpreter.ts";
import { pipFor } from "../../../sandbox/packages.ts";
import { waitingFor } from "../../terminal/progress.ts";
import { gib, size } from "../machine.ts";

export const skyrlVersion = "0.3.0";
const uvVersion = "0.13.8";
/** The Pythons that the locked versions are for. */
const pythons = ["3.12", "3.13"];
const neededGib = 8;

export const skyrlFolder = (): string => join(cacheFolder(), "engines", `skyrl-${skyrlVersion}`);
const pythonOf = (folder: string) => join(folder, "env", "bin", "python");
/** What JAX compiled, for the next start. */
export const compiledFolder = (): string => join(cacheFolder(), "engines", `skyrl-${skyrlVersion}-compiled`);
export const isInstalled = (): boolean =>
  existsSync(join(skyrlFolder(), "complete")) && existsSync(pythonOf(skyrlFolder()));
const lockedVersions = fileURLToPath(new URL("./versions.txt", import.meta.url));

/** The interpreter that has SkyRL, which is installed where it is not there yet. */
export async function skyrlPython(logger: Logger, signal?: AbortSignal): Promise<string> {
  const folder = skyrlFolder();
  const python = pythonOf(folder);
  if (isInstalled()) return python;
  if (process.env["WHET_NO_INSTALL"] === "1") throw failed("WHET_NO_INSTALL=1 forbids it");
  mkdirSync(folder, { recursive: true });
  const waiting = (holder: number) => logger.info(`engine   waiting for process ${holder}, which is installing SkyRL`);
  const release = await waitForLock(join(folder, "lock"), waiting, signal);
  try {
    // Another process may have installed it while this one waited.
    if (isInstalled()) return python;
    const free = freeBytes(folder);
    if (free < neededGib * gib)
      throw failed(
        `it takes ${neededGib} GiB, and the disk of ${folder} has ${size(free)} free; WHETSTONE_CACHE names another folder`,
      );
    logger.info(`engine   installing SkyRL ${skyrlVersion} into ${folder}: some 3 GB to fetch, once`);
    const started = performance.now();
    await waitingFor(`installing SkyRL ${skyrlVersion}:`, (note) => install(folder, note, signal));
    rmSync(join(folder, "downloads"), { recursive: true, force: true });
    writeFileSync(join(folder, "complete"), `${skyrlVersion}\n`);
    logger.info(
      `engine   SkyRL ${skyrlVersion} is installed, in ${Math.round((performance.now() - started) / 1000)} s`,
    );
    return python;
  } finally {
    release();
  }
}

async function install(folder: string, note: (what: string) => void, signal: AbortSignal | undefined): Promise<void> {
  const interpreter = await findPython();
  const uv = findOnPath("uv") ?? (await ownUv(folder, interpreter, note, signal));
  const env = {
    ...process.env,
    UV_CACHE_DIR: join(folder, "downloads"),
    UV_PYTHON_INSTALL_DIR: join(folder, "python"),
    UV_HTTP_TIMEOUT: "120",
    UV_NO_PROGRESS: "1",
  };
  const environment = join(folder, "env");
  const step = (...args: string[]) => follow(uv, [...args, "--no-config"], { env, note, signal });
  await step("venv", "--allow-existing", "--python", interpreter ?? pythons[0]!, environment);
  await step("pip", "install", "--no-build", "--python", pythonOf(folder), "-r", lockedVersions);
}

/** An interpreter that the locked versions are for; undefined where uv has to fetch one. */
async function findPython(): Promise<string | undefined> {
  const pyenv = process.env["PYENV_ROOT"] ?? join(homedir(), ".pyenv");
  const candidates = [...pythons.map((version) => `python${version}`), "python3", ...installedBy(pyenv)];
  for (const candidate of candidates) {
    const found = await findInterpreter(candidate).catch(() => undefined);
    if (found && pythons.some((version) => found.version.startsWith(`${version}.`))) return found.executable;
  }
  return undefined;
}

function installedBy(pyenv: string): string[] {
  const versions = join(pyenv, "versions");
  if (!existsSync(versions)) return [];
  return readdirSync(versions).map((version) => join(versions, version, "bin", "python3"));
}

/** uv from PyPI, in an environment beside the engine's. */
async function ownUv(
  folder: string,
  interpreter: string | undefined,
  note: (what: string) => void,
  signal: AbortSignal | undefined,
): Promise<string> {
  const environment = join(folder, "uv");
  const uv = join(environment, "bin", "uv");
  if (existsSync(uv)) return uv;
  const base = interpreter ?? "python3";
  const run = (program: string, ...args: string[]) => follow(program, args, { env: process.env, note, signal });
  await run(base, "-m", "venv", "--without-pip", environment);
  const [pip, ...args] = await pipFor(base, join(environment, "bin", "python"));
  await run(
    pip,
    ...args,
    "install",
    "--quiet",
    "--disable-pip-version-check",
    "--only-binary",
    ":all:",
    `uv==${uvVersion}`,
  );
  return uv;
}

interface Following {
  env: NodeJS.ProcessEnv;
  note(what: string): void;
  signal: AbortSignal | undefined;
}

/** Runs a program to its end; each line that it says is noted. */
async function follow(program: string, args: readonly string[], { env, note, signal }: Following): Promise<void> {
  const child = spawn(program, args, { env, stdio: ["ignore", "pipe", "pipe"], ...(signal && { signal }) });
  const said: string[] = [];
  const take = (line: string) => {
    said.push(line.trim());
    if (line.trim() !== "") note(line.trim().slice(0, 80));
  };
  for (const stream of [child.stdout, child.stderr]) createInterface({ input: stream }).on("line", take);
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", resolve);
  }).catch((error: unknown) => {
    signal?.throwIfAborted();
    throw failed(`${program} did not start (${String(error)})`);
  });
  signal?.throwIfAborted();
  if (code !== 0)
    throw failed(`${program} ${args[0]} ended with code ${code}: ${said.slice(-6).join(" ").slice(-800)}`);
}

const failed = (why: string) =>
  new WhetstoneError(
    "cli/skyrl-install",
    `SkyRL ${skyrlVersion} cannot be installed: ${why}. What was fetched is kept, so the same command goes on; ${whet} engines remove=skyrl begins anew. ` +
      "With an environment of your own that has it: engine_python=PATH.",
  );
