// The program in docs/tinker.md is run as it stands.
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { typescriptFlags } from "../../src/core/workers.ts";
import { startServe } from "../contract/serve-process.ts";

const root = new URL("../../", import.meta.url);

test("the guide's program trains, samples, saves and resumes", async () => {
  const guide = readFileSync(new URL("docs/tinker.md", root), "utf8");
  const program = /```ts\n([\s\S]*?)```/.exec(guide)![1]!;
  const folder = mkdtempSync(join(tmpdir(), "whetstone-guide-"));
  const server = await startServe(["engine=simulated", `state_dir=${join(folder, "state")}`]);
  try {
    const file = join(folder, "guide.ts");
    writeFileSync(file, program);
    const child = spawn(process.execPath, [...typescriptFlags, file], {
      env: { ...process.env, TINKER_BASE_URL: server.baseUrl, TINKER_API_KEY: server.apiKey },
    });
    let output = "";
    for (const stream of [child.stdout, child.stderr])
      stream.on("data", (chunk: Buffer) => {
        output += chunk.toString();
      });
    const code = await new Promise((resolve) => child.once("exit", resolve));
    expect(code, output).toBe(0);
    expect(output).toMatch(/Float32Array\(4\)/);
    expect(output).toMatch(/Int32Array\(\d\)/);
  } finally {
    await server.close();
    rmSync(folder, { recursive: true, force: true });
  }
});
