// Environments of the verifiers package, the real one of PyPI and in both of its forms: trained over the endpoint for real, and measured by
// verifiers' own evaluation.
import { execFile } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Environment, environment } from "whetstone/rl";
import { loadVerifiers } from "../../src/cli/parts/verifiers-environment.ts";
import { TrainConfig } from "../../src/rl/config.ts";
import { startServe } from "../contract/serve-process.ts";
import { runCommand } from "../support/command-process.ts";
import { eventsNamed, eventsOf, newFolder } from "../support/environment-runs.ts";
import { scriptedPolicy } from "../support/scripted-policy.ts";
import { newestVerifiersVenv, verifiersVenv } from "../support/venv.ts";

let served: Awaited<ReturnType<typeof startServe>>;
beforeAll(async () => {
  served = await startServe(["openai=true", `state_dir=${newFolder()}`]);
});
afterAll(() => served.close());

const pythonOf = ({ python }: { python: string }) => `env_python=${dirname(dirname(python))}`;

const whole = process.env["WHET_COMPAT"] !== undefined;
const classic = () => verifiersVenv(whole ? "[rg]" : "");

/**
 * An environment that verifiers brings. The whole proof takes the one over tasks of the reasoning-gym package, where a right answer among
 * fewer other words is worth more; Python takes two seconds to import that, in every process.
 */
const letters = whole
  ? `
import verifiers as vf

def load_environment(**more):
    return vf.ReasoningGymEnv(gym="letter_counting", num_train_examples=20, num_eval_examples=6, parser=vf.Parser(), system_prompt="", **more)
`
  : `
import verifiers as vf
from datasets import Dataset

def check_answer_reward_func(completion, answer):
    text = completion[-1]["content"]
    return text.count(answer) / (len(text) + 1)

def load_environment():
    def rows(words):
        return Dataset.from_list([{"question": f"How many times is the letter e in {word}?", "answer": "e"} for word in words])
    train = rows("e" * count + "f" for count in range(20))
    return vf.SingleTurnEnv(dataset=train, eval_dataset=rows("abcdef"), rubric=vf.Rubric(funcs=[check_answer_reward_func]))
`;

/** The form that verifiers has from 0.4 on. */
const keep = `
import verifiers.v1 as vf

class KeepData(vf.TaskData):
    least: int

class KeepTask(vf.Task[KeepData, vf.State, vf.TaskConfig]):
    @vf.reward
    async def short(self, task, trace) -> float:
        return len(trace.last_reply) / 1000

    @vf.metric
    async def names_it(self, task, trace) -> float:
        return float(str(task.least) in trace.last_reply)

class Keep(vf.Taskset[KeepTask, vf.TasksetConfig]):
    def load(self):
        for least in range(10, 12):
            prompt = f"You are given a list a of integers. Keep only the numbers that are at least {least}. Return the resulting list."
            yield KeepTask(KeepData(prompt=prompt, name=f"keep-{least}", least=least), self.config.task)

__all__ = ["Keep"]
`;

/** Python imports for seconds, several times over, on a machine that is busy. */
const long = { timeout: 300_000 };

const settings = [
  "preset=nano",
  "prompts_per_step=1",
  "completions_per_prompt=4",
  "max_tokens=40",
  "context_window=512",
  "eval_every=0",
  "tensorboard=false",
  "dashboard=false",
];
/** Whom this machine's network trusts: verifiers' agents have uv fetch what they are made of, once. */
const certificates = Object.fromEntries(
  ["SSL_CERT_FILE", "SSL_CERT_DIR"].flatMap((name) => (process.env[name] ? [[name, process.env[name]]] : [])),
) as Record<string, string>;
const whet = (args: readonly string[], cwd: string) =>
  runCommand(args, { cwd, env: { TINKER_API_KEY: served.apiKey, TINKER_BASE_URL: served.baseUrl, ...certificates } });

