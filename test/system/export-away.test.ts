// What leaves a run for other programs: an adapter without the head that PEFT takes, losses that are PEFT's, and a push to the hub. One run
// of supervised training, shared. PEFT's part is tried with WHET_COMPAT=1: WHET_PEFT_PYTHON, or the environment of scripts/compat/peft.ts.
import { execFile } from "node:child_process";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { cacheFolder } from "../../src/core/cache.ts";
import { SafetensorsFile } from "../../src/engine/safetensors.ts";
import { readJournal } from "../../src/runs/read-journal.ts";
import { startUploadHub, type UploadHub } from "../data/hub-upload.ts";
import { runCommand } from "../support/command-process.ts";
import { foldersInMemory } from "../support/folders.ts";
import { writeTinyModel } from "../support/tiny-model.ts";
import { cleanEnvironment, runWhet } from "../support/whet.ts";

const newFolder = foldersInMemory();
const root = fileURLToPath(new URL("../..", import.meta.url));
const bundled = join(root, "models", "nano-coder");
const steps = 3;
const talk = Array.from({ length: 6 }, (_, index) => [
  { role: "user", content: `Print the number ${index}.` },
  { role: "assistant", content: `\`\`\`python\nprint(${index})\n\`\`\`` },
]);
let folder: string;
let hub: UploadHub;

/** A run of supervised training; `settings` say what is different. */
async function supervised(name: string, ...settings: string[]): Promise<string> {
  const run = join(folder, name);
  const usual = [
    "prompts_per_step=2",
    `max_steps=${steps}`,
    "eval_every=0",
    "dashboard=false",
    "tensorboard=false",
    "weight_decay=0",
  ];
  const done = await runCommand(["sft", `train_data=${folder}/talk.jsonl`, ...usual, `log_path=${run}`, ...settings]);
  expect(done.code, done.stderr).toBe(0);
  return run;
}

beforeAll(async () => {
  folder = newFolder();
  writeFileSync(join(folder, "talk.jsonl"), talk.map((messages) => `${JSON.stringify({ messages })}\n`).join(""));
  hub = await startUploadHub("hf_secret");
  await supervised("headless", "train_unembed=false");
}, 240_000);
afterAll(() => hub.close());

const tensorsOf = (out: string): string[] => {
  const file = new SafetensorsFile(join(folder, out, "adapter_model.safetensors"));
  file.close();
  return [...file.entries.keys()];
};

test("an adapter trained with train_unembed=false names no lm_head, and says what was checked", async () => {
  const done = await runCommand(["export", `run=${folder}/headless`, `out=${folder}/adapter`]);
  expect(done.code, done.stderr).toBe(0);
  expect(tensorsOf("adapter").filter((name) => name.includes("lm_head"))).toEqual([]);
  const config = JSON.parse(readFileSync(join(folder, "adapter", "adapter_config.json"), "utf8"));
  expect(config.target_modules).not.toContain("lm_head");
  expect(done.stderr).toMatch(/checked {2}\d+ tensors read back, every number finite/);
  expect(done.stderr).toMatch(/checked {2}peft .* loads it|not checked in peft: python3 .*pip install/);
});

test("push= puts it on the hub over faults, sends nothing twice, and shows no token", async () => {
  const push = (id: string, token = "hf_secret") =>
    runCommand(["export", `run=${folder}/headless`, `out=${folder}/pushed`, `push=${id}`, "python=none"], {
      env: { HF_ENDPOINT: hub.endpoint, ...(token !== "" && { HF_TOKEN: token }), HF_HOME: join(folder, "home") },
    });
  const refused = [await push("me/adapter", ""), await push("someone/adapter"), await push("no name")];
  expect(refused.map(({ code }) => code)).toEqual([1, 1, 2]);
  expect(refused[0]!.stderr).toMatch(/export HF_TOKEN=.*Nothing was sent/);
  expect(refused[1]!.stderr).toMatch(/the token belongs to me.*push=me\/adapter/);
  hub.faults = { unavailable: 2, cut: 1 };
  const done = await push("team/adapter");
  expect(done.code, done.stderr).toBe(0);
  expect(done.stdout).toContain(`${hub.endpoint}/team/adapter: commit `);
  const repository = hub.repositories.get("team/adapter")!;
  expect([repository.private, repository.commits]).toEqual([true, 1]);
  const written = readdirSync(join(folder, "pushed")).sort();
  expect([...repository.files.keys()].sort()).toEqual(written);
  for (const name of written)
    expect(repository.files.get(name)!.equals(readFileSync(join(folder, "pushed", name)))).toBe(true);
  expect(repository.files.get("README.md")!.toString()).toContain("library_name: peft");
  const sent = hub.requests.filter((line) => line.startsWith("STORAGE")).length;
  const again = await push("team/adapter");
  expect(again.stderr).toContain("is there already and is pushed as it is");
  expect([again.code, hub.requests.filter((line) => line.startsWith("STORAGE")).length]).toEqual([0, sent]);
  expect(hub.leakedTokens).toEqual([]);
  const bad = await push("team/adapter", "hf_other");
  expect([bad.code, bad.stderr]).toEqual([1, expect.stringContaining("Use a token that may write there")]);
  for (const { stdout, stderr } of [...refused, done, again, bad])
    expect(stdout + stderr).not.toMatch(/hf_(secret|other)/);
});

