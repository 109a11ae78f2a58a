// The program in docs/rl.md is run as it stands.
import { spawn } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { typescriptFlags } from "../../src/core/workers.ts";
import { startServe } from "../contract/serve-process.ts";
import { foldersInMemory } from "../support/folders.ts";

const folder = foldersInMemory();

test("the guide's program trains on its own problems", async () => {
  const guide = readFileSync(new URL("../../docs/rl.md", import.meta.url), "utf8");
  const cwd = folder();
  writeFileSync(join(cwd, "guide.ts"), /```ts\n([\s\S]*?)```/.exec(guide)![1]!);
  const server = await startServe([
    "engine=simulated",
    "tokenizer=nano-coder",
    "model_name=nano-coder",
    `state_dir=${folder()}`,
  ]);
  try {
    const env = { ...process.env, TINKER_BASE_URL: server.baseUrl, TINKER_API_KEY: server.apiKey };
    const child = spawn(process.execPath, [...typescriptFlags, "guide.ts"], { cwd, env });
    let output = "";
    for (const stream of [child.stdout, child.stderr])
      stream.on("data", (chunk: Buffer) => {
        output += chunk.toString();
      });
    const code = await new Promise((resolve) => child.once("exit", resolve));
    expect(code, output).toBe(0);
    expect(output).toMatch(/^0 [\d.-]+\n1 [\d.-]+\n2 \S+colors tinker:\/\/\S+\n$/);
  } finally {
    await server.close();
  }
});
