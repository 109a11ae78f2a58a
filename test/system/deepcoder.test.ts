// `preset=deepcoder` from end to end: the data set from a stand-in of the Hugging Face hub in every shape it has, the tokenizer from
// there too, the simulated engine behind the Tinker API, the real jail.
import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { readJsonLines } from "../../src/core/jsonl.ts";
import { presetConfig } from "../../src/rl/config.ts";
import { type ServeProcess, startServe } from "../contract/serve-process.ts";
import { deepcoderFiles } from "../data/deepcoder.ts";
import { type StandInHub, startHub } from "../data/hub-stand-in.ts";
import { tinyTokenizerFolder } from "../data/tiny-tokenizer.ts";
import { runCommand } from "../support/command-process.ts";
import { foldersInMemory } from "../support/folders.ts";
import { runWhet } from "../support/whet.ts";

// What the preset trains, unless it is told otherwise.
const model = presetConfig("deepcoder").model_name;
const newFolder = foldersInMemory();
let hub: StandInHub;
let server: ServeProcess;

beforeAll(async () => {
  const tokenizer = tinyTokenizerFolder();
  hub = await startHub([
    {
      name: "datasets/agentica-org/DeepCoder-Preview-Dataset",
      files: deepcoderFiles({ largeTestsBytes: 8_000_000 }),
      token: "hf_secret",
    },
    { name: `models/${model}`, files: { "tokenizer.json": readFileSync(join(tokenizer, "tokenizer.json")) } },
  ]);
  server = await startServe(["engine=simulated", `model_name=${model}`, `state_dir=${newFolder()}`]);
});
afterAll(async () => {
  await server.close();
  await hub.close();
});

const oneHome = newFolder();
/** A person's environment: a key, and the stand-ins where the services would be. What one command fetched, the next finds. */
const environment = () => ({
  HOME: oneHome,
  HF_ENDPOINT: hub.endpoint,
  HF_TOKEN: "hf_secret",
  TINKER_API_KEY: "tml-local",
  TINKER_BASE_URL: server.baseUrl,
});

test("the README's hosted commands work as they are pasted", async () => {
  const readme = readFileSync(new URL("../../README.md", import.meta.url), "utf8");
  const block = /## Training something real\n\n```bash\n([\s\S]*?)```/.exec(readme)![1]!;
  const pasted = [...block.matchAll(/^\.\/whet ([^#\n]*)/gm)].map(([, words]) => words!.trim().split(/\s+/));
  expect(pasted.map(([name]) => name)).toEqual(["models", "doctor", "train"]);
  for (const [name, ...args] of pasted) {
    // A hundred steps take a while; the first is enough to see that nothing is missing. A server of one's own has no price list.
    const prices = ["price_prefill=0.195", "price_sample=0.6", "price_train=0.44"];
    const short = name === "train" ? ["max_steps=1", `log_path=${join(newFolder(), "run")}`, ...prices] : [];
    const { code, stdout, stderr } = await runCommand([name!, ...args, ...short], { env: environment() });
    expect(stderr + stdout).not.toMatch(/problem {2}|not offered/);
    expect(code, stderr).toBe(0);
    if (name === "models")
      expect(stdout).toMatch(/^Qwen\/Qwen3-8B +\d+ +qwen3 +0\.195 \/ 0\.6 \/ 0\.44 {2}\(2026-10-07\)$/m);
  }
});

test("the model of January is refused with the nearest that is offered, and the command to paste", async () => {
  const path = join(newFolder(), "run");
  const args = ["train", "model_name=Qwen/Qwen3-4B-Instruct-2507", "max_steps=1", `log_path=${path}`];
  const { code, stderr } = await runCommand(args, { env: environment() });
  expect(code).toBe(1);
  expect(stderr).toContain("model_name=Qwen/Qwen3-4B-Instruct-2507 is not offered by this server");
  const again = /The nearest: \S+ (.*?) \[cli\/model-not-offered\]/.exec(stderr)![1]!.split(" ");
  expect(again).toContain("model_name=Qwen/Qwen3-8B");
  expect((await runCommand(again, { env: environment() })).code).toBe(0);
});

test("without a key, the message is about the key", async () => {
  const env = { HF_ENDPOINT: hub.endpoint };
  const { code, stderr } = await runCommand(["train", "preset=deepcoder", `log_path=${join(newFolder(), "run")}`], {
    env,
  });
  expect(code).toBe(1);
  expect(stderr).toContain("no TINKER_API_KEY found, so the embedded engine is used");
  expect(stderr).not.toMatch(/unknown model|not offered by this server/);
});

test("three steps and an evaluation, with the published settings and bounded memory", async () => {
  const path = join(newFolder(), "run");
  const home = newFolder();
  mkdirSync(home, { recursive: true });
  const result = await runWhet(["train", "preset=deepcoder", "max_steps=3", `log_path=${path}`, "reward_timeout=6"], {
    env: {
      HOME: home,
      HF_ENDPOINT: hub.endpoint,
      HF_TOKEN: "hf_secret",
      TINKER_API_KEY: "tml-local",
      TINKER_BASE_URL: server.baseUrl,
      // Twice the largest row, several times over, would not fit.
      NODE_OPTIONS: "--max-old-space-size=256",
    },
  });
  expect(result.stderr).toContain("3 steps in");
  expect(result.code).toBe(0);

  const config = JSON.parse(readFileSync(join(path, "config.json"), "utf8"));
  expect(config).toMatchObject({
    model_name: model,
    prompts_per_step: 8,
    completions_per_prompt: 16,
    learning_rate: 4e-5,
    lora_rank: 32,
    max_tokens: 24576,
    temperature: 1,
    format_coef: 0.1,
    reward_timeout: 6,
    save_every: 10,
    eval_every: 10,
    max_steps: 3,
    renderer_name: "qwen3",
  });
  const metrics = readJsonLines(join(path, "metrics.jsonl")) as Record<string, number>[];
  expect(metrics.map(({ step }) => step)).toEqual([0, 1, 2, 3]);
  expect(metrics[0]).toMatchObject({ groups_total: 8, "eval/n": expect.any(Number) });
  expect(metrics[3]!["eval/pass@1"]).toBeDefined();
  // The simulated model writes noise: every group is degenerate, so nothing was trained and there is no loss.
  for (const record of metrics.slice(0, 3)) expect(record).toMatchObject({ groups_skipped: 8, n_datums: 0 });
  expect(metrics.some((record) => "loss" in record)).toBe(false);
  // What was left out is counted and said.
  expect(result.stderr).toMatch(/rows left out: .*bad_tests/);
  for (const text of [result.stderr, readFileSync(join(path, "logs.log"), "utf8"), JSON.stringify(config)])
    expect(text).not.toContain("hf_secret");
});
