// Keeps a session alive. The beats are sent by a worker thread; this side only watches their reports.
import { Worker } from "node:worker_threads";
import { heartbeatThread } from "./heartbeat-thread.ts";

export interface HeartbeatSettings {
  url: string;
  body: string;
  headers: Record<string, string>;
  intervalMs: number;
  timeoutMs: number;
}

export interface HeartbeatReport {
  /** The HTTP status, 0 when there was no answer. */
  status: number;
  error?: string | undefined;
}

export class Heartbeat {
  readonly #worker: Worker;
  readonly #warn: (message: string) => void;
  readonly #warnAfterMs: number;
  #lastSuccess = performance.now();
  #lost = false;
  #closed = false;

  constructor(settings: HeartbeatSettings, warnAfterMs: number, warn: (message: string) => void) {
    this.#warnAfterMs = warnAfterMs;
    this.#warn = warn;
    this.#worker = new Worker(heartbeatThread, {
      eval: true,
      workerData: settings,
      // Nothing of the caller's environment or flags is needed there.
      env: {},
      execArgv: [],
      resourceLimits: { maxOldGenerationSizeMb: 32 },
    });
    this.#worker.on("message", (report: HeartbeatReport) => this.#observe(report));
    this.#worker.on("error", (error) => {
      if (!this.#closed)
        this.#warn(`Heartbeats stopped (${error.message}). The server will end the session; make a new ServiceClient.`);
    });
    // Last: a new listener would keep the process alive again.
    this.#worker.unref();
  }

  setApiKey(token: string): void {
    this.#worker.postMessage(token);
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#worker.terminate();
  }

  #observe({ status, error }: HeartbeatReport): void {
    if (this.#closed) return;
    if ((status >= 200 && status < 300) || status === 410) {
      this.#lastSuccess = performance.now();
      return;
    }
    const silentMs = performance.now() - this.#lastSuccess;
    const reason = error ?? `status ${status}`;
    if (status === 404) {
      if (!this.#lost)
        this.#warn("The server no longer knows this session. Its models are gone; resume from a checkpoint.");
      this.#lost = true;
    } else if (silentMs > this.#warnAfterMs)
      this.#warn(
        `No heartbeat has reached the server for ${Math.round(silentMs / 1000)} s (${reason}). It may end the session.`,
      );
  }
}