/** Rewards by row: of `./whet eval`, and of verifiers' own evaluation of the same checkpoint over the OpenAI API. */
async function bothEvaluations(path: string, python: string, file: string) {
  const out = join(dirname(file), "out.jsonl");
  const model = JSON.parse(
    readFileSync(join(path, "checkpoints.jsonl"), "utf8").trim().split("\n").at(-1)!,
  ).sampler_path;
  const own = await whet(["eval", `run=${path}`, "eval_temperature=0", `out=${out}`], dirname(file));
  expect([own.code, own.stderr]).toEqual([0, expect.any(String)]);
  const ours = readFileSync(out, "utf8")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as { id: string; figures: { mean_reward: number } });
  const script = fileURLToPath(new URL("./verifiers_evaluation.py", import.meta.url));
  const name = file.slice(dirname(file).length + 1, -".py".length);
  const env = { OPENAI_BASE_URL: `${served.baseUrl}/v1`, OPENAI_API_KEY: served.apiKey, OPENAI_MODEL: model };
  const paths = { PATH: `${dirname(python)}:${process.env["PATH"]}`, HOME: process.env["HOME"] };
  const asked = await promisify(execFile)(python, [script, dirname(file), name, "40"], {
    env: { ...env, ...paths, ...certificates },
    cwd: dirname(file),
  });
  const theirs = JSON.parse(asked.stdout.trim().split("\n").at(-1)!) as Record<string, number>;
  return { ours: Object.fromEntries(ours.map(({ id, figures }) => [id, figures.mean_reward])), theirs };
}

test(
  "load_environment: five steps, stopped and resumed; verifiers' own evaluation of the checkpoint says what ./whet eval does",
  long,
  async () => {
    const venv = await classic();
    if ("missing" in venv) return console.warn(`not run: ${venv.missing}`);
    const folder = newFolder();
    const file = join(folder, "letters.py");
    writeFileSync(file, letters);
    const path = join(newFolder(), "run");
    const args = [...settings, "env=verifiers:./letters.py", pythonOf(venv), `log_path=${path}`];
    const first = await whet(["train", ...args, "max_steps=2"], folder);
    expect([first.code, first.stderr]).toEqual([0, expect.any(String)]);
    // From another folder: the run knows where its environment is.
    const second = await whet(["resume", path, "max_steps=5"], newFolder());
    expect([second.code, second.stderr]).toEqual([0, expect.any(String)]);
    const events = eventsOf(path);
    const steps = eventsNamed(events, "step-done");
    expect(steps).toHaveLength(5);
    for (const { metrics } of steps.filter(({ metrics }) => metrics["n_datums"]! > 0))
      expect(Math.abs(metrics["optim/kl_sample_train_v1"]!)).toBeLessThan(1e-6);
    // Some step had answers of different worth: the rewards are verifiers' own.
    expect(steps.some(({ metrics }) => metrics["n_datums"]! > 0)).toBe(true);
    const graded = eventsNamed(events, "graded");
    expect(graded).toHaveLength(20);
    for (const { grade } of graded) {
      expect(grade.episode).toMatchObject({ stop: "done", turns: [0], rewrites: [], diverged: 0 });
      expect(grade.episode!.metrics["check_answer_reward_func"]).toBe(grade.reward);
    }
    const { ours, theirs } = await bothEvaluations(path, venv.python, file);
    expect(Object.keys(ours)).toHaveLength(6);
    expect(Object.keys(theirs).sort()).toEqual(Object.keys(ours).sort());
    for (const [id, reward] of Object.entries(ours)) expect(theirs[id]).toBeCloseTo(reward, 6);
  },
);

test(
  "a taskset of verifiers.v1, played by its chat agent: a step of training; with WHET_COMPAT=1 the same evaluation",
  long,
  async () => {
    const venv = await newestVerifiersVenv();
    if ("missing" in venv) return console.warn(`not run: ${venv.missing}`);
    const folder = newFolder();
    const file = join(folder, "keep.py");
    writeFileSync(file, keep);
    const path = join(newFolder(), "run");
    const args = [...settings, "env=verifiers:./keep.py", pythonOf(venv), `log_path=${path}`, "max_steps=1"];
    const trained = await whet(["train", ...args], folder);
    if (trained.stderr.includes("failed to prepare uv script")) return console.warn("not run: uv reaches no registry");
    expect([trained.code, trained.stderr]).toEqual([0, expect.any(String)]);
    const events = eventsOf(path);
    const [done] = eventsNamed(events, "step-done");
    expect(done!.metrics["n_datums"]).toBeGreaterThan(1);
    expect(Math.abs(done!.metrics["optim/kl_sample_train_v1"]!)).toBeLessThan(1e-6);
    for (const { grade } of eventsNamed(events, "graded"))
      expect(grade.episode).toMatchObject({
        turns: [0],
        metrics: { short: grade.reward, names_it: expect.any(Number) },
      });
    if (!whole) return;
    const { ours, theirs } = await bothEvaluations(path, venv.python, file);
    expect(Object.keys(ours)).toHaveLength(2);
    expect(theirs).toEqual(ours);
  },
);

