// The contract, on `./whet serve model=DIR` with the embedded engine and a tiny random model: by our client, and by the official SDK.
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { temporaryFolders } from "../support/folders.ts";
import { writeTinyModel } from "../support/tiny-model.ts";
import { runOfficialSdk, sdkVenv, sdkVersions } from "./official-sdk.ts";
import { type ServeProcess, startServe } from "./serve-process.ts";
import { describeTinkerApi } from "./tinker-api.ts";

const newFolder = temporaryFolders();

function start(): Promise<ServeProcess> {
  const model = join(newFolder(), "tiny");
  writeTinyModel(model);
  return startServe([`model=${model}`, `state_dir=${newFolder()}`]);
}

describeTinkerApi("./whet serve model=DIR", start);

describe.each(sdkVersions)("the official SDK, tinker %s", (version) => {
  let server: ServeProcess;
  let missing: string | undefined;
  beforeAll(async () => {
    const venv = await sdkVenv(version);
    if ("missing" in venv) missing = venv.missing;
    server = await start();
  }, 600_000);
  afterAll(async () => {
    expect(await server.close()).toBe(0);
  });

  test("passes every check on the embedded engine", { timeout: 300_000 }, async (context) => {
    if (missing !== undefined) {
      console.warn(`skipped: ${missing}`);
      context.skip(missing);
    }
    const checks = await runOfficialSdk(version, server, { timeoutMs: 280_000 });
    expect(checks.filter((check) => !check.ok)).toEqual([]);
    expect(checks.length).toBeGreaterThanOrEqual(30);
    expect(server.errors()).toBe("");
  });
});
