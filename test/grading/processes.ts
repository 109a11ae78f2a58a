// Starts `./whet` commands as real processes.
import { type ChildProcess, spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { outcomeOf, type WhetResult } from "../support/whet.ts";

const program = fileURLToPath(new URL("../../src/cli/whetstone.mjs", import.meta.url));

/** A `./whet` command: its process, and what it printed once it has ended. */
export function whet(
  args: readonly string[],
  options: { input?: string; env?: Record<string, string> } = {},
): { child: ChildProcess; finished: Promise<WhetResult> } {
  const { SANDBOX_URL: _, SANDBOX_TOKEN: __, ...environment } = process.env;
  const child = spawn(process.execPath, [program, ...args], {
    stdio: "pipe",
    env: { ...environment, ...options.env },
  });
  child.stdin.on("error", () => {});
  if (options.input !== undefined) child.stdin.end(options.input);
  return { child, finished: outcomeOf(child) };
}

export interface WhetProcess {
  url: string;
  child: ChildProcess;
  /** What it wrote to stderr so far. */
  stderr(): string;
  /** Ends it and waits for the end; resolves to its exit code. */
  stop(signal?: NodeJS.Signals): Promise<number | null>;
}

/** Starts a `./whet` server and waits for the line with its address. */
export async function startWhet(
  name: string,
  args: readonly string[],
  env: Record<string, string> = {},
): Promise<WhetProcess> {
  const { child, finished } = whet([name, ...args], { env });
  let printed = "";
  child.stderr!.on("data", (piece: string) => {
    printed += piece;
  });
  const url = await new Promise<string>((resolve, reject) => {
    let text = "";
    child.stdout!.on("data", (piece: string) => {
      text += piece;
      const found = /(http:\/\/\S+)/.exec(text);
      if (found) resolve(found[1]!);
    });
    void finished.then(({ code, stderr }) => reject(new Error(`./whet ${name} ended with ${code}: ${stderr}`)));
  });
  return {
    url,
    child,
    stderr: () => printed,
    stop: async (signal = "SIGTERM") => {
      child.kill(signal);
      return (await finished).code;
    },
  };
}
