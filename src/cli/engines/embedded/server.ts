// The embedded engine as a child process: `./whet serve` on a loopback port with a random key. It ends with this process; if
// it dies earlier, it is started again on the same port.

import type { ChildProcess } from "node:child_process";
import { randomBytes } from "node:crypto";
import type { WriteStream } from "node:fs";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { WhetstoneError } from "../../../core/errors.ts";
import { closeLog, openLog, spawnEngine, stopEngine } from "../process.ts";

interface EmbeddedServerOptions {
  /** Where it keeps runs and checkpoints. */
  stateDir: string;
  /** Gets what the server writes to stderr. */
  logFile: string;
  /** Further arguments of `./whet serve`. */
  args?: readonly string[];
  /** Called when it died and is started again. */
  onRestart?(reason: string): void;
  /** Default a minute. */
  healthyMs?: number;
  /** Called when it keeps dying and is not started any more: nobody will answer on its port. */
  onLost?: ((error: WhetstoneError) => void) | undefined;
}

/** Deaths in a row; after one that lived for `healthyMs` the count begins anew. */
const maxRestarts = 3;
const defaultHealthyMs = 60_000;

export class EmbeddedServer {
  readonly apiKey: string;
  readonly #options: EmbeddedServerOptions;
  readonly #log: WriteStream;
  #child: ChildProcess | undefined;
  #port = 0;
  #restarts = 0;
  #startedAt = 0;
  #closing = false;

  /** Starts the server and waits until it answers. */
  static async start(options: EmbeddedServerOptions): Promise<EmbeddedServer> {
    const server = new EmbeddedServer(options);
    await server.#spawn();
    return server;
  }

  private constructor(options: EmbeddedServerOptions) {
    this.#options = options;
    this.#log = openLog(options.logFile);
    this.apiKey = `tml-${randomBytes(24).toString("hex")}`;
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  /** For tests that kill it. */
  get pid(): number | undefined {
    return this.#child?.pid;
  }

  async close(): Promise<void> {
    this.#closing = true;
    if (this.#child) await stopEngine(this.#child, 10_000);
    await closeLog(this.#log);
  }

  #spawn(): Promise<void> {
    const main = fileURLToPath(new URL("../../whetstone.mjs", import.meta.url));
    const { stateDir, args: more = [] } = this.#options;
    const args = [`port=${this.#port}`, `state_dir=${stateDir}`, "exit_with_parent=true", ...more];
    // The key goes through the environment: arguments can be read by every user of the machine.
    const env = { ...process.env, TINKER_API_KEY: this.apiKey };
    const child = spawnEngine(process.execPath, [main, "serve", ...args], { env });
    this.#child = child;
    let lastWords = "";
    child.stderr.on("data", (chunk: Buffer) => {
      lastWords = (lastWords + chunk.toString()).slice(-2000);
      this.#log.write(chunk);
    });
    return new Promise((resolve, reject) => {
      createInterface({ input: child.stdout }).on("line", (line) => {
        const port = /http:\/\/127\.0\.0\.1:(\d+)/.exec(line)?.[1];
        if (port === undefined) return;
        this.#port = Number(port);
        this.#startedAt = performance.now();
        resolve();
      });
      child.once("error", reject);
      child.once("exit", (code, signal) => {
        // This process never sends SIGKILL to a server that runs.
        const reason =
          signal === "SIGKILL"
            ? "SIGKILL, mostly the kernel's answer to out of memory"
            : (signal ?? `exit code ${code}`);
        reject(
          new WhetstoneError(
            "cli/embedded-server",
            `The embedded engine did not start (${reason}): ${lastWords.trim() || "it said nothing"} The whole log is ${this.#options.logFile}.`,
          ),
        );
        this.#revive(reason);
      });
    });
  }

  /** A server that died after it had started is started again on the same port, so that its clients find it. */
  #revive(reason: string): void {
    if (this.#closing || this.#port === 0) return;
    if (performance.now() - this.#startedAt > (this.#options.healthyMs ?? defaultHealthyMs)) this.#restarts = 0;
    if (this.#restarts++ >= maxRestarts) {
      this.#options.onLost?.(
        new WhetstoneError(
          "cli/embedded-server-lost",
          `The embedded engine ended ${maxRestarts + 1} times in a row (the last time: ${reason}), so it is not started again. ` +
            `${this.#options.logFile} says why. Resume the run: it goes on where this one ended.`,
        ),
      );
      return;
    }
    this.#options.onRestart?.(reason);
    this.#spawn().catch((error: unknown) => this.#log.write(`${String(error)}\n`));
  }
}
