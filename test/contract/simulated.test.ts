// The contract, on `./whet serve engine=simulated` started as users start it: by our client, and by the official SDK.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { temporaryFolders } from "../support/folders.ts";
import { runOfficialSdk, sdkVenv, sdkVersions } from "./official-sdk.ts";
import { type ServeProcess, startServe } from "./serve-process.ts";
import { describeTinkerApi } from "./tinker-api.ts";

const newFolder = temporaryFolders();
const start = () => startServe(["engine=simulated", `state_dir=${newFolder()}`]);

describeTinkerApi("./whet serve engine=simulated", start);

describe.each(sdkVersions)("the official SDK, tinker %s", (version) => {
  const venv = sdkVenv(version);
  if ("missing" in venv) console.warn(`skipped: ${venv.missing}`);
  let server: ServeProcess;
  beforeAll(async () => {
    server = await start();
  });
  afterAll(async () => {
    expect(await server.close()).toBe(0);
  });

  test.skipIf("missing" in venv)("passes every check, and nothing that fails takes 30 s extra", async () => {
    const checks = await runOfficialSdk(version, server);
    expect(checks.filter((check) => !check.ok)).toEqual([]);
    expect(checks.length).toBeGreaterThanOrEqual(30);
    for (const { check, seconds } of checks) expect(seconds, check).toBeLessThan(30);
    expect(server.errors()).toBe("");
  });
});
