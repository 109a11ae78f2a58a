// `./whet sandbox` for tests.
import { type ChildProcess, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { cleanEnvironment, whetPath } from "./whet.ts";

/** `./whet sandbox` as a process of its own, on a port that can be taken again. */
export async function startSandbox(
  port = 0,
): Promise<{ url: string; port: number; child: ChildProcess; stop(): Promise<void> }> {
  const child = spawn(whetPath, ["sandbox", `port=${port}`], {
    env: cleanEnvironment(),
    stdio: ["ignore", "pipe", "ignore"],
  });
  const exited = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  const url = await new Promise<string>((resolve, reject) => {
    createInterface({ input: child.stdout! }).on("line", (line) => {
      const found = /http:\/\/127\.0\.0\.1:\d+/.exec(line)?.[0];
      if (found) resolve(found);
    });
    child.once("exit", (code) => reject(new Error(`./whet sandbox ended with ${code}`)));
  });
  return {
    url,
    port: Number(new URL(url).port),
    child,
    stop: async () => {
      child.kill("SIGTERM");
      await exited;
    },
  };
}
