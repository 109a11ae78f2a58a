// Runs the official Python SDK against any Tinker server: the twin of tinker-api.ts, in official_sdk.py.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { newestSdk, openVenv, suiteVenv, type Venv } from "../support/venv.ts";
import type { ServeProcess } from "./serve-process.ts";

/** With WHET_COMPAT=1 the last ones of two older wires too. scripts/compat/sdk.ts takes any. */
export const sdkVersions: readonly string[] =
  process.env["WHET_COMPAT"] === "1" ? [newestSdk, "0.25.0", "0.24.1"] : [newestSdk];

export interface SdkCheck {
  check: string;
  ok: boolean;
  seconds: number;
  error?: string;
}

/** The environment with that version of the SDK, made on first use; or why it cannot be had. */
export const sdkVenv = (version: string): Promise<Venv> =>
  version === newestSdk ? suiteVenv() : openVenv([`tinker==${version}`]);

/** Every check of official_sdk.py, by these versions, each on a server of its own. `maxSeconds`: what a check may take, where it matters. */
export function describeOfficialSdk(
  start: () => Promise<ServeProcess>,
  options: { versions?: readonly string[]; maxSeconds?: number } = {},
): void {
  describe.each(options.versions ?? sdkVersions)("the official SDK, tinker %s", (version) => {
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

    test("passes every check", { timeout: 300_000 }, async (context) => {
      if (missing !== undefined) {
        console.warn(`skipped: ${missing}`);
        context.skip(missing);
      }
      const checks = await runOfficialSdk(version, server, { timeoutMs: 280_000 });
      expect(checks.filter((check) => !check.ok)).toEqual([]);
      expect(checks.length).toBeGreaterThanOrEqual(version === newestSdk ? 49 : 34);
      for (const { check, seconds } of checks) expect(seconds, check).toBeLessThan(options.maxSeconds ?? 280);
      expect(server.errors()).toBe("");
    });
  });
}

/** Runs every check of official_sdk.py; rejects only when the script itself could not run. */
export async function runOfficialSdk(
  version: string,
  target: { baseUrl: string; apiKey: string },
  options: { timeoutMs?: number } = {},
): Promise<SdkCheck[]> {
  const venv = await sdkVenv(version);
  if ("missing" in venv) throw new Error(venv.missing);
  const script = fileURLToPath(new URL("./official_sdk.py", import.meta.url));
  const child = spawn(venv.python, [script], {
    env: { ...process.env, TINKER_BASE_URL: target.baseUrl, TINKER_API_KEY: target.apiKey },
    timeout: options.timeoutMs ?? 110_000,
  });
  let output = "";
  let errors = "";
  child.stdout.on("data", (chunk: Buffer) => {
    output += chunk.toString();
  });
  child.stderr.on("data", (chunk: Buffer) => {
    errors = (errors + chunk.toString()).slice(-4000);
  });
  const [code] = (await once(child, "close")) as [number | null];
  const lines = output
    .split("\n")
    .filter((line) => line.startsWith("{"))
    .map((line) => JSON.parse(line) as SdkCheck & { version?: string });
  const summary = lines.pop();
  if (summary?.version !== version)
    throw new Error(
      `the script for tinker ${version} ended early (exit code ${code}): ${errors}\n${output.slice(-2000)}`,
    );
  return lines;
}
