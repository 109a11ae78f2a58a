// What comes before and beside RL: a run that begins with the weights of another is exact over a kill, whatever becomes of the other one;
// what a model solves becomes what it learns from, and an end in the middle loses nothing.
import type { ChildProcess } from "node:child_process";
import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { readJsonLines } from "../../src/core/jsonl.ts";
import { readRunConfig } from "../../src/runs/directory.ts";
import { RunView } from "../../src/runs/view.ts";
import { runCommand } from "../support/command-process.ts";
import { foldersInMemory } from "../support/folders.ts";
import { runWhet } from "../support/whet.ts";
import { finalAdapter } from "./killing.ts";

const newFolder = foldersInMemory();
const quiet = ["eval_every=0", "dashboard=false", "tensorboard=false"];
const folder = newFolder();
const taught = join(folder, "taught");

/** Runs a command that has to succeed. */
async function whet(...args: string[]) {
  const result = await runCommand(args);
  expect(result.code, result.stderr).toBe(0);
  return result;
}

/** Sends a signal as soon as `isTime`. */
const when = (isTime: () => boolean, signal: NodeJS.Signals) => (child: ChildProcess) => {
  const timer = setInterval(() => {
    if (!isTime()) return;
    clearInterval(timer);
    child.kill(signal);
  }, 5);
  child.once("exit", () => clearInterval(timer));
};

beforeAll(async () => {
  const rows = Array.from({ length: 4 }, (_, index) => ({
    messages: [
      { role: "user", content: `Print the number ${index}.` },
      { role: "assistant", content: `\`\`\`python\nprint(${index})\n\`\`\`` },
    ],
  }));
  writeFileSync(join(folder, "talk.jsonl"), rows.map((row) => `${JSON.stringify(row)}\n`).join(""));
  const data = `train_data=${join(folder, "talk.jsonl")}`;
  await whet(
    "sft",
    data,
    "max_steps=2",
    "prompts_per_step=2",
    "lora_rank=8",
    "save_every=1",
    ...quiet,
    `log_path=${taught}`,
  );
}, 120_000);

describe("from=", () => {
  test("begins with the weights of another run, and goes on without it after a kill", async () => {
    const args = [
      `from=${taught}`,
      "max_steps=3",
      "prompts_per_step=2",
      "completions_per_prompt=4",
      "seed=3",
      ...quiet,
    ];
    const whole = join(folder, "whole");
    const said = await whet("train", ...args, `log_path=${whole}`);
    expect(said.stderr).toContain(`from     checkpoint final of ${taught}`);
    // Model, rank and format are the other run's.
    const begun = RunView.read(taught).newest!;
    expect(readRunConfig(whole)).toMatchObject({
      from: begun.state_path,
      lora_rank: 8,
      weights: { from: { word: taught, run: taught, checkpoint: "final", path: begun.state_path } },
    });

    const broken = join(folder, "broken");
    const submitted = () => existsSync(join(broken, "metrics.jsonl")) && RunView.read(broken).steps.length > 0;
    const killed = await runWhet(["train", ...args, `log_path=${broken}`], { onStart: when(submitted, "SIGKILL") });
    expect(killed.signal).toBe("SIGKILL");
    renameSync(taught, `${taught}-away`);
    try {
      await whet("train", ...args, `log_path=${broken}`);
    } finally {
      renameSync(`${taught}-away`, taught);
    }
    expect(finalAdapter(broken)).toBe(finalAdapter(whole));
    expect((await whet("show", whole)).stdout).toContain(`began with checkpoint final of ${taught}`);
    expect(readFileSync((await whet("report", whole)).stdout.trim(), "utf8")).toContain(
      `began with checkpoint final of`,
    );
  }, 240_000);

  test.each([
    ["lora_rank=16", "was trained with lora_rank=8, and lora_rank=16 is asked for"],
    ["renderer_name=role_colon", "was trained with renderer_name=qwen3_instruct, and renderer_name=role_colon"],
    ["base_url=http://127.0.0.1:9", "lies with engine=embedded, and this run is trained with engine=server"],
  ])(
    "refuses %s, which its weights are not for",
    async (key, message) => {
      const { code, stderr } = await runCommand([
        "train",
        `from=${taught}/000001`,
        key,
        "preset=nano",
        ...quiet,
        "--dry-run",
      ]);
      expect([code, stderr]).toEqual([2, expect.stringContaining(message)]);
    },
    60_000,
  );

  test("refuses weights that cannot be trained, and runs that are not there", async () => {
    const { sampler_path: sampler } = RunView.read(taught).newest!;
    const wrong = await runCommand(["train", `from=${sampler}`]);
    expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringContaining("Name the state of the same checkpoint")]);
    const none = await runCommand(["train", `from=${join(folder, "nothing")}`]);
    expect([none.code, none.stderr]).toEqual([2, expect.stringContaining("There is no run")]);
    const late = await runCommand(["train", `from=${taught}/000009`]);
    expect([late.code, late.stderr]).toEqual([2, expect.stringContaining("it has: 000001, final")]);
  }, 60_000);
});

test("a teacher is named like any weights", async () => {
  const path = join(folder, "pupil");
  const steps = ["max_steps=1", "prompts_per_step=2", "completions_per_prompt=2", `log_path=${path}`];
  await whet("train", `teacher=${taught}/000001`, "teacher_mode=alone", ...steps, ...quiet);
  expect(RunView.read(path).steps[0]!.metrics["optim/kl_teacher"]).toEqual(expect.any(Number));
}, 120_000);

test("what passes is collected, once, over an interruption, and is what sft takes", async () => {
  const [whole, broken] = [join(folder, "whole.jsonl"), join(folder, "broken.jsonl")];
  const args = ["collect", "run=none", "preset=nano", "problems=24", "samples=4", "keep=2", "seed=1"];
  const { stdout } = await whet(...args, `out=${whole}`);
  expect(stdout).toMatch(
    /^24 problems: 96 answers tried, \d+ passed, \d+ kept of \d+ problems \(none twice, at most 2 of each\)$/m,
  );
  const rows = readJsonLines(whole) as { id: string; messages: { role: string; content: string }[] }[];
  expect(rows.length).toBe(Number(/(\d+) kept/.exec(stdout)![1]));
  expect(new Set(rows.map(({ id, messages }) => `${id.split("#")[0]} ${messages.at(-1)!.content}`)).size).toBe(
    rows.length,
  );
  expect(rows.every(({ messages }) => messages.at(-1)!.role === "assistant")).toBe(true);

  const partial = `${broken}.partial`;
  const some = () => existsSync(partial) && readFileSync(partial, "utf8").split("\n").length > 4;
  const ended = await runWhet([...args, `out=${broken}`], { onStart: when(some, "SIGINT") });
  expect([ended.code, existsSync(broken)]).toEqual([130, false]);
  expect(ended.stderr).toContain("the same command goes on from there");
  const other = await runCommand([...args, "keep=3", `out=${broken}`]);
  expect([other.code, other.stderr]).toEqual([2, expect.stringContaining("was begun with keep=2, and now it is 3")]);
  await whet(...args, `out=${broken}`);
  expect(readFileSync(broken, "utf8")).toBe(readFileSync(whole, "utf8"));
  expect(existsSync(partial)).toBe(false);
  expect((await runCommand([...args, `out=${whole}`])).stderr).toContain("is there already");

  const learned = join(folder, "learned");
  const { stderr } = await whet("sft", `train_data=${whole}`, "max_steps=1", ...quiet, `log_path=${learned}`);
  expect(stderr).toContain(`${rows.length} demonstrations of`);
}, 240_000);
