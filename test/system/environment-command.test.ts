// env= at the command: a run of an environment, which remembers it, and every command that asks the run's model the same way.
import { appendFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import { readJsonLines } from "../../src/core/jsonl.ts";
import type { RunEvent } from "../../src/runs/events.ts";
import { eventsNamed, eventsOf } from "../support/environment-runs.ts";
import { temporaryFolders } from "../support/folders.ts";
import { type SharedEngine, sharedEngine } from "../support/shared-engine.ts";
import { runWhet } from "../support/whet.ts";

const folder = temporaryFolders();
let place: string;
let run: string;
let said: string;
let engine: SharedEngine;

const environmentModule = `import { buildMessages } from "whetstone/data";
import { environment } from "whetstone/rl";

const problems = [10, 11].map((least) => ({
  id: \`keep-\${least}\`,
  least,
  prompt: buildMessages({
    question: \`You are given a list a of integers. Keep only the numbers that are at least \${least}. Return the resulting list.\`,
  }),
}));

export default environment({
  problems,
  testProblems: problems,
  maxTurns: 2,
  async run({ problem, chat, log, random }) {
    let sum = 0;
    for await (const { text, turn } of chat) {
      if (turn === 1) log("first_length", text.length);
      sum += 0.01 * text.length + 0.1 * random() + Number(text.includes(\`\${problem.least}\`));
      chat.user("Say it once more.");
    }
    return sum;
  },
});
`;

const whet = async (...args: string[]) => {
  const result = await runWhet(args, { cwd: place, env: { TINKER_API_KEY: engine.apiKey } });
  return { ...result, text: result.stdout + result.stderr };
};
/** Where the engine is that tests share. */
const there = () => `base_url=${engine.baseUrl}`;
const small = [
  "prompts_per_step=2",
  "completions_per_prompt=4",
  "learning_rate=1e-5",
  "dashboard=false",
  "eval_every=2",
];

beforeAll(async () => {
  engine = await sharedEngine();
  place = folder();
  run = join(place, "run");
  writeFileSync(join(place, "talk.ts"), environmentModule);
  const { code, text } = await whet("train", there(), "env=./talk.ts", `log_path=${run}`, "max_steps=2", ...small);
  said = text;
  expect(code, text).toBe(0);
});

test("train plays it, measures it before and after, and needs no sandbox", () => {
  const events: RunEvent[] = eventsOf(run);
  expect(eventsNamed(events, "turn-sampled").length).toBeGreaterThan(8);
  for (const { metrics } of eventsNamed(events, "step-done")) {
    expect(metrics["episode/turns_max"]).toBe(2);
    expect(metrics["env/first_length"]).toBeGreaterThan(0);
  }
  const evaluations = eventsNamed(events, "evaluated");
  expect(evaluations.map(({ step }) => step)).toEqual([0, 2]);
  for (const { metrics } of evaluations) {
    expect(metrics["eval/episode/turns_mean"]).toBeGreaterThan(1);
    expect(metrics["eval/mean_reward"]).toBeGreaterThan(0);
    expect(metrics["eval/env/first_length"]).toBeGreaterThan(0);
  }
  expect(said).toContain(`train    2 problems of ${join(place, "talk.ts")}`);
  expect(said).toMatch(/mean_reward \d\.\d+ → \d\.\d+/);
  expect(said).not.toContain("sandbox  ");
});

test("eval plays the run's environment, from the figures of the run's own evaluation on", async () => {
  const out = join(place, "outcomes.jsonl");
  const { code, stdout } = await whet("eval", run, `out=${out}`);
  expect(code).toBe(0);
  expect(stdout).toMatch(/episode\/turns_mean +2\.000/);
  const figures = (readJsonLines(out) as { figures: Record<string, number> }[]).map((outcome) => outcome.figures);
  const last = eventsNamed(eventsOf(run), "evaluated").at(-1)!;
  expect(figures).toEqual(last.outcomes.map((outcome) => outcome.figures));
});

test("sample plays one episode and prints it turn by turn, as the model sees it", async () => {
  const command = /sample (run=\S+ checkpoint=\S+ keep-1\d)\n/.exec(said)![1]!;
  expect(command).toContain("checkpoint=base,final");
  const { code, stdout } = await whet("sample", run, "keep-11");
  expect(code).toBe(0);
  expect(stdout).toContain("── problem keep-11");
  expect(stdout).toContain("<|im_start|>user\nSay it once more.<|im_end|>\n<|im_start|>assistant");
  expect(stdout).toMatch(
    /── verdict {3}\w+, reward [\d.]+\n {3}ended {5}max_turns after 2 turns\n {3}first_length \d+/,
  );
});

test("several episodes as JSON have their tokens and how each ended", async () => {
  const { code, stdout } = await whet("sample", "env=./talk.ts", `run=${run}`, "n=2", "json=true");
  expect(code).toBe(0);
  const episodes = stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Record<string, never>);
  expect(episodes.map(({ problem, sample }) => [problem, sample])).toEqual([
    ["keep-10", 0],
    ["keep-10", 1],
  ]);
  for (const { turns } of episodes as unknown as { turns: Record<string, number[]>[] }[]) {
    expect(turns).toHaveLength(2);
    for (const { tokens, logprobs, context } of turns) {
      expect(logprobs).toHaveLength(tokens!.length);
      expect(context!.length).toBeGreaterThan(5);
    }
  }
});

