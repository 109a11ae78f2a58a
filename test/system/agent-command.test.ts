// `./whet train agent=…` as a person types it: the agent is a program of theirs with not one line of ours.
import type { ChildProcess } from "node:child_process";
import { randomInt } from "node:crypto";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test, vi } from "vitest";
import { eventsNamed, eventsOf, newFolder } from "../support/environment-runs.ts";
import { clientPackages } from "../support/npm-packages.ts";
import { sharedEngine } from "../support/shared-engine.ts";
import { runWhet, type WhetOptions } from "../support/whet.ts";

/** Written with the Vercel AI SDK, as its documentation does. */
const aiSdkAgent = `
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText } from "ai";
let prompt = "";
for await (const part of process.stdin) prompt += part;
const { OPENAI_BASE_URL: baseURL, OPENAI_API_KEY: apiKey, OPENAI_MODEL: name } = process.env;
const model = createOpenAICompatible({ name: "own", baseURL, apiKey })(name);
const { text } = await generateText({ model, prompt });
console.log(text);
`;

/** Without any library; it asks twice, and waits between for a file where one is named. */
const plainAgent = `
const { OPENAI_BASE_URL: base, OPENAI_API_KEY: key, OPENAI_MODEL: model, PROBLEM_DIR: folder } = process.env;
const { prompt } = JSON.parse(require("node:fs").readFileSync(folder + "/problem.json", "utf8"));
const messages = [{ role: "user", content: prompt }];
const ask = async () => {
  const response = await fetch(base + "/chat/completions", {
    method: "POST",
    headers: { authorization: "Bearer " + key },
    body: JSON.stringify({ model, messages }),
  });
  const { choices } = await response.json();
  messages.push(choices[0].message);
  return choices[0].message.content;
};
(async () => {
  await ask();
  const gate = process.argv[2];
  while (gate && !require("node:fs").existsSync(gate)) await new Promise((resolve) => setTimeout(resolve, 20));
  messages.push({ role: "user", content: "Say it once more." });
  console.log(await ask());
})();
`;

const environmentFile = `
import { environment } from "whetstone/rl";
const prompt = "You are given a list a of integers. Keep only the numbers that are at least 10. Return the resulting list.";
export default environment({
  problems: [{ id: "keep", prompt }],
  reward: ({ text }) => text.length / 1000,
});
`;

const settings = [
  "preset=nano",
  "max_steps=1",
  "prompts_per_step=1",
  "completions_per_prompt=4",
  "max_tokens=60",
  "context_window=512",
  "eval_every=0",
  "tensorboard=false",
  "dashboard=false",
];

async function train(
  args: readonly string[],
  cwd = newFolder(),
  { path = join(newFolder(), "run"), onStart = () => {} }: { path?: string; onStart?: WhetOptions["onStart"] } = {},
) {
  const { baseUrl, apiKey } = await sharedEngine();
  const result = await runWhet(["train", ...settings, ...args, `log_path=${path}`, `base_url=${baseUrl}`], {
    cwd,
    env: { TINKER_API_KEY: apiKey },
    onStart,
  });
  return { ...result, events: () => eventsOf(path) };
}

test.each([false, true])(
  "agent_sandbox=%s: what it prints is judged by the environment's reward, its two answers are one sequence",
  async (sandbox) => {
    const cwd = newFolder();
    writeFileSync(join(cwd, "agent.cjs"), plainAgent);
    writeFileSync(join(cwd, "score.ts"), environmentFile);
    const { code, stderr, events } = await train(
      ["agent=node agent.cjs", "env=./score.ts", `agent_sandbox=${sandbox}`],
      cwd,
    );
    expect([code, stderr]).toEqual([0, expect.any(String)]);
    const graded = eventsNamed(events(), "graded");
    expect(graded).toHaveLength(4);
    for (const { grade } of graded) {
      expect(grade.episode).toMatchObject({ stop: "done", turns: [0, 1], rewrites: [] });
      expect(grade.reward).toBe(grade.episode!.log["stdout"]!.length / 1000);
    }
  },
);

test("an agent of the AI SDK is judged by the tests of the bundled problems", async () => {
  const packages = await clientPackages();
  if ("missing" in packages) return console.warn(`not run: ${packages.missing}`);
  // Its packages are found from where it is.
  const file = join(packages.folder, "agent.mjs");
  writeFileSync(file, aiSdkAgent);
  const { code, stderr, events } = await train([`agent=node ${file}`]);
  expect([code, stderr]).toEqual([0, expect.any(String)]);
  const graded = eventsNamed(events(), "graded");
  expect(graded).toHaveLength(4);
  for (const { grade } of graded) {
    expect(grade.episode).toMatchObject({ stop: "done", turns: [0] });
    expect(["pass", "fail"]).toContain(grade.verdict);
    expect(grade.total).toBeGreaterThan(1);
  }
});

