// Makes a checkout ready to run; `./whet` calls it when something is missing. Plain JavaScript: it runs before there are packages.
// Exit code 0: ready. 1: not, and why is on stderr.
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  accessSync,
  chmodSync,
  constants,
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { registryProblem, runNpm } from "../src/core/npm.mjs";

const root = fileURLToPath(new URL("../", import.meta.url));
const lockfile = join(root, "package-lock.json");
const modules = join(root, "node_modules");
const stamp = join(modules, ".whet-lock");
const noBubblewrap = join(modules, ".whet-no-bwrap");

const say = (text) => process.stderr.write(`whetstone: ${text}\n`);

/** Ends the installation with a message. */
class Refusal extends Error {}

try {
  await installPackages();
  installBubblewrap();
} catch (error) {
  if (!(error instanceof Refusal)) throw error;
  say(error.message);
  process.exitCode = 1;
}

async function installPackages() {
  if (readIfThere(stamp) === readFileSync(lockfile, "utf8")) return;
  const missing = missingPackages();
  if (missing.length > 0) {
    checkWritable();
    const folder = installFolder();
    await install(folder, missing.length);
    if (folder !== root) linkPackages(folder);
    const left = missingPackages();
    if (left.length > 0)
      throw new Refusal(
        `npm ended without an error, but ${left[0]} is not there. Remove ${modules} and run this again.`,
      );
  }
  // Packages that somebody else put here are as good; a folder that cannot be written to is asked again next time.
  tolerate(() => copyFileSync(lockfile, stamp));
}

/** The packages of the lockfile that are not installed in their version, leaving out those of other platforms. */
function missingPackages() {
  const { packages } = JSON.parse(readFileSync(lockfile, "utf8"));
  return Object.entries(packages)
    .filter(([path, entry]) => path !== "" && !entry.optional && !entry.link)
    .filter(([path, entry]) => installedVersion(path) !== entry.version)
    .map(([path, entry]) => `${path.replace(/^.*node_modules\//, "")} ${entry.version}`);
}

function installedVersion(path) {
  const text = readIfThere(join(root, path, "package.json"));
  return text === undefined ? undefined : JSON.parse(text).version;
}

function checkWritable() {
  const folder = existsSync(modules) ? realpathSync(modules) : root;
  try {
    accessSync(folder, constants.W_OK);
  } catch (error) {
    const why =
      error.code === "EROFS"
        ? `${folder} is on a read-only file system`
        : `${folder} is read-only for this user (${error.code})`;
    throw new Refusal(
      `${why}, and its npm packages are not installed. Run ./whet once where it can be written, or copy the clone to a folder of your own.`,
    );
  }
}

/** Where npm installs: this clone; on a file system that runs no programs, a folder in the user's cache. */
function installFolder() {
  const name = createHash("sha256").update(root).digest("hex").slice(0, 16);
  const cache = process.env.WHETSTONE_CACHE || join(homedir(), ".cache", "whetstone");
  const folder = join(cache, "packages", name);
  if (linkOf(modules) === join(folder, "node_modules")) rmSync(modules);
  if (canExecute(existsSync(modules) ? modules : root)) return root;
  mkdirSync(folder, { recursive: true });
  if (!canExecute(folder))
    throw new Refusal(
      `${root} is on a file system that runs no programs (noexec), and so is ${cache}. Set WHETSTONE_CACHE to a folder on another one.`,
    );
  say(`this clone is on a file system that runs no programs (noexec); its packages go to ${folder}`);
  for (const file of ["package.json", "package-lock.json"]) copyFileSync(join(root, file), join(folder, file));
  return folder;
}

function canExecute(folder) {
  const probe = join(folder, ".whet-probe");
  try {
    writeFileSync(probe, "#!/bin/sh\nexit 0\n");
    chmodSync(probe, 0o755);
    return spawnSync(probe).status === 0;
  } finally {
    rmSync(probe, { force: true });
  }
}

function linkPackages(folder) {
  rmSync(modules, { recursive: true, force: true });
  try {
    symlinkSync(join(folder, "node_modules"), modules);
  } catch (error) {
    throw new Refusal(
      `${dirname(modules)} runs no programs (noexec) and takes no symbolic link (${error.code}). Clone to another file system.`,
    );
  }
}

