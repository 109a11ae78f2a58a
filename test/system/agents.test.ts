// Agents as people have them, written with the newest clients of their registries: five answers with tools become one sequence, each
// sampled token is trained once, and the trainer's log-probabilities are the sampler's.
import { afterAll, beforeAll, expect, test } from "vitest";
import { environment } from "whetstone/rl";
import { readableRun, readBatch, turnTokens } from "../../src/runs/batch.ts";
import { type Agent, agents, pythonAgent } from "../support/agents.ts";
import { eventsNamed } from "../support/environment-runs.ts";
import { clientPackages } from "../support/npm-packages.ts";
import { called, lastSaid, type ScriptedPolicy, scriptedPolicy } from "../support/scripted-policy.ts";
import { openVenv } from "../support/venv.ts";

let policy: ScriptedPolicy;
beforeAll(async () => {
  policy = await scriptedPolicy();
});
afterAll(() => policy.close());

/** Thinks, calls twice at once, then twice more and once with odd arguments, and answers: five answers. */
function answers(prompt: string): string[] {
  const said = lastSaid(prompt);
  if (said.includes("GAMMA")) return [called("look", '{ "key":"delta" }')];
  if (said.includes("DELTA")) return [`Once more.\n${called("look", '{"key": "\\u00e9\\n"}')}`];
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
      return Number(text.includes("right"));
    },
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
  const venv = await openVenv(["openai==3.51.0"]);
  if ("missing" in venv) return console.warn(`not compared: ${venv.missing}`);
  expectExact(await train(pythonAgent(venv.python)));
});