test("Ctrl-C in the middle of a push leaves the repository as it was, and the same command goes on", async () => {
  let release = () => {};
  hub.faults = { hold: new Promise<void>((resolve) => (release = resolve)) };
  const args = [
    "export",
    `run=${folder}/headless`,
    `out=${folder}/stopped`,
    "push=me/stopped",
    "merge=true",
    "python=none",
  ];
  const env = { HF_ENDPOINT: hub.endpoint, HF_TOKEN: "hf_secret" };
  const before = hub.requests.length;
  const stopped = await runWhet(args, {
    env,
    onStart: (child) => {
      const look = setInterval(() => {
        if (!hub.requests.slice(before).some((line) => line.startsWith("STORAGE"))) return;
        clearInterval(look);
        child.kill("SIGINT");
      }, 20);
    },
  });
  release();
  hub.faults = {};
  expect(stopped.code).toBe(130);
  expect(hub.repositories.get("me/stopped")!.commits).toBe(0);
  const done = await runCommand(args, { env });
  expect(done.code, done.stderr).toBe(0);
  expect(hub.repositories.get("me/stopped")!.files.get("model.safetensors")!.length).toBeGreaterThan(100_000);
  expect(hub.requests).toContain("STORAGE PUT part");
});

test("gguf=true converts the merged model and compares what was made; without a converter it says how to get one", async () => {
  const args = [
    "export",
    `run=${folder}/headless`,
    `out=${folder}/whole`,
    "merge=true",
    "dtype=float32",
    "gguf=true",
    "python=none",
  ];
  const missing = await runCommand(args);
  expect([missing.code, missing.stderr]).toEqual([
    1,
    expect.stringMatching(/git clone .*llama\.cpp && pip install .*export LLAMA_CPP=/),
  ]);
  const done = await runCommand(args, { env: { LLAMA_CPP: join(root, "test", "support") } });
  expect(done.code, done.stderr).toBe(0);
  expect(done.stderr).toMatch(/checked {2}\d+ tensors of the GGUF file are those of the merged model$/m);
  expect(existsSync(join(folder, "whole", "whole.gguf"))).toBe(true);
  const broken = join(newFolder(), "convert_hf_to_gguf.py");
  writeFileSync(broken, "import sys; sys.exit('this tokenizer is not known')");
  const failed = await runCommand(
    args.map((arg) => arg.replace("/whole", "/failed")),
    { env: { LLAMA_CPP: broken } },
  );
  expect([failed.code, failed.stderr]).toEqual([
    1,
    expect.stringContaining("this tokenizer is not known. Nothing was kept"),
  ]);
  expect(existsSync(join(folder, "failed"))).toBe(false);
});

const python = process.env["WHET_PEFT_PYTHON"] ?? join(cacheFolder(), "compat", "cookbook", "bin", "python");
const reason =
  process.env["WHET_COMPAT"] !== "1"
    ? "WHET_COMPAT=1 is not set"
    : existsSync(python)
      ? undefined
      : `there is no ${python}`;
if (reason) console.log(`PEFT is not tried: ${reason}`);

test.skipIf(reason !== undefined)(
  "every step's loss is the one that PEFT has on the same batch, to 1e-5",
  { timeout: 600_000 },
  async () => {
    writeTinyModel(join(folder, "tiny"));
    const models: [name: string, model: string, ...settings: string[]][] = [
      ["bundled", bundled],
      ["bundled-headless", bundled, "train_unembed=false"],
      ["random", join(folder, "tiny"), `model_name=${folder}/tiny`, "renderer_name=qwen3_instruct", "lora_rank=8"],
      [
        "random-headless",
        join(folder, "tiny"),
        `model_name=${folder}/tiny`,
        "renderer_name=qwen3_instruct",
        "lora_rank=8",
        "train_unembed=false",
      ],
    ];
    for (const [name, model, ...settings] of models) {
      const run = await supervised(name, ...settings, "learning_rate=0.01");
      // The adapter that it began with: the same seed, and steps that change nothing.
      const still = await supervised(`${name}-still`, ...settings, "max_steps=1", "learning_rate=1e-30");
      const out = join(folder, `${name}-start`);
      const exported = await runCommand(["export", `run=${still}`, `out=${out}`, `python=${python}`], {
        env: { PYTHONPATH: process.env["PYTHONPATH"] ?? "" },
      });
      expect(exported.code, exported.stderr).toBe(0);
      expect(exported.stderr).toMatch(/checked {2}peft .* loads it onto the base model: \d+ tensors/);
      const spec = { adapter: out, ...batchesOf(run), messages: talk };
      const file = join(folder, `${name}.json`);
      writeFileSync(file, JSON.stringify(spec));
      const check = join(root, "scripts", "compat", "sft_check.py");
      const env = { ...cleanEnvironment(), HF_HUB_OFFLINE: "1", PYTHONPATH: process.env["PYTHONPATH"] ?? "" };
      const { stdout } = await promisify(execFile)(python, [check, file, model], { env });
      console.log(`${name} ${stdout.trim()}`);
      const found = JSON.parse(stdout.trim().split("\n").at(-1)!);
      expect(found.steps).toBe(steps);
      expect(found.differs_by).toBeLessThan(1e-5);
      expect(found.last).toBeLessThan(found.first);
      expect(found.names_lm_head).toBe(!name.includes("headless"));
    }
  },
);

/** What each step of a run was trained on, and its loss. */
function batchesOf(run: string) {
  const rows = new Map<number, { prompt: number[]; answer: number[] }[]>();
  const losses = new Map<number, number>();
  let adam: object = {};
  for (const { event, arrays } of readJournal(run)) {
    if (event.type === "group-sampled") {
      const { prompt, tokens } = arrays() as { prompt: Int32Array; tokens: Int32Array };
      rows.set(event.batch, [...(rows.get(event.batch) ?? []), { prompt: [...prompt], answer: [...tokens] }]);
    }
    if (event.type === "update-submitted") adam = event.rule.adam;
    if (event.type === "step-done") losses.set(event.step, event.metrics["loss"]!);
  }
  return { adam, steps: [...losses].map(([step, loss]) => ({ loss, rows: rows.get(step)! })) };
}