/** Does what its row says. */
const odd = `
import asyncio, os, pathlib
import verifiers as vf
from datasets import Dataset

def load_environment(mark):
    async def judge(completion, info):
        how = info["how"]
        if how == "throws": raise ValueError("no verdict for this")
        if how == "hangs": await asyncio.sleep(1e9)
        if how == "dies" and not pathlib.Path(mark).exists():
            pathlib.Path(mark).touch()
            os._exit(7)
        return float("nan") if how == "nan" else len(completion[-1]["content"]) / 10
    hows = ["nan", "throws", "hangs", "dies"] + 7 * ["fine"]
    rows = [{"prompt": [{"role": "user", "content": how}], "info": {"how": how}} for how in hows]
    class Env(vf.SingleTurnEnv):
        async def rollout(self, *given, **more):
            state = await super().rollout(*given, **more)
            state["info"]["reward"] = await judge(state["completion"], state["info"])
            return state
    def reward(info): return info["reward"]
    return Env(dataset=Dataset.from_list(rows), rubric=vf.Rubric(funcs=[reward]))
`;

test("an environment that throws, hangs, dies or says NaN is told apart, and is never a reward", async () => {
  const venv = await classic();
  if ("missing" in venv) return console.warn(`not run: ${venv.missing}`);
  const folder = newFolder();
  writeFileSync(join(folder, "odd.py"), odd);
  const given = {
    env: `verifiers:${join(folder, "odd.py")}`,
    env_args: { mark: join(folder, "mark") },
    env_python: dirname(dirname(venv.python)),
  };
  const loaded = await loadVerifiers({ ...TrainConfig.parse({}), ...given }, () => {});
  const policy = await scriptedPolicy();
  try {
    policy.answers = () => ["One.", "Three."];
    const only = (...hows: string[]): Environment =>
      environment({
        ...loaded.environment,
        problems: loaded.problems.filter(({ prompt }) =>
          hows.includes((prompt as unknown as { content: string }[])[0]!.content),
        ),
      } as never);
    // As many are left out as a run bears.
    const config = { prompts_per_step: 10, completions_per_prompt: 2, episode_timeout: 45 };
    const { events } = await policy.train(only("fine", "throws", "hangs", "dies"), { config });
    const said = eventsNamed(events, "group-sampled").map(({ group, problem }) => [group, problem] as const);
    const gradesOf = (row: number) => {
      const group = said.find(([, problem]) => problem === String(row))![0];
      return eventsNamed(events, "graded")
        .filter((one) => one.group === group)
        .map(({ grade }) => grade);
    };
    for (const row of [3, 4, 10]) for (const { reward } of gradesOf(row)) expect([0.4, 0.6]).toContain(reward);
    for (const grade of gradesOf(1)) {
      expect(grade).toMatchObject({ verdict: "ungraded", reward: null });
      expect(grade.message).toMatch(/ValueError: no verdict for this/);
    }
    for (const grade of gradesOf(2)) expect(grade).toMatchObject({ verdict: "ungraded", status: "timeout" });
    await expect(policy.train(only("nan"), { config: { completions_per_prompt: 2 } })).rejects.toMatchObject({
      code: "rl/bad-reward",
      message: expect.stringContaining("NaN"),
    });
  } finally {
    await policy.close();
    await loaded.close();
  }
});

test("what is not there is said with what to do", async () => {
  const venv = await classic();
  if ("missing" in venv) return console.warn(`not run: ${venv.missing}`);
  const folder = newFolder();
  writeFileSync(join(folder, "old.py"), "def load_environment():\n    raise KeyError('OWN_KEY is not set')\n");
  const tries: [args: string[], said: RegExp][] = [
    [["env=verifiers:./none.py"], /there is nothing at .*none\.py/],
    [["env=verifiers:nowhere", pythonOf(venv)], /no module of that name with load_environment is installed/],
    [["env=verifiers:./old.py", pythonOf(venv)], /KeyError: 'OWN_KEY is not set' \(.*old\.py:2\)/],
    [["env=verifiers:./old.py", "env_python=python3"], /this Python has no verifiers package/],
    [["env=verifiers:./old.py", "env_packages=./x"], /env_packages holds "\.\/x", which is no package name/],
  ];
  const said = await Promise.all(
    tries.map(([args], index) => whet(["train", ...settings, ...args, `log_path=${index}`], folder)),
  );
  expect(said.map(({ code }) => code)).toEqual(tries.map(() => 2));
  for (const [index, { stderr }] of said.entries()) expect(stderr).toMatch(tries[index]![1]);
});
