// The one-file example, run as a reader runs it: real server, real jail, two steps.
import { spawn } from "node:child_process";
import { chmodSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { foldersInMemory } from "../support/folders.ts";

const root = fileURLToPath(new URL("../../", import.meta.url));
const example = join(root, "examples/rl-loop.ts");
const newFolder = foldersInMemory();

function run(scratch: string, ...args: string[]): Promise<{ code: number | null; output: string; errors: string }> {
  const loader = new URL("../../src/core/ts-loader.mjs", import.meta.url).href;
  const child = spawn(process.execPath, ["--import", loader, example, ...args], {
    cwd: root,
    env: { ...process.env, TMPDIR: scratch, OMP_NUM_THREADS: "" },
  });
  let output = "";
  let errors = "";
  child.stdout.on("data", (chunk) => {
    output += chunk;
  });
  child.stderr.on("data", (chunk) => {
    errors += chunk;
  });
  return new Promise((resolve) => child.once("close", (code) => resolve({ code, output, errors })));
}

test("fits on 200 lines and imports nothing but public entries", () => {
  const source = readFileSync(example, "utf8");
  expect(source.trimEnd().split("\n").length).toBeLessThanOrEqual(200);
  const { exports } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  const entries = Object.keys(exports).map((path) => path.replace(/^\./, "whetstone"));
  for (const [, name] of source.matchAll(/from "([^"]+)"/g)) {
    expect(name!.startsWith("node:") || entries.includes(name!), name).toBe(true);
  }
});

test("two steps: evaluates, trains, evaluates again and leaves nothing behind", { timeout: 600_000 }, async () => {
  const scratch = newFolder();
  chmodSync(scratch, 0o755); // as /tmp is
  const { code, output, errors } = await run(scratch, "steps=2", "prompts=4", "completions=8", "eval_problems=3");
  expect({ code, errors: code === 0 ? "" : errors }).toEqual({ code: 0, errors: "" });
  for (const when of ["before", "after"]) {
    for (const part of ["seen", "composition", "unseen"]) {
      expect(output).toMatch(new RegExp(`^${when}  starter-${part}: Pass@1 +\\d+% \\( *\\d+% to +\\d+%\\) of 1$`, "m"));
    }
  }
  const steps = [
    ...output.matchAll(/^step +(\d+) {2}reward (-?[\d.]+) {2}correct +(\d+)% {2}format +(\d+)% {2}data +(\d+)/gm),
  ];
  expect(steps.map(([, step]) => step)).toEqual(["0", "1"]);
  for (const [, , reward, correct, format, data] of steps) {
    expect(Number(reward)).toBeGreaterThan(-0.1);
    expect(Number(correct)).toBeGreaterThan(0);
    expect(Number(format)).toBeGreaterThan(20);
    expect(Number(data)).toBeGreaterThan(0);
  }
  expect(readdirSync(scratch).filter((name) => name.startsWith("rl-loop"))).toEqual([]);
  expect(output).toMatch(/^done in \d+ s$/m);
});

test("a setting it does not have is refused before anything starts", async () => {
  const { code, errors } = await run(newFolder(), "stepz=2");
  expect(code).toBe(2);
  expect(errors).toContain('"stepz=2" is no setting');
});
