// train_unembed=false: the adapter that a run exports has no output layer, which servers such as vLLM would refuse.
import { join } from "node:path";
import { expect, test } from "vitest";
import { Adapter } from "../../src/export/adapter.ts";
import { runCommand } from "../support/command-process.ts";
import { foldersInMemory } from "../support/folders.ts";

const newFolder = foldersInMemory();

test("an adapter without the output layer is trained, resumed and exported as such", async () => {
  const run = join(newFolder(), "run");
  const settings = ["max_steps=1", "prompts_per_step=2", "eval_every=0", "dashboard=false", `log_path=${run}`];
  const trained = await runCommand(["train", "train_unembed=false", ...settings]);
  expect(trained).toMatchObject({ code: 0 });
  const other = await runCommand(["train", "train_unembed=true", ...settings, "max_steps=2"]);
  expect([other.code, other.stderr]).toEqual([2, expect.stringContaining("train_unembed was false and is now true")]);
  const out = join(newFolder(), "adapter");
  expect(await runCommand(["export", `run=${run}`, `out=${out}`])).toMatchObject({ code: 0 });
  const adapter = new Adapter(out);
  try {
    expect(adapter.modules).toEqual(["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]);
  } finally {
    adapter.close();
  }
}, 60_000);