async function install(folder, count) {
  say(`installing ${count} npm packages (first use, or the lockfile changed)`);
  // "install" rather than "ci": a lockfile made on another platform must work here too. No install script runs: what they would
  // do is already in the packages, or is not needed.
  const args = ["install", "--ignore-scripts", "--no-save", "--prefer-offline", "--loglevel=error"];
  const problem = await registryProblem(folder);
  if (problem === undefined) {
    const started = performance.now();
    const sign = setInterval(
      () => say(`still installing (${Math.round((performance.now() - started) / 1000)} s)`),
      20_000,
    );
    const { code } = await runNpm(args, { cwd: folder, show: true });
    clearInterval(sign);
    if (code !== 0)
      throw new Refusal(
        "npm could not install the packages; its message is above. Run this again when that is mended.",
      );
    return;
  }
  if (problem === "npm is not installed") throw new Refusal("npm is not installed. Install npm, then run this again.");
  // What npm has in its cache may be enough.
  const { code } = await runNpm([...args, "--offline"], { cwd: folder, limitMs: 30_000 });
  if (code === 0) return;
  const { stdout } = await runNpm(["config", "get", "registry"], { cwd: folder, limitMs: 5_000 });
  throw new Refusal(
    `The npm registry ${stdout.trim()} cannot be reached (${problem}), and the packages are neither here nor in npm's cache. ` +
      "They are needed once: connect to a network, or set npm's registry or proxy, and run this again; or copy node_modules from a clone that has it.",
  );
}

/** bubblewrap, for the sandbox. Where it cannot be installed, the sandbox says so and uses its next level. */
function installBubblewrap() {
  if (onPath("bwrap") || existsSync(noBubblewrap)) return;
  const command = systemCommand();
  // What a person would type: without the options against waiting.
  const short = command?.slice(0, 2).join(" ");
  const by = command ? ` To install it: ${short} bubblewrap` : " Install it with the system's package manager.";
  if (process.env.WHET_NO_INSTALL === "1") {
    say(`bubblewrap is not installed, and WHET_NO_INSTALL=1: the sandbox uses its second level (Landlock).${by}`);
    return;
  }
  const prefix = process.getuid?.() === 0 ? [] : sudoWorks() ? ["sudo", "-n"] : undefined;
  if (command && prefix) {
    for (const step of [command, ...(refreshOf(command) ?? [])]) {
      const whole = [...prefix, ...step];
      say(`bubblewrap is not installed; running: ${whole.join(" ")}   (WHET_NO_INSTALL=1 forbids this)`);
      spawnSync(whole[0], whole.slice(1), {
        stdio: "ignore",
        timeout: 120_000,
        env: { ...process.env, DEBIAN_FRONTEND: "noninteractive" },
      });
      if (onPath("bwrap")) return;
    }
  }
  const why = command && !prefix ? "this user may not install it" : "it could not be installed";
  say(`bubblewrap is not installed and ${why}: the sandbox uses its second level (Landlock).${by}`);
  tolerate(() => writeFileSync(noBubblewrap, ""));
}

/** What installs bubblewrap here. Network waits are short: a machine without one must not hang. */
function systemCommand() {
  const apt = ["-o", "Acquire::http::Timeout=10", "-o", "Acquire::https::Timeout=10", "-o", "Acquire::Retries=0"];
  const known = [
    ["apt-get", "install", "-y", "-qq", ...apt, "bubblewrap"],
    ["dnf", "install", "-y", "-q", "--setopt=timeout=10", "--setopt=retries=1", "bubblewrap"],
    ["apk", "add", "-q", "--timeout", "10", "bubblewrap"],
    ["pacman", "-S", "--noconfirm", "bubblewrap"],
    ["zypper", "install", "-y", "bubblewrap"],
  ];
  return known.find(([program]) => onPath(program));
}

/** A second try after fresh package lists, where the system keeps old ones. */
function refreshOf(command) {
  if (command[0] !== "apt-get") return undefined;
  return [["apt-get", "update", "-qq", ...command.slice(4, -1)], command];
}

function sudoWorks() {
  return onPath("sudo") && spawnSync("sudo", ["-n", "true"], { stdio: "ignore", timeout: 10_000 }).status === 0;
}

function onPath(program) {
  return (process.env.PATH ?? "").split(":").some((folder) => {
    try {
      accessSync(join(folder, program), constants.X_OK);
      return folder !== "";
    } catch {
      return false;
    }
  });
}

function linkOf(path) {
  try {
    return readlinkSync(path);
  } catch {
    return undefined;
  }
}

function readIfThere(path) {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
}

/** A read-only clone works too, only that it looks again each time. */
function tolerate(write) {
  try {
    write();
  } catch (error) {
    if (!["EROFS", "EACCES", "EPERM", "ENOENT"].includes(error.code)) throw error;
  }
}
