// `./whet eval` and `./whet doctor` on a short real run of the bundled model.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import { readJsonLines } from "../../src/core/jsonl.ts";
import { Journal } from "../../src/runs/journal.ts";
import { runCommand } from "../support/command-process.ts";
import { foldersInMemory } from "../support/folders.ts";
import { type SharedEngine, sharedEngine } from "../support/shared-engine.ts";
import { runWhet, type WhetResult, whetPath } from "../support/whet.ts";

/** The doctor measures a whole step and an evaluation: small ones say the same. */
const smallStep = ["prompts_per_step=2", "completions_per_prompt=4", "max_tokens=64", "eval_max_problems=6"];
const newFolder = foldersInMemory();
let run: string;
let engine: SharedEngine;
/** Runs of this file are on the engine that tests share; `./whet eval` finds it in their config. */
const whet = (args: readonly string[]): Promise<WhetResult> =>
  runCommand(args, { env: { TINKER_API_KEY: engine.apiKey } });
const trainInto = (path: string, ...settings: string[]) =>
  whet(["train", `log_path=${path}`, `base_url=${engine.baseUrl}`, ...settings]);

beforeAll(async () => {
  engine = await sharedEngine();
  run = join(newFolder(), "run");
  const settings = [
    "max_steps=2",
    "prompts_per_step=2",
    "completions_per_prompt=4",
    "eval_every=2",
    "eval_max_problems=6",
  ];
  const { code, stderr } = await trainInto(run, ...settings);
  expect(stderr).toContain("Pass@1, 6 problems");
  expect(code).toBe(0);
});

test("a run's last checkpoint is evaluated and compared with the base model", async () => {
  const out = join(newFolder(), "outcomes.jsonl");
  const first = await whet(["eval", `run=${run}`, "compare=base", `out=${out}`]);
  expect(first.stdout).toMatch(/checkpoint final\n\s+Pass@1 +\d+\.\d% \[\d+\.\d, \d+\.\d\] +6 problems/);
  expect(first.stdout).toMatch(/compared with base: .* on 6 problems; \d+ gained, \d+ lost/);
  expect(first.code).toBe(0);
  expect(readJsonLines(out)).toHaveLength(6);

  // The evaluation at the end of the run was of the same weights, greedy: the same outcomes.
  const atTheEnd = readFileSync(join(run, "evaluations", "step_000002.jsonl"), "utf8");
  expect(readFileSync(out, "utf8")).toBe(atTheEnd);

  const several = ["eval_max_problems=3", "eval_num_samples=4", "eval_temperature=1"];
  const sampled = await whet(["eval", `base_url=${engine.baseUrl}`, ...several]);
  expect(sampled.stdout).toMatch(/nano-coder\n[\s\S]*pass@4/);
});

test("a language that is not here is said before anything is asked", async () => {
  const data = join(newFolder(), "mine.jsonl");
  writeFileSync(data, JSON.stringify({ question: "Print 1.", tests: [{ input: "", output: "1" }] }));
  const folders = process.env["PATH"]!.split(":").filter((folder) => !existsSync(join(folder, "go")));
  const env = { TINKER_API_KEY: engine.apiKey, PATH: folders.join(":") };
  const asked = await runWhet(["eval", `base_url=${engine.baseUrl}`, `test_data=${data}:go`], { env });
  expect(asked).toMatchObject({ code: 1, stdout: "" });
  expect(asked.stderr).toMatch(/Go programs cannot run here: go was not found\. .*\[sandbox\/no-language\]/);
  expect(asked.stderr).not.toContain("Pass@1");
});

test("another run's directory is compared with, problem by problem", async () => {
  const other = join(newFolder(), "other");
  const settings = [
    "max_steps=1",
    "prompts_per_step=2",
    "completions_per_prompt=4",
    "eval_every=0",
    "learning_rate=0.05",
  ];
  expect((await trainInto(other, ...settings)).code).toBe(0);
  const both = await whet(["eval", `run=${run}`, `compare=${other}`]);
  expect(both.code, both.stderr).toBe(0);
  expect(both.stdout).toMatch(/^checkpoint final\n/);
  expect(both.stdout).toContain(`${other}, checkpoint final\n`);
  const compared = /^compared with (.*): (\S+)% → (\S+)% on 6 problems; (\d) gained, (\d) lost/m.exec(both.stdout)!;
  const rates = [...both.stdout.matchAll(/Pass@1 +(\S+)%/g)].map(([, rate]) => rate);
  expect([compared[1], compared[3], compared[2]]).toEqual([other, ...rates]);
  expect(Number(compared[4]) - Number(compared[5])).toBe(Math.round((6 * (Number(rates[0]) - Number(rates[1]))) / 100));
});

