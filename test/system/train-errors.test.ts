// What `./whet train` says and how it ends when something is wrong: one clear message, the right exit code, nothing overwritten.
import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type ServeProcess, startServe } from "../contract/serve-process.ts";
import { runCommand } from "../support/command-process.ts";
import { foldersInMemory } from "../support/folders.ts";
import { writeTinyModel } from "../support/tiny-model.ts";

const newFolder = foldersInMemory();
let server: ServeProcess;
let model: string;

beforeAll(async () => {
  server = await startServe(["engine=simulated", `state_dir=${newFolder()}`]);
  model = newFolder();
  writeTinyModel(model);
});
afterAll(async () => {
  await server.close();
});

const problem = {
  id: "sum",
  problem: "Add two numbers.",
  tests: JSON.stringify([{ input: "1 2\n", output: "3\n", testtype: "stdin" }]),
};

/** A run of two quick steps; returns what it said. */
async function train(args: readonly string[] = [], key = "tml-local") {
  const data = join(newFolder(), "problems.jsonl");
  writeFileSync(data, `${JSON.stringify(problem)}\n`);
  const settings = [
    `base_url=${server.baseUrl}`,
    "model_name=whetstone/simulated",
    "renderer_name=qwen3_instruct",
    `tokenizer=${model}`,
    `train_data=${data}`,
    "eval_every=0",
    "max_steps=2",
    "max_tokens=8",
    "batch_size=4",
    "group_size=2",
    "min_generation=8",
    "context_window=4096",
  ];
  return runCommand(["train", ...settings, ...args], { env: { TINKER_API_KEY: key } });
}

/** A run of two steps; what is wrong with it later is tried on copies. */
const good = join(newFolder(), "run");

test("a good run ends by itself and leaves its files", async () => {
  const path = good;
  const { code, stderr } = await train([`log_path=${path}`, "save_every=1"]);
  expect(stderr).toContain("2 steps in");
  expect(code).toBe(0);
  for (const name of [
    "config.json",
    "metrics.jsonl",
    "logs.log",
    "checkpoints.jsonl",
    "rollouts",
    "timing.jsonl",
    "summary.json",
    "curves.svg",
  ])
    expect(readdirSync(path)).toContain(name);
  const text = readdirSync(path)
    .filter((name) => /json|log$/.test(name))
    .map((name) => readFileSync(join(path, name), "utf8"))
    .join("");
  expect(text).not.toContain("tml-local");

  // The same command again has nothing left to do, and says so.
  const before = readFileSync(join(path, "metrics.jsonl"), "utf8");
  const again = await train([`log_path=${path}`, "save_every=1"]);
  expect(again.stderr).toContain("this run is finished");
  expect(again.code).toBe(0);
  expect(readFileSync(join(path, "metrics.jsonl"), "utf8")).toBe(before);
});

test.each([
  ["an unknown key", ["learning_rat=1"], 2, /Did you mean "learning_rate"/],
  ["a wrong type", ["learning_rate=fast"], 2, /learning_rate=fast/],
  ["a batch that cannot be shared", ["batch_size=5"], 2, /multiple of 2/],
  ["one completion per prompt", ["batch_size=2"], 2, /advantage is always zero/],
  ["two sizes that disagree", ["completions_per_prompt=3"], 2, /Leave one of them out/],
  ["a stray word", ["quickly"], 2, /not written as key=value/],
  ["an unknown renderer", ["renderer_name=qwen9"], 1, /qwen3_instruct/],
  ["a missing data file", ["train_data=/nowhere/problems.jsonl"], 1, /no file or folder/],
  ["a model that is not offered", ["model_name=Qwen/Qwen3-8B"], 1, /It offers: whetstone\/simulated/],
  ["a server that is not there", ["base_url=http://127.0.0.1:9"], 1, /127\.0\.0\.1:9/],
  ["a log path that is a file", ["log_path=/etc/hostname"], 1, /is a file/],
  ["a log path where nothing can be made", ["log_path=/proc/run"], 1, /cannot be made or written \(ENOENT/],
  ["a log path below a file", ["log_path=/etc/hostname/run"], 1, /cannot be made or written \(ENOTDIR/],
  ["a log path with someone's files", ["log_path=/etc"], 1, /holds no run/],
  ["a sandbox that is not there", ["sandbox_url=http://127.0.0.1:9/run_code"], 1, /127\.0\.0\.1:9/],
])("%s", async (_, args, code, message) => {
  const logPath = args.some((arg) => arg.startsWith("log_path=")) ? [] : [`log_path=${join(newFolder(), "run")}`];
  const result = await train([...logPath, ...args]);
  expect(result.stderr).toMatch(message);
  expect(result.code).toBe(code);
  expect(result.stderr).not.toMatch(/\n\s+at .*\.ts:/);
});

test("a key that is not accepted", async () => {
  const { code, stderr } = await train([`log_path=${join(newFolder(), "run")}`], "tml-expired");
  expect(stderr).toMatch(/refused the API key/);
  expect(stderr).not.toContain("tml-expired");
  expect(code).toBe(1);
});

test("no disk space is said before anything starts", async ({ skip }) => {
  const disk = newFolder();
  if (process.getuid?.() !== 0) {
    console.warn("skipped: mounting a small disk needs root");
    skip();
    return;
  }
  execFileSync("mount", ["-t", "tmpfs", "-o", "size=1m", "tmpfs", disk]);
  try {
    const { code, stderr } = await train([`log_path=${join(disk, "run")}`]);
    expect(stderr).toMatch(/KiB are free at/);
    expect(code).toBe(1);
  } finally {
    execFileSync("umount", [disk]);
  }
});

test("a run directory that cannot be written any more ends the run with one message", async () => {
  const path = join(newFolder(), "run");
  mkdirSync(path);
  // A folder cannot be made where a file is: the first step's rollouts cannot be written.
  expect((await train([`log_path=${path}`, "max_steps=0"])).code).toBe(0);
  writeFileSync(join(path, "rollouts"), "");
  const { code, stderr } = await train([`log_path=${path}`, "max_steps=1"]);
  expect(stderr).toMatch(/could not be written.*resume the run[\s\S]*To go on:\n {2}\S+ resume \S+/);
  expect(code).toBe(1);
});

test("another run's directory is refused, and a damaged file is written anew from the journal", async () => {
  const path = join(newFolder(), "run");
  cpSync(good, path, { recursive: true });
  const other = join(newFolder(), "copy");
  cpSync(path, other, { recursive: true });

  const changed = await train([`log_path=${path}`, "max_steps=3", "seed=1"]);
  expect(changed.stderr).toMatch(/seed was 0 and is now 1/);
  expect(changed.code).toBe(2);

  writeFileSync(join(other, "checkpoints.jsonl"), "{broken\n{}\n");
  writeFileSync(join(other, "metrics.jsonl"), "{broken\n");
  const repaired = await train([`log_path=${other}`]);
  expect(repaired.code).toBe(0);
  for (const name of ["checkpoints.jsonl", "metrics.jsonl"])
    expect(readFileSync(join(other, name), "utf8")).toBe(readFileSync(join(path, name), "utf8"));
  expect(readFileSync(join(other, "logs.log"), "utf8")).toContain("did not say what the journal says");
  expect((await train([`log_path=${path}`, "max_steps=3", "behavior_if_log_dir_exists=raise"])).stderr).toMatch(
    /holds a run already/,
  );
  expect((await train([`log_path=${path}`, "max_steps=3"])).stderr).toContain("resuming at step 2");
});
