// tinker-cookbook, its newest release from PyPI and nothing changed in it, on `./whet serve` with a tiny random model: the loops, the
// trainer in its three modes, DPO, resuming, and a download. The hub is not asked: its data sets and the model's tokenizer are stood in
// for by folders of the same names in the folder that everything runs in.
//     node --import ./src/core/ts-loader.mjs scripts/compat/cookbook.ts
import { mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { startServe } from "../../test/contract/serve-process.ts";
import { writeTinyModel } from "../../test/support/tiny-model.ts";
import { cookbookPackages, environment, report, root, run, versionOf } from "./common.ts";

const python = environment("cookbook", cookbookPackages, { fresh: true });
const folder = mkdtempSync(join(tmpdir(), "whetstone-cookbook-"));
const model = "Qwen/Qwen3-4B-Instruct-2507";
writeTinyModel(join(folder, model), { maxPositions: 8192 });

function dataset(name: string, config: string, rows: readonly object[]): void {
  const lines = rows.map((row) => `${JSON.stringify(row)}\n`).join("");
  const files = ["train", "test"].map((split) => `      - split: ${split}\n        path: ${split}.jsonl\n`).join("");
  const card = `---\nconfigs:\n  - config_name: ${config}\n    data_files:\n${files}---\n`;
  for (const [file, text] of Object.entries({ "README.md": card, "train.jsonl": lines, "test.jsonl": lines })) {
    const path = join(folder, name, file);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
  }
}

const numbers = Array.from({ length: 64 }, (_, index) => index);
dataset(
  "openai/gsm8k",
  "main",
  numbers.map((n) => ({ question: `What is ${n} plus ${n}?`, answer: `It is twice ${n}.\n#### ${2 * n}` })),
);
dataset(
  "HuggingFaceH4/no_robots",
  "default",
  numbers.map((n) => ({
    prompt: `Count to ${n}.`,
    messages: [
      { role: "user", content: `Count to ${n}.` },
      { role: "assistant", content: `One, two, and so on to ${n}.` },
    ],
  })),
);
dataset(
  "Anthropic/hh-rlhf",
  "default",
  numbers.map((n) => ({
    chosen: `\n\nHuman: What is ${n}?\n\nAssistant: A number.`,
    rejected: `\n\nHuman: What is ${n}?\n\nAssistant: I will not say.`,
  })),
);

const state = join(folder, "state");
const server = await startServe([`model=${join(folder, model)}`, `model_name=${model}`, `state_dir=${state}`]);
const env = {
  TINKER_BASE_URL: server.baseUrl,
  TINKER_API_KEY: server.apiKey,
  HF_HUB_OFFLINE: "1",
  HF_DATASETS_OFFLINE: "1",
  TOKENIZERS_PARALLELISM: "false",
};
const rows: Parameters<typeof report>[1][number][] = [];

async function recipe(
  what: string,
  module: string,
  log: string,
  args: readonly string[],
  expected?: RegExp,
): Promise<void> {
  const common = [`base_url=${server.baseUrl}`, `model_name=${model}`, `log_path=${join(folder, log)}`];
  const done = await run(python, ["-m", module, ...common, ...args], {
    env,
    cwd: folder,
    quiet: true,
    timeoutMs: 900_000,
  });
  writeFileSync(join(folder, `${what.replaceAll(/\W+/g, "-")}.log`), done.output);
  const steps = metricsOf(log).length;
  const passed = done.code === 0 && steps > 0 && (expected?.test(done.output) ?? true);
  if (!passed) console.log(done.output.slice(-3000));
  rows.push({ what, passed, found: `${steps} steps on record, ${done.seconds.toFixed(0)} s` });
  console.log(`${passed ? "ok" : "FAILED"} ${what}`);
}

function metricsOf(log: string): string[] {
  try {
    return readFileSync(join(folder, log, "metrics.jsonl"), "utf8")
      .trim()
      .split("\n");
  } catch {
    return [];
  }
}

const recipes = "tinker_cookbook.recipes";
const rl = ["group_size=4", "max_tokens=8", "lora_rank=8"];
const trainer = ["env=arithmetic", "groups_per_batch=4", "eval_every=0", "save_every=1", ...rl];
try {
  const loop = ["batch_size=4", "save_every=1", ...rl];
  await recipe("rl_loop", `${recipes}.rl_loop`, "rl-loop", [...loop, "max_steps=2"]);
  await recipe("rl_loop, resumed", `${recipes}.rl_loop`, "rl-loop", [...loop, "max_steps=3"], /Resuming from batch/);
  const supervised = ["batch_size=8", "lora_rank=8", "save_every=1"];
  await recipe("sl_loop", `${recipes}.sl_loop`, "sl-loop", [...supervised, "max_steps=2"]);
  await recipe("sl_loop, resumed", `${recipes}.sl_loop`, "sl-loop", [...supervised, "max_steps=3"], /Resuming/);
  const math = `${recipes}.math_rl.train`;
  await recipe("rl/train, synchronous", math, "sync", [...trainer, "max_steps=2"]);
  await recipe(
    "rl/train, resumed",
    math,
    "sync",
    [...trainer, "max_steps=3", "behavior_if_log_dir_exists=resume"],
    /[Rr]esum/,
  );
  await recipe("rl/train, asynchronous", math, "async", [...trainer, "max_steps=2", "max_steps_off_policy=1"]);
  const stream = ["stream_minibatch_config.groups_per_batch=4", "stream_minibatch_config.num_minibatches=2"];
  await recipe("rl/train, streaming", math, "stream", [...trainer, "max_steps=2", ...stream]);
  await recipe("DPO", `${recipes}.preference.dpo.train`, "dpo", ["dataset=hhh", "batch_size=8", "max_steps=2"]);

  const path = /tinker:\/\/[^"]*\/weights\/[^"]*/.exec(
    readFileSync(join(folder, "rl-loop", "checkpoints.jsonl"), "utf8"),
  )![0];
  const program = `from tinker_cookbook import weights; print(weights.download(tinker_path="${path}", output_dir="adapter"))`;
  const download = await run(python, ["-c", program], { env, cwd: folder, quiet: true });
  if (download.code !== 0) console.log(download.output.slice(-3000));
  rows.push({
    what: "weights.download (encrypted with age)",
    passed: download.code === 0,
    found: `${download.seconds.toFixed(0)} s`,
  });

  const suite = await run(python, [join(root, "test/contract/official_sdk.py")], { env, cwd: folder, quiet: true });
  const summary =
    suite.output
      .trim()
      .split("\n")
      .findLast((line) => line.startsWith("{")) ?? "";
  for (const line of suite.output.split("\n")) if (line.includes('"ok": false')) console.log(line);
  rows.push({ what: "the contract suite beside it, with torch", passed: suite.code === 0, found: summary });
} finally {
  rows.push({
    what: "the server's log is empty",
    passed: server.errors() === "",
    found: server.errors().slice(0, 200),
  });
  await server.close();
}
const versions = ["tinker-cookbook", "tinker", "torch", "transformers"].map(
  (name) => `${name} ${versionOf(python, name)}`,
);
report(`${versions.join(", ")} on ./whet serve; files in ${folder}`, rows);