test("help shows what this command line would use", async () => {
  const { stdout } = await whet(["eval", "--help", `run=${run}`, "seed=7"]);
  expect(stdout).toContain(`preset=nano (of ${run})`);
  expect(stdout).toMatch(/^ {2}eval_max_problems=6 .*\(the run's\)$/m);
  expect(stdout).toMatch(/^ {2}seed=7 .*\(as typed\)$/m);
  expect(stdout).toMatch(/^ {2}model_name=nano-coder /m);
  expect((await whet(["help", "sample", "preset=deepcoder"])).stdout).toMatch(/^ {2}model_name=Qwen\/Qwen3-8B /m);
});

test("a checkpoint or run that is not there is named", async () => {
  const missing = await whet(["eval", `run=${run}`, "checkpoint=000007"]);
  expect(missing.stderr).toMatch(/no checkpoint "000007".*it has: final/);
  expect(missing.code).toBe(2);
  expect((await whet(["eval", "run=/nowhere"])).code).toBe(2);
});

test("of a name that was saved twice, the newer one is meant", async () => {
  const path = newFolder();
  mkdirSync(join(path, "engine"));
  writeFileSync(join(path, "config.json"), JSON.stringify({ model_name: "nano-coder", preset: "nano" }));
  const journal = await Journal.open(path);
  for (const model of ["older", "newer"]) {
    const sampler = `tinker://${model}:train:0/sampler_weights/000010`;
    const record = { name: "000010", step: 10, dataset_offset: 80, sampler_path: sampler };
    await journal.append({ type: "saved", record, start: 0, end: 1 });
  }
  await journal.close();
  const result = await runCommand(["eval", `run=${path}`, "checkpoint=000010"]);
  // Neither is there, and the one that is missed is the newer one.
  expect(result.stderr).toContain("tinker://newer:train:0/sampler_weights/000010 is in none of the runs");
  expect(result.code).toBe(2);
});

test("a replay reproduces every figure of the run, and shows what another advantage would have changed", async () => {
  const same = await whet(["replay", `run=${run}`]);
  expect(same.stdout).toMatch(/^2 steps, 2 evaluations, \d+ figures: every recorded one is reproduced exactly$/m);
  expect(same.code).toBe(0);
  const other = await whet(["replay", `run=${run}`, "advantage=grpo_std"]);
  expect(other.stdout).toMatch(/^loss_sum +\d/m);
  expect(other.stdout).not.toMatch(/^mean_reward/m);
  expect(other.code).toBe(0);
  const rewards = await whet(["replay", `run=${run}`, "format_coef=0"]);
  expect(rewards.stdout).toMatch(/^mean_reward +\d/m);
  expect((await whet(["replay", `run=${run}`, "temperature=2"])).code).toBe(2);
});

test("the doctor finds everything in order, or says what is not", async () => {
  const well = await runCommand(["doctor", ...smallStep]);
  expect(well.stdout).toMatch(
    /^ok +sandbox.*\nok +languages.*\nok +grader.*\nok +engine.*\nok +model.*\nok +renderer.*\nok +data.*\nok +sample/,
  );
  expect(well.stdout).toContain(`ready: ${whetPath} train ${smallStep.join(" ")}\n`);
  expect(well.code).toBe(0);
  const ill = await whet(["doctor", `base_url=${engine.baseUrl}`, "train_data=/nowhere.jsonl"]);
  expect(ill.stdout).toMatch(/problem +data +There is no file/);
  expect(ill.code).toBe(1);
});

test("the doctor checks on a server what training would run there, and says so when there is none", async () => {
  const there = [`base_url=${engine.baseUrl}`];
  const nowhere = ["base_url=http://127.0.0.1:9", "model_name=nano-coder", "train_data=starter"];
  const [well, evaluated, ill] = await Promise.all([
    whet(["doctor", ...there, ...smallStep]),
    whet(["eval", "eval_max_problems=3", ...there]),
    whet(["doctor", ...nowhere]),
  ]);
  expect(well.stdout).toMatch(/ok +model +nano-coder, context window 1024/);
  expect(well.code).toBe(0);
  expect(evaluated.stdout).toMatch(/nano-coder\n\s+Pass@1/);
  expect(ill.stdout).toMatch(/ok +sandbox[\s\S]*problem +engine/);
  expect(ill.code).toBe(1);
});
