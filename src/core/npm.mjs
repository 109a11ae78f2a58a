// Calls npm without ever hanging on a network that is not there. Plain JavaScript without dependencies: the launcher uses it before
// any package is installed, and the package uses it to fetch the engine's runtime.
import { spawn } from "node:child_process";

/** What npm says when nothing answered, as opposed to a registry that answered something unpleasant. */
const unreachable =
  /\b(ENOTFOUND|EAI_AGAIN|EAI_FAIL|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|EHOSTUNREACH|EPIPE|ERR_SOCKET_TIMEOUT|EPROTO)\b|network timeout/;

/** npm waits for minutes by itself, and for the operating system's patience while a connection is being made. */
const patience = [
  "--fetch-retries=2",
  "--fetch-retry-mintimeout=1000",
  "--fetch-retry-maxtimeout=10000",
  "--fetch-timeout=60000",
  "--no-audit",
  "--no-fund",
  "--no-update-notifier",
];

/** The npm that runs this process, where one does; else the one on the PATH. */
function npmCommand() {
  const path = process.env.npm_execpath ?? "";
  return /[\\/]npm-cli\.js$/.test(path) ? [process.execPath, path] : ["npm"];
}

/**
 * Runs npm to its end, or until `limitMs`. Its output is kept; with `show`, what it writes to stderr goes to ours as well.
 * `code` is null when it was stopped, and -1 when there is no npm.
 */
export function runNpm(args, { cwd, limitMs, show = false } = {}) {
  const [program, ...first] = npmCommand();
  return new Promise((resolve) => {
    // A terminal of its own keeps npm's progress bar; nothing is ever asked.
    const child = spawn(program, [...first, ...args, ...patience], {
      cwd,
      stdio: ["ignore", "pipe", show && process.stderr.isTTY ? "inherit" : "pipe"],
    });
    let stdout = "";
    let stderr = "";
    child.stdout.on("data", (chunk) => {
      stdout += chunk;
    });
    child.stderr?.on("data", (chunk) => {
      stderr += chunk;
      if (show) process.stderr.write(chunk);
    });
    const timer = limitMs === undefined ? undefined : setTimeout(() => child.kill("SIGKILL"), limitMs);
    const finish = (code) => {
      clearTimeout(timer);
      resolve({ code, stdout, stderr });
    };
    child.once("error", (error) => {
      stderr += String(error);
      finish(error.code === "ENOENT" ? -1 : 1);
    });
    child.once("close", finish);
  });
}

/** Why npm's registry cannot be reached, or undefined when it answers. Takes 15 seconds at most. */
export async function registryProblem(cwd) {
  const { code, stderr } = await runNpm(["ping", "--fetch-retries=0", "--fetch-timeout=12000"], {
    cwd,
    limitMs: 15_000,
  });
  if (code === 0) return undefined;
  if (code === -1) return "npm is not installed";
  if (code === null) return "no answer within 15 seconds";
  // A registry without this route, or one that wants a login, is there all the same.
  return unreachable.exec(stderr)?.[0];
}
