// The same run whatever the timing: answers of the server and of the sandbox are held back for random times, and the adapter is bit for
// bit the same. One lag here; others with WHET_LAGS=0,1,2,4 ./whet test test/system/delays
import { join } from "node:path";
import { expect, test } from "vitest";
import { startServe } from "../contract/serve-process.ts";
import { delayingProxy } from "../support/delaying-proxy.ts";
import { foldersInMemory } from "../support/folders.ts";
import { startSandbox } from "../support/sandbox-process.ts";
import { finalAdapter, metricsOf, train } from "./killing.ts";

const newFolder = foldersInMemory();
const lags = (process.env["WHET_LAGS"] ?? "2").split(",").map(Number);
const settings = [
  "max_steps=3",
  "eval_every=3",
  "eval_max_problems=3",
  "prompts_per_step=2",
  "completions_per_prompt=4",
  "max_tokens=64",
  "tensorboard=false",
  "allow_unclipped=true",
];

test.each(lags)(
  "max_lag=%i: two runs under different delays end with the same adapter",
  { timeout: 600_000 },
  async (lag) => {
    const stateDir = newFolder();
    const server = await startServe([`state_dir=${stateDir}`]);
    const sandbox = await startSandbox();
    try {
      const results = [];
      for (const [seed, samplingMs, gradingMs] of [
        [1, 20, 200],
        [2, 200, 20],
      ] as const) {
        const slowServer = await delayingProxy(server.baseUrl, samplingMs, seed);
        const slowSandbox = await delayingProxy(sandbox.url, gradingMs, seed);
        const path = join(newFolder(), "run");
        const env = { TINKER_API_KEY: server.apiKey, SANDBOX_URL: slowSandbox.url };
        expect(
          await train([`log_path=${path}`, `base_url=${slowServer.url}`, `max_lag=${lag}`, ...settings], { env }),
        ).toBe(0);
        results.push({ adapter: finalAdapter(path, stateDir), metrics: metricsOf(path) });
        await slowServer.close();
        await slowSandbox.close();
      }
      expect(results[1]).toEqual(results[0]);
    } finally {
      await server.close();
      await sandbox.stop();
    }
  },
);
