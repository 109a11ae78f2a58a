// The question about an existing run, on a real terminal (util-linux's `script` makes one).
import { spawn, spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import { foldersInMemory } from "../support/folders.ts";
import { type SharedEngine, sharedEngine } from "../support/shared-engine.ts";
import { cleanEnvironment, runWhet, whetPath } from "../support/whet.ts";

const newFolder = foldersInMemory();
const hasScript = spawnSync("script", ["--version"]).status === 0;
const settings = () => [`base_url=${engine.baseUrl}`, ...small];
const small = ["eval_every=0", "batch_size=8", "group_size=2", "max_tokens=32", "tensorboard=false"];
let path: string;
let engine: SharedEngine;

beforeAll(async () => {
  engine = await sharedEngine();
  path = join(newFolder(), "run");
  const env = { TINKER_API_KEY: engine.apiKey };
  const first = await runWhet(["train", `log_path=${path}`, "max_steps=1", ...settings()], { env });
  expect(first.code, first.stderr).toBe(0);
});

/** Runs the command on a terminal and types `keys` when the question is there. */
function onTerminal(args: readonly string[], keys: string): Promise<{ code: number | null; output: string }> {
  const command = [whetPath, "train", ...args].map((word) => `'${word}'`).join(" ");
  const child = spawn("script", ["-qec", command, "/dev/null"], {
    env: cleanEnvironment({ TINKER_API_KEY: engine.apiKey }),
    stdio: ["pipe", "pipe", "pipe"],
  });
  let output = "";
  let typed = false;
  child.stdout.on("data", (chunk: Buffer) => {
    output += chunk.toString();
    if (typed || !output.includes("or exit?")) return;
    typed = true;
    child.stdin.write(keys);
  });
  return new Promise((resolve) => child.once("close", (code) => resolve({ code, output })));
}

const changed = () => [`log_path=${path}`, "max_steps=1", "learning_rate=0.001", ...settings()];

test.each([
  ["Ctrl-C", "\u0003"],
  ["Ctrl-D", "\u0004"],
  ["exit", "exit\r"],
])("%s leaves the run as it is, without a trace", async (_, keys) => {
  if (!hasScript) return console.warn("skipped: util-linux's script is not installed");
  const before = readFileSync(join(path, "config.json"), "utf8");
  const { code, output } = await onTerminal(changed(), keys);
  expect(output).toContain("learning_rate was 0.003 and is now 0.001");
  expect(output).not.toMatch(/\n\s+at |unsettled/);
  expect(code).toBe(0);
  expect(readFileSync(join(path, "config.json"), "utf8")).toBe(before);
});

test("the same command goes on without a question; with another setting, r and Enter do", async () => {
  if (!hasScript) return console.warn("skipped: util-linux's script is not installed");
  const same = await onTerminal([`log_path=${path}`, "max_steps=1", ...settings()], "");
  expect(same.output).toContain("this run is finished");
  expect(same.output).not.toContain("exit?");
  const answered = await onTerminal([...changed(), "max_steps=2"], "maybe\rr\r");
  expect(answered.output).toContain("Please answer");
  expect(answered.output).toMatch(/going on with another setting: learning_rate was 0\.003 and is now 0\.001/);
  expect(answered.code, answered.output).toBe(0);
  // The history is kept.
  expect(readdirSync(path).filter((name) => name.startsWith("config"))).toEqual(["config-000.json", "config.json"]);
  expect(JSON.parse(readFileSync(join(path, "config-000.json"), "utf8"))).toMatchObject({ learning_rate: 0.003 });
  expect(existsSync(join(path, "journal"))).toBe(true);
}, 120_000);