test("a problem that it does not have is said with one that it has", async () => {
  const { code, stderr } = await whet("sample", run, "keep-12");
  expect(code).toBe(2);
  expect(stderr).toMatch(/"keep-12" is the id of none of the 2 problems of env=.*talk\.ts. Name one, such as keep-1\d/);
});

test("doctor checks it and forecasts from a batch that is played", async () => {
  // What it measures, it measures on an engine of its own.
  const result = await runWhet(["doctor", "env=talk.ts", "max_steps=2", ...small], { cwd: place });
  const [code, text] = [result.code, result.stdout + result.stderr];
  expect(text).toContain("ok        environment");
  expect(text).toMatch(/ok {8}data {7}2 problems of .*talk\.ts/);
  expect(text).toMatch(/forecast {2}2 steps with 2 evaluations of 2 problems: [\d,]+ tokens read/);
  expect(code).toBe(0);
});

test("a dry run says what every turn may cost, and leaves nothing", async () => {
  const { code, text } = await whet(
    "train",
    there(),
    "env=./talk.ts",
    "log_path=dry",
    "max_steps=2",
    "--dry-run",
    ...small,
  );
  expect(code).toBe(0);
  // 2 prompts, 8 second turns that read at most the window; 8 × 2 answers of 112 tokens.
  expect(text).toMatch(/a step: at most 4\d{3} read, 1792 sampled/);
  expect(existsSync(join(place, "dry"))).toBe(false);
});

test("resume finds it from anywhere, and says that the module is another one", async () => {
  mkdirSync(join(place, "elsewhere"));
  const again = (...more: string[]) =>
    runWhet(["resume", run, ...more], { cwd: join(place, "elsewhere"), env: { TINKER_API_KEY: engine.apiKey } });
  const same = await again("max_steps=3");
  expect(same.code, same.stderr).toBe(0);
  expect(same.stderr).not.toContain("another setting: the environment");
  appendFileSync(join(place, "talk.ts"), "// a judge who thinks again\n");
  const other = await again("max_steps=4");
  expect(other.code, other.stderr).toBe(0);
  expect(other.stderr).toContain("going on with another setting: the environment's file says something else");
  writeFileSync(join(place, "talk.ts"), environmentModule.replace("[10, 11]", "[10, 12]"));
  const refused = await again("max_steps=5");
  expect(refused.code).toBe(2);
  expect(refused.stderr).toContain("the problems, or something in one of them, are others");
});

test("a mistake is said before anything is started, with exit code 2", async () => {
  writeFileSync(join(place, "broken.ts"), "export default 3;\n");
  const { code, stderr } = await whet("train", there(), "env=./broken.ts", "log_path=broken", ...small);
  expect(code).toBe(2);
  expect(stderr).toMatch(/The default export of .*broken\.ts is a number and no environment\. End the module with/);
  expect(existsSync(join(place, "broken", "config.json"))).toBe(false);
  const both = await whet("train", there(), "env=./talk.ts", "train_data=starter", "--dry-run");
  expect(both.stderr).toContain("has problems of its own, and train_data=starter names others");
  expect(readFileSync(join(run, "config.json"), "utf8")).toContain('"train_data": ""');
});

test("what it throws where nobody waits is said with its place, and the run goes on", async () => {
  const leaking = environmentModule.replace(
    "let sum = 0;",
    'let sum = 0;\n    void Promise.reject(new Error("left behind"));\n    setTimeout(() => { throw new Error("too late"); });',
  );
  writeFileSync(join(place, "leaks.ts"), leaking);
  const { code, stderr } = await whet(
    "train",
    there(),
    "env=./leaks.ts",
    "log_path=leaks",
    "max_steps=1",
    ...small,
    "eval_every=0",
  );
  expect(code, stderr).toBe(0);
  expect(stderr).toMatch(
    /threw where nothing waits for it: left behind \(.*leaks\.ts:18:25\)\. The run goes on; await/,
  );
  expect(stderr).toMatch(/the environment threw 13 more errors where nothing waits for them/);
  expect(eventsNamed(eventsOf(join(place, "leaks")), "step-done")).toHaveLength(1);
});

test("init --env writes the environment that the guide begins with, and the guide's commands take it", async () => {
  const { code, stdout } = await whet("init", "fresh", "--env");
  expect(code).toBe(0);
  expect(stdout).toContain("train env=./fresh/guess.ts learning_rate=1e-3 max_steps=60");
  const guide = readFileSync(new URL("../../docs/environments.md", import.meta.url), "utf8");
  expect(guide).toContain(`\`\`\`ts\n${readFileSync(join(place, "fresh", "guess.ts"), "utf8")}\`\`\``);
  const shown = [...guide.matchAll(/^\.\/whet (.*?env=\.\/guess\.ts.*?)(?: +#.*)?$/gm)].map(([, line]) =>
    line!.split(" "),
  );
  expect(shown.map(([name]) => name)).toEqual(["sample", "train", "eval"]);
  const more: Record<string, string[]> = { sample: [], train: ["--dry-run"], eval: ["max_turns=1", "max_tokens=32"] };
  for (const [name, ...args] of shown) {
    const env = { TINKER_API_KEY: engine.apiKey };
    const result = await runWhet([name!, there(), ...args, ...more[name!]!], { cwd: join(place, "fresh"), env });
    expect(result.code, result.stderr).toBe(0);
  }
  expect(await whet("init", "fresh", "env=true")).toMatchObject({ code: 2 });
});
