// Training through the model's own chat template is the same training, bit for bit, as through the renderer made by hand for it.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { readJsonLines } from "../../src/core/jsonl.ts";
import { runCommand } from "../support/command-process.ts";
import { foldersInMemory } from "../support/folders.ts";
import { sharedEngine } from "../support/shared-engine.ts";
import { finalAdapter } from "./killing.ts";

const newFolder = foldersInMemory();
const settings = [
  "max_steps=2",
  "eval_every=0",
  "prompts_per_step=2",
  "completions_per_prompt=4",
  "eval_max_problems=8",
  "tensorboard=false",
];

/** Everything that a run computed; how long it took is left out. */
async function train(renderer: string) {
  const path = join(newFolder(), "run");
  const { baseUrl, apiKey, stateDir } = await sharedEngine();
  const keys = [`renderer_name=${renderer}`, `log_path=${path}`, `base_url=${baseUrl}`, ...settings];
  const { code, stderr } = await runCommand(["train", ...keys], { env: { TINKER_API_KEY: apiKey } });
  expect(code, stderr).toBe(0);
  expect(JSON.parse(readFileSync(join(path, "config.json"), "utf8"))).toMatchObject({ renderer_name: renderer });
  const records = (file: string) =>
    (readJsonLines(join(path, file)) as Record<string, unknown>[]).map((record) =>
      Object.fromEntries(
        Object.entries(record).filter(
          ([key]) => !/^(time|pipeline|journal|grade_ms|grade\/(wall|queue|cached))/.test(key),
        ),
      ),
    );
  return {
    metrics: records("metrics.jsonl"),
    rollouts: readdirSync(join(path, "rollouts"))
      .sort()
      .map((file) => records(join("rollouts", file))),
    adapter: finalAdapter(path, stateDir),
  };
}

test("template and qwen3_instruct give the same rollouts, metrics and adapter", async () => {
  expect(await train("template")).toEqual(await train("qwen3_instruct"));
});

test("what a template cannot do is refused with what it can", async () => {
  const args = ["train", "renderer_name=template", "thinking=high", `log_path=${join(newFolder(), "run")}`];
  const { code, stderr } = await runCommand(args);
  expect(code).toBe(1);
  expect(stderr).toMatch(/thinking=high is not something .* Its choices: off\. \[renderer\/thinking\]/);
});
