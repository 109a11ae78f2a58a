// Runs `./whet` for a fault: its output goes beside the run.
import { spawn } from "node:child_process";
import { createWriteStream, mkdirSync } from "node:fs";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";

export const root = fileURLToPath(new URL("../../", import.meta.url));
const whetPath = fileURLToPath(new URL("../../whet", import.meta.url));

/** Runs to the end, whatever the exit code. `prefix` is a command that runs it. */
export async function whet(
  args: readonly string[],
  { log, env = {}, prefix = [] }: { log: string; env?: Record<string, string>; prefix?: readonly string[] },
): Promise<number | null> {
  mkdirSync(dirname(log), { recursive: true });
  const [command, ...rest] = [...prefix, whetPath, ...args];
  const { TINKER_API_KEY: _1, TINKER_BASE_URL: _2, SANDBOX_URL: _3, ...clean } = process.env;
  const child = spawn(command!, rest, { env: { ...clean, ...env }, stdio: ["ignore", "pipe", "pipe"] });
  const output = createWriteStream(log, { flags: "a" });
  for (const stream of [child.stdout, child.stderr]) stream.pipe(output, { end: false });
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", resolve);
  });
}

/** Trains with these settings; no evaluations, no TensorBoard unless given. */
export async function train(path: string, settings: Record<string, string | number | boolean>): Promise<void> {
  const all = { eval_every: -1, tensorboard: false, save_every: 5, ...settings };
  await whet(["train", `log_path=${path}`, ...Object.entries(all).map(([key, value]) => `${key}=${value}`)], {
    log: `${path}.log`,
  });
}