/** The processes of the agents that wait for this file. */
const agentsAt = (gate: string): number[] =>
  readdirSync("/proc").flatMap((name) => {
    try {
      const isAgent = readFileSync(`/proc/${name}/cmdline`, "utf8").startsWith(`node\0agent.cjs\0${gate}`);
      return /^\d+$/.test(name) && isAgent ? [Number(name)] : [];
    } catch {
      return [];
    }
  });

test("one agent killed: its episode is left out and said, what it had started is gone, and the others are trained", async () => {
  const cwd = newFolder();
  const gate = join(cwd, "gate");
  const word = String(randomInt(1e8, 1e9));
  writeFileSync(join(cwd, "agent.cjs"), plainAgent);
  writeFileSync(join(cwd, "score.ts"), environmentFile);
  const path = join(newFolder(), "run");
  const command = `agent=sleep ${word} & exec node agent.cjs ${gate}`;
  const running = train([command, "env=./score.ts", "completions_per_prompt=6"], cwd, { path });
  const isSampled = () => existsSync(path) && eventsNamed(eventsOf(path), "group-sampled").length > 0;
  await vi.waitFor(() => expect(isSampled()).toBe(true), { timeout: 60_000, interval: 100 });
  expect(agentsAt(gate)).toHaveLength(6);
  process.kill(agentsAt(gate)[0]!, "SIGKILL");
  await vi.waitFor(() => expect(eventsNamed(eventsOf(path), "graded")).toHaveLength(1), { timeout: 20_000 });
  writeFileSync(gate, "");
  const { code, stderr, events } = await running;
  expect([code, stderr]).toEqual([0, expect.any(String)]);
  const grades = eventsNamed(events(), "graded").map(({ grade }) => grade);
  expect(grades).toHaveLength(6);
  const [killed, ...others] = grades.toSorted((a, b) => Number(a.reward !== null) - Number(b.reward !== null));
  expect(killed).toMatchObject({ verdict: "ungraded", reward: null, message: "the agent was killed (SIGKILL)" });
  for (const grade of others) expect(grade.episode).toMatchObject({ turns: [0, 1], diverged: 0 });
  const [done] = eventsNamed(events(), "step-done");
  expect(done!.metrics["n_datums"]).toBe(5);
  const left = readdirSync("/proc").filter((name) => {
    try {
      return readFileSync(`/proc/${name}/cmdline`, "utf8").includes(word);
    } catch {
      return false;
    }
  });
  expect(left).toEqual([]);
});

test("killed in the middle of episodes: the agents are gone, and nothing is sampled or trained twice", async () => {
  const cwd = newFolder();
  const gate = join(cwd, "gate");
  writeFileSync(join(cwd, "agent.cjs"), plainAgent);
  writeFileSync(join(cwd, "score.ts"), environmentFile);
  const args = [`agent=node agent.cjs ${gate}`, "env=./score.ts"];
  const path = join(newFolder(), "run");
  let child: ChildProcess | undefined;
  const first = train(args, cwd, {
    path,
    onStart: (started) => {
      child = started;
    },
  });
  const isSampled = () => existsSync(path) && eventsNamed(eventsOf(path), "group-sampled").length > 0;
  await vi.waitFor(() => expect(isSampled()).toBe(true), { timeout: 60_000, interval: 100 });
  expect(agentsAt(gate)).toHaveLength(4);
  child!.kill("SIGKILL");
  await first;
  await vi.waitFor(() => expect(agentsAt(gate)).toEqual([]), { timeout: 10_000 });
  writeFileSync(gate, "");
  const { code, stderr, events } = await train(args, cwd, { path });
  expect([code, stderr]).toEqual([0, expect.any(String)]);
  const all = events();
  expect(eventsNamed(all, "group-sampled")).toHaveLength(1);
  expect(
    eventsNamed(all, "turn-sampled")
      .map(({ sample, turn }) => `${sample} ${turn}`)
      .toSorted(),
  ).toEqual([0, 1, 2, 3].map((sample) => `${sample} 1`));
  for (const { grade } of eventsNamed(all, "graded"))
    expect(grade.episode).toMatchObject({ turns: [0, 1], diverged: 0 });
  expect(eventsNamed(all, "step-done")).toHaveLength(1);
});

test("an agent that fails is quoted, and the run stops", async () => {
  const { code, stderr } = await train(["agent=echo broken >&2; exit 3"]);
  expect(code).toBe(1);
  expect(stderr).toContain("the agent ended with exit code 3: broken");
});

test("an agent and an environment that plays itself contradict each other", async () => {
  const { code, stderr } = await train(["agent=true", "env=repair"]);
  expect([code, stderr]).toEqual([
    2,
    expect.stringContaining('agent="true" plays the episodes, and so does env=repair'),
  ]);
});
