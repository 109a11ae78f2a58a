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

  test("passes every check, and nothing that fails takes 30 s extra", async (context) => {
    if (missing !== undefined) {
      console.warn(`skipped: ${missing}`);
      context.skip(missing);
    }
    const checks = await runOfficialSdk(version, server);
    expect(checks.filter((check) => !check.ok)).toEqual([]);
    expect(checks.length).toBeGreaterThanOrEqual(30);
    for (const { check, seconds } of checks) expect(seconds, check).toBeLessThan(30);
    expect(server.errors()).toBe("");
  });
});
