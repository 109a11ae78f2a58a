// Agents as people have them, written with the newest clients of their registries: five answers with tools become one sequence, each
// sampled token is trained once, and the trainer's log-probabilities are the sampler's.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { afterAll, beforeAll, expect, test } from "vitest";
import { environment } from "whetstone/rl";
import { runAgent } from "../../src/agents/run-agent.ts";
import { readableRun, readBatch, turnTokens } from "../../src/runs/batch.ts";
import { type Agent, agents, pythonAgent } from "../support/agents.ts";
import { eventsNamed, newFolder } from "../support/environment-runs.ts";
import { clientPackages } from "../support/npm-packages.ts";
import { called, lastSaid, type ScriptedPolicy, scriptedPolicy } from "../support/scripted-policy.ts";
import { suiteVenv } from "../support/venv.ts";

let policy: ScriptedPolicy;
beforeAll(async () => {
  policy = await scriptedPolicy();
});
afterAll(() => policy.close());

/** Thinks, calls twice at once, then twice more and once with arguments that clients spell otherwise, and answers: five answers. */
function answers(prompt: string): string[] {
  const said = lastSaid(prompt);
  if (said.includes("GAMMA")) return [called("look", '{ "key":"delta" }')];
  if (said.includes("DELTA"))
    return [`Once more.\n${called("look", '{"key": "\\u00e9\\n", "n": 12345678901234567890, "x": 1.0}')}`];
  if (said.includes("ALPHA")) return [`<think>\nSo far so good.\n</think>\n\n${called("look", '{"key":"gamma"}')}`];
  if (said.includes("É")) return ["It is right.", "It is wrong."];
  return [
    `<think>\nFirst I look.\n</think>\n\n${called("look", '{"key":"alpha"}')}\n${called("look", '{"key":"beta"}')}`,
  ];
}

async function train(agent: Agent) {
  policy.answers = answers;
  policy.prompts.length = 0;
  const said: string[] = [];
  const one = environment({
    problems: [{ id: "p", prompt: "Find it." }],
    async run({ endpoint, problem, signal }) {
      const text = await agent({ endpoint, prompt: problem.prompt, look: (key) => key.toUpperCase(), signal });
      said.push(text);
      return text;
    },
    reward: ({ text }) => Number(text.includes("right")),
  });
  return { ...(await policy.train(one, { config: { seed: 3 } })), said };
}

/** Every sampled token in one sequence and as it was sampled. */
function expectExact({ path, events, said }: Awaited<ReturnType<typeof train>>) {
  const graded = eventsNamed(events, "graded");
  expect(graded.map(({ grade }) => grade.message)).toEqual(Array(4).fill(undefined));
  for (const { grade } of graded)
    expect(grade.episode).toMatchObject({
      stop: "done",
      turns: [0, 1, 2, 3, 4],
      rewrites: [],
      toolCalls: 5,
      diverged: 0,
    });
  expect(said.toSorted()).toEqual(expect.arrayContaining(["It is right.", "It is wrong."]));
  const run = readableRun(path);
  const batch = readBatch(run, "train", 0);
  let trained = 0;
  const { judged } = batch.groups[0]!;
  expect(judged!.trained.length).toBe(4);
  for (const sample of judged!.trained) {
    const turns = turnTokens(run, batch.groups[0]!, sample)!;
    expect(turns.map(({ parent }) => parent)).toEqual([null, 0, 1, 2, 3]);
    for (const { tokens, sampler, trainer } of turns) {
      trained += tokens.length;
      for (const [place, logprob] of sampler.entries()) expect(Math.abs(trainer![place]! - logprob)).toBeLessThan(1e-6);
    }
  }
  const [done] = eventsNamed(events, "step-done");
  expect(done!.metrics["tokens/trained"]).toBe(trained);
  expect(done!.metrics["n_datums"]).toBe(4);
  expect(done!.metrics["episode/sequences_mean"]).toBe(1);
}

test.each(["openai", "ai generateText", "ai ToolLoopAgent, streaming", "langchain"])("%s", async (name) => {
  const packages = await clientPackages();
  if ("missing" in packages) return console.warn(`not compared: ${packages.missing}`);
  expectExact(await train(agents(packages.folder)[name]!));
});

test("openai of Python", async () => {
  const venv = await suiteVenv();
  if ("missing" in venv) return console.warn(`not compared: ${venv.missing}`);
  expectExact(await train(pythonAgent(venv.python)));
});

/** Without any library, as a process of its own: node starts sooner than with one. */
const processAgent = `
const { OPENAI_BASE_URL: base, OPENAI_API_KEY: key, OPENAI_MODEL: model } = process.env;
const tools = [{ type: "function", function: { name: "look", parameters: { type: "object", properties: { key: { type: "string" } } } } }];
const messages = [{ role: "user", content: require("node:fs").readFileSync(0, "utf8") }];
(async () => {
  for (;;) {
    const response = await fetch(base + "/chat/completions", {
      method: "POST",
      headers: { authorization: "Bearer " + key },
      body: JSON.stringify({ model, messages, tools }),
    });
    const { message } = (await response.json()).choices[0];
    messages.push(message);
    if (!message.tool_calls) return console.log(message.content);
    for (const call of message.tool_calls)
      messages.push({ role: "tool", tool_call_id: call.id, content: JSON.parse(call.function.arguments).key.toUpperCase() });
  }
})();
`;

test("many agents at once, each a process: every one is exact", async () => {
  const many = Number(process.env["WHET_AGENTS"] || 6);
  policy.answers = answers;
  policy.prompts.length = 0;
  const cwd = newFolder();
  writeFileSync(join(cwd, "agent.cjs"), processAgent);
  const lag = monitorEventLoopDelay({ resolution: 10 });
  lag.enable();
  let most = 0;
  const agent = environment({
    problems: [{ id: "p", prompt: "Find it." }],
    async run({ endpoint, problem, signal }) {
      const run = { command: "node agent.cjs", cwd, sandbox: false, files: {}, input: problem.prompt };
      const { stdout, stderr } = await runAgent({ ...run, endpoint, signal });
      most = Math.max(most, process.memoryUsage().rss);
      if (stderr !== "") throw new Error(stderr);
      return stdout;
    },
    reward: ({ text }) => Number(text.includes("right")),
  });
  const started = performance.now();
  const { events } = await policy.train(agent, {
    config: { seed: 3, completions_per_prompt: many, episode_timeout: 900 },
  });
  const graded = eventsNamed(events, "graded");
  expect(graded).toHaveLength(many);
  for (const { grade } of graded)
    expect(grade.episode).toMatchObject({ stop: "done", turns: [0, 1, 2, 3, 4], rewrites: [], diverged: 0 });
  const [done] = eventsNamed(events, "step-done");
  expect(done!.metrics["n_datums"]).toBe(many);
  expect(Math.abs(done!.metrics["optim/kl_sample_train_v1"]!)).toBeLessThan(1e-6);
  if (process.env["WHET_AGENTS"])
    console.log(
      `${many} agents: ${((performance.now() - started) / 1000).toFixed(1)} s, ${Math.round(most / 2 ** 20)} MiB in this process, event loop held up ${(lag.percentile(99) / 1e6).toFixed(0)} ms (p99), ${(lag.max / 1e6).toFixed(0)} ms (most)`,
    );
});
