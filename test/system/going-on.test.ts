// Going on with a run: what is printed can be pasted from any folder, and the run's own settings hold but for what is named.
import { spawn } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import { runCommand } from "../support/command-process.ts";
import { foldersInMemory } from "../support/folders.ts";
import { cleanEnvironment, outcomeOf, runWhet, type WhetResult, whetPath } from "../support/whet.ts";

const folders = foldersInMemory();
const home = folders();
/** A folder that a shell would take apart. */
const project = join(folders(), "my project's $HOME (1)");
const path = join(project, "runs", "first");
const config = () => JSON.parse(readFileSync(join(path, "config.json"), "utf8")) as Record<string, unknown>;
/** A key for another engine than the run's is there when it goes on. */
const env = { HOME: home, TINKER_API_KEY: "tml-of-another-engine" };
let interrupted: WhetResult;

/** Runs a pasted command line in a folder that knows nothing of the run. */
function paste(command: string): Promise<WhetResult> {
  return outcomeOf(spawn("bash", ["-c", command], { cwd: folders(), env: cleanEnvironment(env) }));
}

beforeAll(async () => {
  mkdirSync(project, { recursive: true });
  const problem = (id: string, sign: string) =>
    JSON.stringify({ id, question: `Print ${sign}.`, tests: [{ input: "", output: sign }] });
  writeFileSync(join(project, "mine.jsonl"), `${problem("a", "1")}\n${problem("b", "2")}\n`);
  const settings = ["train_data=mine.jsonl", "log_path=runs/first", "eval_every=0", "max_steps=1000", "max_tokens=24"];
  const sizes = ["prompts_per_step=2", "completions_per_prompt=3", "learning_rate=0.0007", "seed=5", "dashboard=false"];
  interrupted = await runWhet(["train", ...settings, ...sizes], {
    cwd: project,
    env: { HOME: home },
    onStart: (child) =>
      child.stderr?.on("data", (chunk: Buffer) => /step +0 /.test(chunk.toString()) && child.kill("SIGINT")),
  });
});

const pasted = (text: string) => /To go on[^\n]*:\n {2}(.+)\n/.exec(text)?.[1] ?? "";
const steps = () => readFileSync(join(path, "metrics.jsonl"), "utf8").trim().split("\n").length;

test("what Ctrl-C prints goes on from any folder, on the run's engine, with everything that was set", async () => {
  expect(interrupted.code, interrupted.stderr).toBe(130);
  const before = config();
  expect(before).toMatchObject({
    learning_rate: 0.0007,
    prompts_per_step: 2,
    completions_per_prompt: 3,
    max_steps: 1000,
    seed: 5,
  });
  const trained = steps();
  const command = pasted(interrupted.stderr);
  expect(command).toMatch(/whet resume /);
  const { code, stderr } = await paste(`${command} max_steps=${trained + 1}`);
  expect(code, stderr).toBe(0);
  expect(stderr).toMatch(/engine {3}embedded/);
  expect(stderr.match(/another setting: .*/g)).toEqual([
    `another setting: max_steps was 1000 and is now ${trained + 1}`,
  ]);
  expect(steps()).toBe(trained + 1);
  expect(config()).toEqual({ ...before, max_steps: trained + 1, log_path: path, behavior_if_log_dir_exists: "resume" });
});

test("a finished run, and one that is ended by an error, name the command that goes on", async () => {
  const finished = await paste(`'${whetPath}' resume ${join("'", path, "'").replace("project's", "project'\\''s")}`);
  expect(finished.stderr).toMatch(/this run is finished/);
  expect(finished.stderr).toMatch(/To go on with it:\n {2}\S+ resume .* max_steps=\d+\n/);
  const other = await runCommand(["train", "log_path=runs/first", "seed=6", "max_steps=99"], { cwd: project, env });
  expect(other.stderr).toMatch(/seed was 5 and is now 6.*\[config\/resume-mismatch\]/);
  expect(await paste(`${pasted(other.stderr)} max_steps=${steps() + 1} --dry-run`)).toMatchObject({
    code: 0,
    stderr: expect.stringMatching(/prompts_per_step=2 completions_per_prompt=3 learning_rate=0\.0007/),
  });
});

test("`train` with the log_path of a run takes every key that is not named from it; starting over does not", async () => {
  const dry = (...args: string[]) =>
    runCommand(["train", "log_path=runs/first", "--dry-run", ...args], { cwd: project, env: { HOME: home } });
  const [on, over] = [
    await dry("max_steps=900", "completions_per_prompt=4"),
    await dry("behavior_if_log_dir_exists=delete", "train_data=mine.jsonl", "prompts_per_step=2", "eval_every=0"),
  ];
  expect(on.stderr).toMatch(/prompts_per_step=2 completions_per_prompt=4 learning_rate=0\.0007/);
  expect(on.stderr).toMatch(/max_steps=900 .*seed=5/);
  expect(over.stderr).toMatch(/prompts_per_step=2 completions_per_prompt=8 learning_rate=0\.003/);
  expect(readdirSync(path)).toContain("journal");
});

test("resume finds a run by its name, and help shows the run's settings", async () => {
  const { stdout } = await runCommand(["help", "resume", "first"], { cwd: join(project, "runs"), env });
  expect(stdout).toMatch(/^ {2}learning_rate=0\.0007 .*\(the run's\)$/m);
  expect(stdout).toMatch(/^ {2}completions_per_prompt=3 /m);
  const missing = await runCommand(["resume", "frist"], { cwd: join(project, "runs"), env });
  expect(missing).toMatchObject({ code: 2, stderr: expect.stringMatching(/Did you mean "first"/) });
});
