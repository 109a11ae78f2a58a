// Starts controlled-run.ts against an engine that outlives it.
import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { bundled } from "../support/bundled.ts";
import { type SharedEngine, sharedEngine } from "../support/shared-engine.ts";
import { cleanEnvironment } from "../support/whet.ts";
import type { ControlledRun } from "./controlled-run.ts";

const script = fileURLToPath(new URL("./controlled-run.ts", import.meta.url));

export class ControlledRuns {
  readonly #engine: SharedEngine;
  readonly #program: string;

  static async open(): Promise<ControlledRuns> {
    const [engine, file] = await Promise.all([sharedEngine(), bundled(script)]);
    return new ControlledRuns(engine, file);
  }

  private constructor(engine: SharedEngine, file: string) {
    this.#engine = engine;
    this.#program = file;
  }

  get stateDir(): string {
    return this.#engine.stateDir;
  }

  /** Starts a run; `ended` resolves with its exit code, null when it was killed. */
  start(plan: Omit<ControlledRun, "baseUrl" | "apiKey">) {
    const { baseUrl, apiKey } = this.#engine;
    const child = spawn(process.execPath, [this.#program, JSON.stringify({ ...plan, baseUrl, apiKey })], {
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
