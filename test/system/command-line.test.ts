// The command line as people type it, in a real process: version, help, completion in real shells, and a project from `init` that is
// certified, goes through a dry run and is trained.
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { runCommand } from "../support/command-process.ts";
import { foldersInMemory } from "../support/folders.ts";
import { cleanEnvironment, runWhet as whet } from "../support/whet.ts";

const folders = foldersInMemory();
const has = (program: string) => spawnSync(program, ["-c", "true"]).status === 0;

test("--version names the package's version", async () => {
  const { version } = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8")) as {
    version: string;
  };
  expect(await whet(["--version"])).toMatchObject({ code: 0, stdout: `whetstone ${version}\n` });
});

test("`help train` is `train --help`, with what else was typed", async () => {
  const args = ["preset=deepcoder", "seed=7"];
  const [first, second] = await Promise.all([whet(["help", "train", ...args]), whet(["train", ...args, "--help"])]);
  expect(first).toEqual(second);
  expect(first.stdout).toMatch(/^ {2}seed=7 .*\(as typed\)$/m);
  expect(first.stdout).toMatch(/^ {2}model_name=Qwen\/Qwen3-8B /m);
  expect(await whet(["help", "trian"])).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/Did you mean "train"/),
  });
});

describe("completion", () => {
  test("bash", async () => {
    const folder = folders();
    const script = join(folder, "completion.bash");
    writeFileSync(script, (await whet(["completion", "bash"])).stdout);
    mkdirSync(join(folder, "my data"));
    writeFileSync(join(folder, "my.jsonl"), "");
    mkdirSync(join(folder, "code-rl-logs", "my-run"), { recursive: true });
    const complete = (line: string) =>
      execFileSync(
        "bash",
        [
          ...["--norc", "-c"],
          `cd "$2"; source "$0"; COMP_LINE=$1 COMP_POINT=\${#1}; _whet; printf '%s\\n' "\${COMPREPLY[@]}"`,
          ...[script, line, folder],
        ],
        { env: cleanEnvironment({ HOME: folder }) },
      )
        .toString()
        .trim()
        .split("\n");
    expect(complete("./whet tr")).toEqual(["train"]);
    expect(complete("./whet ")).toEqual(expect.arrayContaining(["train", "eval", "help", "completion"]));
    expect(complete("./whet help cert")).toEqual(["certify"]);
    expect(complete("./whet train seed=1 learning_r")).toEqual(["learning_rate="]);
    expect(complete("./whet train train_data=my.")).toEqual(["my.jsonl"]);
    expect(complete("./whet certify my.")).toEqual(["my.jsonl"]);
    expect(complete("./whet completion z")).toEqual(["zsh"]);
    // The values of a choice, of a switch, and runs.
    expect(complete("./whet train advantage=")).toEqual(["mean", "grpo_std", "rloo", "batch_std", "maxrl", "none"]);
    expect(complete("./whet train seed=1 thinking=l")).toEqual(["low"]);
    expect(complete("./whet eval dashboard=")).not.toContain("true");
    expect(complete("./whet train dashboard=")).toEqual(["true", "false"]);
    expect(complete("./whet show run=")).toEqual(expect.arrayContaining(["latest", "my-run"]));
    expect(complete("./whet resume my-")).toEqual(["my-run"]);
  });

  test.skipIf(!has("fish"))("fish", async () => {
    const home = folders();
    mkdirSync(join(home, "code-rl-logs", "my-run"), { recursive: true });
    const script = join(folders(), "completion.fish");
    writeFileSync(script, (await whet(["completion", "fish"])).stdout);
    const complete = (line: string) =>
      execFileSync("fish", ["--no-config", "-c", `source ${script}; complete -C '${line}'`], {
        env: cleanEnvironment({ HOME: home }),
      })
        .toString()
        .trim()
        .split("\n")
        .map((row) => row.split("\t")[0]);
    expect(complete("whet tr")).toEqual(["train"]);
    expect(complete("whet train seed=1 learning_r")).toEqual(["learning_rate="]);
    expect(complete("whet train advantage=m")).toEqual(["advantage=maxrl", "advantage=mean"]);
    expect(complete("whet show run=my")).toEqual(["run=my-run"]);
  });

  test.skipIf(!has("zsh"))("zsh", async () => {
    const folder = folders();
    writeFileSync(join(folder, "completion.zsh"), (await whet(["completion", "zsh"])).stdout);
    writeFileSync(
      join(folder, "ask.zsh"),
      `zmodload zsh/zpty
zpty -b inner zsh -f -i
zpty -w inner "cd ${folder}; autoload -Uz compinit; compinit -u -D; source completion.zsh; whet() print -r -- GOT:\\$*; print IS''READY"
zpty -r -m inner seen '*ISREADY*'
zpty -w -n inner $'whet train learning_r\\t5\\n'
zpty -r -m inner seen '*GOT:train learning_rate=5*'
print -r -- "$seen"
zpty -w -n inner $'whet train advantage=grpo\\t\\n'
zpty -r -m inner seen '*GOT:train advantage=grpo_std*'
print -r -- "$seen"`,
    );
    const seen = execFileSync("zsh", ["-f", join(folder, "ask.zsh")], { timeout: 60_000 }).toString();
    expect(seen).toContain("GOT:train learning_rate=5");
    expect(seen).toContain("GOT:train advantage=grpo_std");
  });
});

