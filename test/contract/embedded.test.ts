// The same contract on the embedded engine and the bundled model: real training, real sampling.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { temporaryFolders } from "../support/folders.ts";
import { runOfficialSdk, sdkVenv, sdkVersions } from "./official-sdk.ts";
import { type ServeProcess, startServe } from "./serve-process.ts";
import { describeTinkerApi } from "./tinker-api.ts";

const newFolder = temporaryFolders();
const start = () => startServe(["engine=embedded", `state_dir=${newFolder()}`]);

describeTinkerApi("./whet serve engine=embedded", start);

describe("the official SDK on the embedded engine", () => {
  const [version] = sdkVersions;
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

  test(`tinker ${version} passes every check`, { timeout: 300_000 }, async (context) => {
    if (missing !== undefined) {
      console.warn(`skipped: ${missing}`);
      context.skip(missing);
    }
    const checks = await runOfficialSdk(version, server, { timeoutMs: 280_000 });
    expect(checks.filter((check) => !check.ok)).toEqual([]);
    expect(server.errors()).toBe("");
  });
});
