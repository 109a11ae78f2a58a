// The embedded engine as a child process: `./whet serve` on a loopback port with a random key. It ends with this process, and is
// started again where it was if it dies.
import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { createWriteStream, type WriteStream } from "node:fs";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { WhetstoneError } from "../../core/errors.ts";

/** The embedded server did not start, or cannot be kept alive. */
export class EmbeddedServerError extends WhetstoneError {}

export interface EmbeddedServerOptions {
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
  onLost?(error: EmbeddedServerError): void;
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
    this.#log = createWriteStream(options.logFile, { flags: "a" });
    // A log that cannot be written (a full disk) is no reason to end: what matters of it is in the errors.
    this.#log.on("error", () => {});
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
    const child = this.#child;
    if (child && child.exitCode === null && child.signalCode === null) {
      const ended = new Promise<void>((resolve) => child.once("exit", () => resolve()));
      // Closing its standard input asks it to stop; a server that hangs is not waited for.
      child.stdin?.end();
      const timer = setTimeout(() => child.kill("SIGKILL"), 10_000);
      await ended;
      clearTimeout(timer);
    }
    await new Promise<void>((resolve) => this.#log.end(() => resolve()));
  }

  #spawn(): Promise<void> {
    const main = fileURLToPath(new URL("../whetstone.mjs", import.meta.url));
    const args = [
      `port=${this.#port}`,
      `state_dir=${this.#options.stateDir}`,
      "exit_with_parent=true",
      ...(this.#options.args ?? []),
    ];
    // The key goes through the environment: arguments can be read by every user of the machine.
    const child = spawn(process.execPath, [main, "serve", ...args], {
      env: { ...process.env, TINKER_API_KEY: this.apiKey },
      stdio: ["pipe", "pipe", "pipe"],
      // A process group of its own: a signal to the parent's group must not take away the server that it saves its state on.
      detached: true,
    });
    this.#child = child;
    child.stdin.on("error", () => {});
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
        // Nobody here sends it that.
        const reason =
          signal === "SIGKILL"
            ? "SIGKILL, mostly the kernel's answer to out of memory"
            : (signal ?? `exit code ${code}`);
        reject(
          new EmbeddedServerError(
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
        new EmbeddedServerError(
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