describe("a project from init", () => {
  const folder = join(folders(), "my-project");
  const at = (name: string) => join(folder, name);

  test("is written once, and nothing is overwritten", async () => {
    expect(await whet(["init", folder])).toMatchObject({ code: 0 });
    expect(readdirSync(folder).toSorted()).toEqual([
      ".gitignore",
      "README.md",
      "run.json",
      "test.jsonl",
      "train.jsonl",
    ]);
    const before = readFileSync(at("README.md"), "utf8");
    expect(await whet(["init", folder])).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/README\.md.* already in .*config\/init-exists/),
    });
    expect(readFileSync(at("README.md"), "utf8")).toBe(before);
  });

  test("its problems are good, and training will use them all", async () => {
    for (const name of ["train.jsonl", "test.jsonl"]) {
      const { code, stderr } = await runCommand(["certify", at(name)]);
      expect(stderr).toMatch(/0 bad[\s\S]*train would use \d problems; it would leave out none/);
      expect(code).toBe(0);
    }
  });

  test("its config goes through a dry run, which keeps nothing", async () => {
    const { code, stderr } = await runCommand(["train", `@${at("run.json")}`, "--dry-run", "max_steps=1"]);
    expect(stderr).toMatch(/prompts_per_step=5 completions_per_prompt=16/);
    expect(stderr).toMatch(/train {4}5 problems/);
    expect(stderr).toMatch(/max_steps=1 /);
    expect(stderr).toMatch(/forecast a step: at most \d+ read, 8960 sampled/);
    expect(stderr).toMatch(/forecast 1 step and 2 evaluations: at most/);
    expect(stderr).toMatch(/dry run: everything is ready, nothing was billed/);
    expect(code).toBe(0);
    expect(existsSync(at("runs"))).toBe(false);
  });

  test("is trained as it is without a warning", { timeout: 240_000 }, async () => {
    const trained = await whet(["train", `@${at("run.json")}`, "dashboard=false"]);
    expect(trained.stderr).not.toMatch(/^(warning|error):/m);
    expect(trained.code).toBe(0);
    const { code, stdout } = await runCommand(["diagnose", at("runs/first")]);
    expect({ code, stdout: stdout.split("\n")[0] }).toEqual({
      code: 0,
      stdout: expect.stringMatching(/^healthy|^0 errors, 0 warnings, /),
    });
    // What `./whet runs` says of it has no complaint either.
    expect((await runCommand(["runs", at("runs"), "json=true"])).stdout).not.toContain('"problem"');
  });
});
