// The question about an existing run, on a real terminal (util-linux's `script` makes one).
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import { runCommand } from "../support/command-process.ts";
import { foldersInMemory } from "../support/folders.ts";
import { type SharedEngine, sharedEngine } from "../support/shared-engine.ts";
import { hasTerminal, onTerminal } from "../support/terminal.ts";

const newFolder = foldersInMemory();
const settings = () => [`base_url=${engine.baseUrl}`, ...small];
const small = ["eval_every=0", "prompts_per_step=2", "completions_per_prompt=4", "max_tokens=32", "tensorboard=false"];
let path: string;
let engine: SharedEngine;

beforeAll(async () => {
  engine = await sharedEngine();
  path = join(newFolder(), "run");
  const env = { TINKER_API_KEY: engine.apiKey };
  const first = await runCommand(["train", `log_path=${path}`, "max_steps=1", ...settings()], { env });
  expect(first.code, first.stderr).toBe(0);
});

const answer = (args: readonly string[], keys: string) =>
  onTerminal(["train", ...args], { question: "or exit?", keys, env: { TINKER_API_KEY: engine.apiKey } });

const changed = () => [`log_path=${path}`, "max_steps=1", "learning_rate=0.001", ...settings()];

test.runIf(hasTerminal).each([
  ["Ctrl-C", "\u0003"],
  ["Ctrl-D", "\u0004"],
  ["exit", "exit\r"],
])("%s leaves the run as it is, without a trace", async (_, keys) => {
  const before = readFileSync(join(path, "config.json"), "utf8");
  const { code, output } = await answer(changed(), keys);
  expect(output).toContain("learning_rate was 0.003 and is now 0.001");
  expect(output).not.toMatch(/\n\s+at |unsettled/);
  expect(code).toBe(0);
  expect(readFileSync(join(path, "config.json"), "utf8")).toBe(before);
});

test.runIf(hasTerminal)(
  "the same command goes on without a question; with another setting, r and Enter do",
  async () => {
    const same = await answer([`log_path=${path}`, "max_steps=1", ...settings()], "");
    expect(same.output).toContain("this run is finished");
    expect(same.output).not.toContain("exit?");
    const answered = await answer([...changed(), "max_steps=2"], "maybe\rr\r");
    expect(answered.output).toContain("Please answer");
    expect(answered.output).toMatch(/going on with another setting: learning_rate was 0\.003 and is now 0\.001/);
    expect(answered.code, answered.output).toBe(0);
    // The history is kept.
    expect(readdirSync(path).filter((name) => name.startsWith("config"))).toEqual(["config-000.json", "config.json"]);
    expect(JSON.parse(readFileSync(join(path, "config-000.json"), "utf8"))).toMatchObject({ learning_rate: 0.003 });
    expect(existsSync(join(path, "journal"))).toBe(true);
  },
  120_000,
);
