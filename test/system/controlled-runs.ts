// Starts controlled-run.ts against a server that outlives it.
import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { startServe } from "../contract/serve-process.ts";
import { cleanEnvironment } from "../support/whet.ts";
import type { ControlledRun } from "./controlled-run.ts";

const script = fileURLToPath(new URL("./controlled-run.ts", import.meta.url));
const loader = fileURLToPath(new URL("../../src/core/ts-loader.mjs", import.meta.url));

export class ControlledRuns {
  readonly stateDir: string;
  readonly #server: Awaited<ReturnType<typeof startServe>>;

  static async open(stateDir: string): Promise<ControlledRuns> {
    return new ControlledRuns(stateDir, await startServe([`state_dir=${stateDir}`]));
  }

  private constructor(stateDir: string, server: Awaited<ReturnType<typeof startServe>>) {
    this.stateDir = stateDir;
    this.#server = server;
  }

  /** Starts a run; `ended` resolves with its exit code, null when it was killed. */
  start(plan: Omit<ControlledRun, "baseUrl" | "apiKey">) {
    const { baseUrl, apiKey } = this.#server;
    const child = spawn(process.execPath, ["--import", loader, script, JSON.stringify({ ...plan, baseUrl, apiKey })], {
      env: cleanEnvironment(),
      stdio: ["ignore", "inherit", "pipe"],
    });
    let stderr = "";
    child.stderr.on("data", (chunk: Buffer) => (stderr += chunk.toString()));
    const ended = new Promise<{ code: number | null; stderr: string }>((resolve) =>
      child.once("close", (code) => resolve({ code, stderr })),
    );
    return { ended, stderr: () => stderr };
  }

  async close(): Promise<void> {
    await this.#server.close();
  }
}
