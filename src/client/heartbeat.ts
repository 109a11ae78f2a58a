// Keeps a session alive. The beats are sent by a worker thread; this side only watches their reports.
import { Worker } from "node:worker_threads";
import type { Outage } from "../core/outage.ts";
import type { ProxyAddress } from "../core/proxy.ts";
import { heartbeatThread } from "./heartbeat-thread.ts";
import type { Notices } from "./notices.ts";

interface HeartbeatSettings {
  url: string;
  body: string;
  headers: Record<string, string>;
  proxy: ProxyAddress | undefined;
  intervalMs: number;
  timeoutMs: number;
}

interface HeartbeatReport {
  /** The HTTP status, 0 when there was no answer. */
  status: number;
  error?: string | undefined;
}

export class Heartbeat {
  readonly #worker: Worker;
  readonly #notices: Notices;
  readonly #outage: Outage;
  readonly #warnAfterMs: number;
  #lastSuccess = performance.now();
  /** Whether it has reported that the server is away. */
  #silent = false;
  #closed = false;

  constructor(
    settings: HeartbeatSettings,
    warnAfterMs: number,
    { notices, outage }: { notices: Notices; outage: Outage },
  ) {
    this.#warnAfterMs = warnAfterMs;
    this.#notices = notices;
    this.#outage = outage;
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
        this.#notices.once(
          `Heartbeats stopped (${error.message}). The server will end the session; make a new ServiceClient.`,
        );
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
      // Only an outage that heartbeats reported ends here: a server may answer heartbeats and nothing else.
      if (this.#silent) this.#outage.answered();
      this.#silent = false;
      return;
    }
    const silentMs = performance.now() - this.#lastSuccess;
    const what = `No heartbeat has reached the server for ${Math.round(silentMs / 1000)} s (${error ?? `status ${status}`}). It may end the session.`;
    if (status === 404)
      this.#notices.once("The server no longer knows this session. Its models are gone; resume from a checkpoint.");
    else if (silentMs > this.#warnAfterMs) {
      // Beats are short: without an answer to any of them the server is away, whatever else is waited for.
      if (status === 0) {
        this.#silent = true;
        this.#outage.failed(what, silentMs);
      } else this.#notices.say("heartbeat", what);
    }
  }
}
