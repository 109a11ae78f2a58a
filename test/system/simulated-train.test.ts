// `./whet train` against the simulated engine: text completions with right, wrong and malformed answers, judged by the real grader.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { readJsonLines } from "../../src/core/jsonl.ts";
import { startServe } from "../contract/serve-process.ts";
import { runCommand } from "../support/command-process.ts";
import { foldersInMemory } from "../support/folders.ts";

const newFolder = foldersInMemory();
const starter = fileURLToPath(new URL("../../data/starter/train.jsonl", import.meta.url));
const simulated = ["engine=simulated", "tokenizer=nano-coder", "model_name=nano-coder"];

test("the bundled problems are solved at the rate that was ordered, without a further key", async () => {
  const server = await startServe([...simulated, `answers=${starter}`, `state_dir=${newFolder()}`]);
  const path = join(newFolder(), "run");
  const args = [`base_url=${server.baseUrl}`, "max_steps=2", "eval_every=0", "max_tokens=300", `log_path=${path}`];
  const { code, stderr } = await runCommand(["train", ...args], { env: { TINKER_API_KEY: server.apiKey } });
  expect(code, stderr).toBe(0);
  const records = readJsonLines(join(path, "metrics.jsonl")) as Record<string, number>[];
  expect(records).toHaveLength(2);
  for (const record of records) {
    expect(record["mean_correct"]).toBeGreaterThan(0.1);
    expect(record["mean_correct"]).toBeLessThan(0.9);
    expect(record["format_rate"]).toBeGreaterThan(record["mean_correct"]!);
    expect(record["groups_mixed"]).toBeGreaterThan(0);
    // Sampler and learner agree on every token.
    expect(record["optim/kl_sample_train_v1"]).toBe(0);
  }
  await server.close();
});

test("answers that cannot be had are refused at the start", async () => {
  const empty = join(newFolder(), "empty.jsonl");
  writeFileSync(empty, `${JSON.stringify({ problem: "without solutions" })}\n`);
  for (const args of [
    ["engine=simulated", `answers=${starter}`],
    [...simulated, "answers=/nowhere.jsonl"],
    [...simulated, `answers=${empty}`],
    [...simulated, "vocab_size=100"],
  ]) {
    const { code, stderr } = await runCommand(["serve", "port=0", `state_dir=${newFolder()}`, ...args]);
    expect([code, stderr], args.join(" ")).toEqual([2, expect.stringContaining("[config/bad-value]")]);
  }
  expect(readFileSync(starter, "utf8")).toContain('"solutions"');
});
