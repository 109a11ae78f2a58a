// The program in docs/rl.md is run as it stands.
import { execFile, spawn } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { typescriptFlags } from "../../src/core/workers.ts";
import { startServe } from "../contract/serve-process.ts";
import { foldersInMemory } from "../support/folders.ts";

const folder = foldersInMemory();

const guide = readFileSync(new URL("../../docs/rl.md", import.meta.url), "utf8");
const programs = [...guide.matchAll(/```ts\n([\s\S]*?)```/g)].map(([, text]) => text!);

test("the guide's parts for a loop of one's own run as they stand", async () => {
  expect(programs).toHaveLength(2);
  const cwd = folder();
  writeFileSync(join(cwd, "parts.ts"), programs[1]!);
  const { stdout } = await promisify(execFile)(process.execPath, [...typescriptFlags, "parts.ts"], { cwd });
  expect(stdout).toBe("[ 'target_tokens', 'logprobs', 'advantages' ]\nfinished 42\n\n");
});

test("the guide's program trains on its own problems", async () => {
  const cwd = folder();
  writeFileSync(join(cwd, "guide.ts"), programs[0]!);
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
