// A model of one's own on the embedded engine: from the hub, and as a GGUF file.
import { copyFileSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";
import { readRunConfig } from "../../src/runs/directory.ts";
import { type StandInHub, startHub } from "../data/hub-stand-in.ts";
import { runCommand } from "../support/command-process.ts";
import { foldersInMemory } from "../support/folders.ts";
import { writeTinyModel } from "../support/tiny-model.ts";

const newFolder = foldersInMemory();
const work = newFolder();
const model = "acme/tiny-coder";
const sizes = { hidden_size: 4096, num_hidden_layers: 64, intermediate_size: 32768 };
let hub: StandInHub;

beforeAll(async () => {
  const folder = join(work, "tiny");
  writeTinyModel(folder);
  const files = Object.fromEntries(readdirSync(folder).map((name) => [name, readFileSync(join(folder, name))]));
  const config = JSON.parse(String(files["config.json"])) as object;
  hub = await startHub([
    { name: `models/${model}`, files },
    { name: "models/acme/huge", files: { ...files, "config.json": JSON.stringify({ ...config, ...sizes }) } },
    { name: "models/acme/quantized", files: { "config.json": files["config.json"]!, "tiny.Q4_0.gguf": "GGUF" } },
  ]);
  const problem = { prompt: "Print 1.", tests: [{ input: "", output: "1\n" }] };
  writeFileSync(
    join(work, "problems.jsonl"),
    [1, 2].map((n) => `${JSON.stringify({ ...problem, id: `p${n}` })}\n`).join(""),
  );
  copyFileSync(fileURLToPath(new URL("../golden/gguf/qwen3.gguf", import.meta.url)), join(work, "own.gguf"));
});
afterAll(() => hub.close());

const home = newFolder();
const small = [
  "prompts_per_step=2",
  "completions_per_prompt=4",
  "max_tokens=6",
  "min_generation=4",
  "context_window=512",
];
const quiet = ["train_data=problems.jsonl", "eval_every=0", "dashboard=false", "tensorboard=false"];
const whet = (...args: string[]) => runCommand(args, { cwd: work, env: { HOME: home, HF_ENDPOINT: hub.endpoint } });

test("a hub's name is downloaded once and trained; without the hub, what is here serves", async () => {
  const train = (steps: number) =>
    whet(
      "train",
      `model_name=${model}`,
      "log_path=run",
      `max_steps=${steps}`,
      ...small,
      ...quiet,
      "behavior_if_log_dir_exists=resume",
    );
  const first = await train(1);
  expect(first.code, first.stderr).toBe(0);
  expect(readRunConfig(join(work, "run"))).toMatchObject({ model_name: model, preset: "small", engine: "embedded" });
  const weights = () => hub.requests.filter((request) => request.includes("model.safetensors")).length;
  const asked = weights();
  expect(asked).toBeGreaterThan(0);
  const second = await train(2);
  expect(second.code, second.stderr).toBe(0);
  expect(weights()).toBe(asked);
});

test("what cannot be computed here is refused before its weights are fetched", async () => {
  const huge = await whet("train", "model_name=acme/huge", ...quiet);
  expect(huge.stderr).toMatch(/acme\/huge has \d+\.\d billion parameters: .* GiB of memory.*\[cli\/model-too-large\]/);
  expect(hub.requests.filter((request) => /huge.*safetensors/.test(request))).toEqual([]);
  const quantized = await whet("sample", "model_name=acme/quantized", "Print 1.");
  expect(quantized.stderr).toMatch(/has GGUF files \(tiny\.Q4_0\.gguf\).*\[cli\/model-not-here\]/);
  const nowhere = await whet("sample", "model_name=nowhere", "Print 1.");
  expect(nowhere.stderr).toMatch(/nowhere is neither a folder nor a GGUF file.*\[cli\/model-not-here\]/);
});

test("a GGUF file is a model, with its own tokenizer and chat format", async () => {
  const { code, stdout, stderr } = await whet("sample", "model_name=own.gguf", "max_tokens=8", "Say hi.");
  expect(code, stderr).toBe(0);
  expect(stdout).toContain("own.gguf, 8 tokens");
});
