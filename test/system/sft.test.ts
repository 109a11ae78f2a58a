// Supervised training in the loop: what is trained are the answers that were given, a killed run ends as one that was not, and what it
// learned is there to go on from.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { replay } from "../../src/rl/replay.ts";
import { readJournal } from "../../src/runs/read-journal.ts";
import { RunView } from "../../src/runs/view.ts";
import { runCommand } from "../support/command-process.ts";
import { foldersInMemory } from "../support/folders.ts";

const newFolder = foldersInMemory();

test("conversations are learned by heart, resumed, replayed and measured", async () => {
  const folder = newFolder();
  const data = join(folder, "talk.jsonl");
  const rows = Array.from({ length: 6 }, (_, index) => ({
    messages: [
      { role: "user", content: `Print the number ${index}.` },
      { role: "assistant", content: `\`\`\`python\nprint(${index})\n\`\`\`` },
    ],
  }));
  writeFileSync(data, rows.map((row) => `${JSON.stringify(row)}\n`).join(""));
  const run = join(folder, "run");
  const settings = ["prompts_per_step=3", "eval_max_problems=3", "eval_every=6", "dashboard=false", `log_path=${run}`];
  const first = await runCommand(["sft", `train_data=${data}`, "max_steps=3", ...settings]);
  expect(first).toMatchObject({ code: 0 });
  expect(first.stderr).toContain("6 demonstrations of");
  expect(await runCommand(["resume", run, "max_steps=6"])).toMatchObject({ code: 0 });
  const losses: number[] = [];
  for (const { recorded, now, what } of replay(readJournal(run), {})) {
    expect(now).toEqual(recorded);
    if (what === "evaluation") continue;
    losses.push(recorded["loss"]!);
    expect(recorded["mean_reward"]).toBeUndefined();
    expect(recorded["optim/kl_sample_train_v1"]).toBeUndefined();
  }
  expect(losses).toHaveLength(6);
  expect(losses.at(-1)).toBeLessThan(losses[0]! / 2);
  expect([...RunView.read(run).evaluations.keys()]).toContain(6);
  expect((await runCommand(["diagnose", run])).stdout).not.toContain("groups-equal");
  // What was learned is what reinforcement begins with.
  const { sampler_path: _, state_path: weights } = RunView.read(run).newest!;
  expect(weights).toMatch(/^tinker:/);
}, 120_000);

test("what cannot be learned from is refused before anything is started", async () => {
  const data = join(newFolder(), "broken.jsonl");
  writeFileSync(data, `${JSON.stringify({ messages: [{ role: "user", content: "Hi" }] })}\n`);
  const broken = await runCommand(["sft", `train_data=${data}`, "dashboard=false"]);
  expect([broken.code, broken.stderr]).toEqual([
    2,
    expect.stringContaining(`${data}, line 1: messages are to be a list`),
  ]);
  const taught = await runCommand(["sft", `train_data=${data}`, "kl_coef=0.1"]);
  expect([taught.code, taught.stderr]).toEqual([
    2,
    expect.stringContaining("kl_coef=0.1 is about answers that are sampled"),
  ]);
}, 60_000);
