// A server that misbehaves by script, over an engine that keeps count, and a client with short delays: what the fault tests need.
import { readFileSync } from "node:fs";
import { ServiceClient, type Timings, TinkerError } from "../../src/client/index.ts";
import type { AdamSettings } from "../../src/engine/engine.ts";
import { SimulatedEngine } from "../../src/engine/simulated/engine.ts";
import { startServer, type TinkerServer } from "../../src/server/index.ts";
import { FaultScript } from "../support/faults.ts";

/** Long enough for an answer on a busy machine, short enough that a silent connection costs little. */
const timings: Partial<Timings> = {
  requestTimeoutMs: 400,
  pollTimeoutMs: 400,
  retryBaseMs: 2,
  retryMaxMs: 10,
  retryWindowMs: 20_000,
  heartbeatIntervalMs: 60_000,
};

/** How long a fault keeps a connection silent: longer than the client waits. A slow answer takes a tenth of it. */
export const silenceMs = 600;

const documented = new Set(
  [
    ...readFileSync(new URL("../../docs/errors.md", import.meta.url), "utf8").matchAll(/^\| `([a-z]+\/[a-z0-9-]+)`/gm),
  ].map((match) => match[1]!),
);

export interface FaultyServer {
  server: TinkerServer;
  faults: FaultScript;
  service: ServiceClient;
  /** How often each learning rate was applied by the engine: tests give every optimizer step its own. */
  applied: Map<number, number>;
  close(): Promise<void>;
}

export async function startFaulty(stateDir: string): Promise<FaultyServer> {
  const faults = new FaultScript();
  const applied = new Map<number, number>();
  class CountingEngine extends SimulatedEngine {
    override async optimStep(modelId: string, adam: AdamSettings) {
      const metrics = await super.optimStep(modelId, adam);
      applied.set(adam.learningRate, (applied.get(adam.learningRate) ?? 0) + 1);
      return metrics;
    }
  }
  const server = await startServer({
    stateDir,
    createEngine: async () => new CountingEngine(),
    apiKey: "tml-faults",
    intercept: faults.intercept,
    pollHoldMs: 100,
    gapLimitMs: 1000,
    drainMs: 0,
  });
  const service = new ServiceClient({ baseUrl: server.url, apiKey: "tml-faults", timings, onWarning: () => {} });
  return {
    server,
    faults,
    service,
    applied,
    async close() {
      await service.close();
      await server.close();
    },
  };
}

/** The code of a documented client error; anything else is thrown on. */
export function documentedCode(error: unknown): string {
  if (error instanceof TinkerError && documented.has(error.code)) return error.code;
  throw error;
}
