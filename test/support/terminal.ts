// `./whet` on a real terminal; util-linux's `script` makes one.
import { spawn, spawnSync } from "node:child_process";
import { cleanEnvironment, whetPath } from "./whet.ts";

export const hasTerminal = spawnSync("script", ["--version"]).status === 0;
if (!hasTerminal) console.warn("skipped: util-linux's script is not installed");

/** Runs a command and types `keys` once `question` is there. */
export function onTerminal(
  args: readonly string[],
  { question, keys, env }: { question: string; keys: string; env: Record<string, string> },
): Promise<{ code: number | null; output: string }> {
  const command = [whetPath, ...args].map((word) => `'${word}'`).join(" ");
  const child = spawn("script", ["-qec", command, "/dev/null"], {
    env: cleanEnvironment(env),
    stdio: ["pipe", "pipe", "pipe"],
  });
  let output = "";
  let typed = false;
  child.stdout.on("data", (chunk: Buffer) => {
    output += chunk.toString();
    if (typed || !output.includes(question)) return;
    typed = true;
    child.stdin.write(keys);
  });
  return new Promise((resolve) => child.once("close", (code) => resolve({ code, output })));
}
