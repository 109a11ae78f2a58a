// The contract, on `./whet serve engine=simulated` started as users start it: by our client, and by the official SDK.
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { foldersInMemory } from "../support/folders.ts";
import { newestSdk } from "../support/venv.ts";
import { describeOfficialSdk, sdkVenv } from "./official-sdk.ts";
import { startServe } from "./serve-process.ts";
import { describeTinkerApi } from "./tinker-api.ts";

const compat = process.env["WHET_COMPAT"] === "1";
const newFolder = foldersInMemory();
const start = () => startServe(["engine=simulated", `state_dir=${newFolder()}`]);

describeTinkerApi("./whet serve engine=simulated", start);

// Without WHET_COMPAT=1 the SDK's checks are for the engine that trains (embedded-tiny). What fails must not cost the SDK its 30 s of
// waiting for a server that may come back.
if (compat) describeOfficialSdk(start, { maxSeconds: 30 });

// Each process imports the SDK, which takes seconds of a core.
const [processes, samples] = [8, 1000];

test.skipIf(!compat)(
  `${samples} samples by copies of a pickled client in ${processes} processes: none is lost, doubled or mixed up`,
  {
    timeout: 300_000,
  },
  async (context) => {
    const venv = await sdkVenv(newestSdk);
    if ("missing" in venv) return context.skip(venv.missing);
    const server = await start();
    try {
      const script = fileURLToPath(new URL("./pickled_sdk.py", import.meta.url));
      const env = { ...process.env, TINKER_BASE_URL: server.baseUrl, TINKER_API_KEY: server.apiKey };
      const { stdout } = await promisify(execFile)(venv.python, [script, String(processes), String(samples)], {
        env,
        timeout: 280_000,
      });
      expect(JSON.parse(stdout)).toMatchObject({ answered: samples, wrong: 0, repeated_ids: 0, errors: [] });
      expect(server.errors()).toBe("");
    } finally {
      await server.close();
    }
  },
);
