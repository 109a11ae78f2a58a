// Starts controlled-run.ts against an engine that outlives it.
import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { type SharedEngine, sharedEngine } from "../support/shared-engine.ts";
import { cleanEnvironment } from "../support/whet.ts";
import type { ControlledRun } from "./controlled-run.ts";

const script = fileURLToPath(new URL("./controlled-run.ts", import.meta.url));
const loader = fileURLToPath(new URL("../../src/core/ts-loader.mjs", import.meta.url));

export class ControlledRuns {
  readonly #engine: SharedEngine;

  static async open(): Promise<ControlledRuns> {
    return new ControlledRuns(await sharedEngine());
  }

  private constructor(engine: SharedEngine) {
    this.#engine = engine;
  }

  get stateDir(): string {
    return this.#engine.stateDir;
  }

  /** Starts a run; `ended` resolves with its exit code, null when it was killed. */
  start(plan: Omit<ControlledRun, "baseUrl" | "apiKey">) {
    const { baseUrl, apiKey } = this.#engine;
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
}
