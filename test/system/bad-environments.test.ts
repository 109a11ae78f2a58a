// Environments that misbehave in every way that one can in this process: each comes to a clear end, and of the others nothing is lost.
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Episode, environment, type Tool, type ToolSet, type TrainSettings, Unavailable } from "whetstone/rl";
import type { Grade } from "../../src/runs/events.ts";
import { eventsNamed } from "../support/environment-runs.ts";
import { called, type ScriptedPolicy, scriptedPolicy } from "../support/scripted-policy.ts";

let policy: ScriptedPolicy;
beforeAll(async () => {
  policy = await scriptedPolicy();
});
afterAll(() => policy.close());

type Problem = { id: string; prompt: string };
const problems = [{ id: "p", prompt: "?" }];

/** One of eight episodes does what it should not; the step is trained on the other seven. */
async function oneBad(
  bad: (episode: Episode<Problem>) => unknown,
  { config, tools }: { config?: TrainSettings; tools?: (problem: Problem) => ToolSet } = {},
): Promise<Grade> {
  let begun = 0;
  let isBad = true;
  const first = new WeakMap<object, number>();
  const mixed = environment({
    problems,
    tools,
    async run(episode) {
      first.set(episode, begun++);
      const reply = await episode.chat.reply();
      // Attempts of one episode come with the same answer: the bad one is whichever began first.
      if (isBad && first.get(episode) === 0) return (await bad(episode)) as number;
      return reply.turn + episode.random();
    },
  });
  const { events } = await policy.train(mixed, { config: { completions_per_prompt: 8, ...config } });
  isBad = false;
  const grades = eventsNamed(events, "graded").map(({ grade }) => grade);
  expect(grades).toHaveLength(8);
  const [submitted] = eventsNamed(events, "update-submitted");
  const left = grades.filter(({ verdict }) => verdict === "ungraded");
  expect(submitted!.groups[0]!.trained).toHaveLength(8 - left.length);
  expect(eventsNamed(events, "stopped").at(-1)!.outcome).toBe("finished");
  return left[0] ?? grades.find(({ reward }) => reward! <= 0 || reward! > 2)!;
}

test.each<[string, (episode: Episode<Problem>) => unknown, string, RegExp]>([
  [
    "throws",
    () => Promise.reject(new Error("no such page")),
    "error",
    /^no such page \(.*bad-environments\.test\.ts:\d+:\d+\)$/,
  ],
  ["throws what is no error", () => Promise.reject("no page"), "error", /^no page$/],
  ["reads what is not there", ({ problem }) => (problem as never as { a: { b: 1 } }).a.b, "error", /reading 'b'/],
  [
    "says what is no text",
    ({ chat }) => chat.user(undefined as never),
    "error",
    /^chat\.user was given undefined: give text/,
  ],
  ["never ends", () => new Promise(() => {}), "timeout", /^the episode took longer than 1 s$/],
  ["ends too late", () => new Promise((resolve) => setTimeout(resolve, 3000, 5)), "timeout", /longer than 1 s/],
])("one that %s is left out, counted and quoted", async (_, bad, status, message) => {
  const grade = await oneBad(bad, { config: { episode_timeout: 1 } });
  expect(grade).toMatchObject({ verdict: "ungraded", status, reward: null });
  expect(grade.message).toMatch(message);
});

test.each<[string, () => unknown, RegExp]>([
  ["NaN", () => Number.NaN, /run gave NaN for problem "p"\. Return a finite number/],
  ["infinity", () => Number.NEGATIVE_INFINITY, /run gave -Infinity for problem "p"/],
  ["text", () => "1", /run gave 1 for problem "p"/],
  ["nothing", () => undefined, /run gave undefined for problem "p"/],
  [
    "a metric that is none",
    () => ({ reward: 1, metrics: { a: Number.NaN } }),
    /run gave metrics\.a=NaN for problem "p"/,
  ],
])("a verdict that is %s ends the run: no other episode would fare better", async (_, give, message) => {
  const wrong = environment({ problems, run: async () => give() as number });
  await expect(policy.train(wrong)).rejects.toMatchObject({
    code: "rl/bad-reward",
    message: expect.stringMatching(message),
  });
});

test("where all throw the run ends with what they said, and goes on when it is mended", async () => {
  let isBroken = true;
  const broken = environment({
    problems,
    async run({ chat, random }) {
      await chat.reply();
      if (isBroken) throw new TypeError("the page is gone");
      return random();
    },
  });
  const path = `${(await policy.train(broken).catch((error: Error) => error)) as Error}`;
  expect(path).toMatch(
    /no reward for 100% of the completions of step 0, for example: the page is gone \(.*bad-environments/,
  );
  isBroken = false;
  const { events } = await policy.train(broken);
  expect(eventsNamed(events, "step-done")).toHaveLength(1);
});

test("an outage is begun again with the same answers, and left out where that does not help", async () => {
  let times = 0;
  const away = environment({
    problems,
    async run({ chat, random }) {
      await chat.reply();
      if (times++ < 1) throw new Unavailable("the shop is closed");
      return random();
    },
  });
  const { events } = await policy.train(away);
  expect(eventsNamed(events, "graded").map(({ grade }) => grade.verdict)).not.toContain("ungraded");
  expect(eventsNamed(events, "turn-sampled")).toHaveLength(0);
  expect(times).toBe(5);
});

test("what floods the log is cut, and said to be", async () => {
  const grade = await oneBad(({ log }) => {
    for (let index = 0; index < 20_000; index++) log(`entry ${index}`, "x".repeat(10_000));
    for (let index = 0; index < 20_000; index++) log(`number ${index}`, index);
    return -1;
  });
  const { log, metrics } = grade.episode!;
  expect(Object.keys(log)).toHaveLength(65);
  expect(log["…"]).toBe("39872 more entries were left out: 64 names are kept");
  expect(Object.keys(metrics)).toHaveLength(64);
  expect(JSON.stringify(grade).length).toBeLessThan(400_000);
});

test("a megabyte from a tool does not fit the window: the episode ends there, and what was said before counts", async () => {
  policy.answers = () => [called("read", "{}")];
  const tools = { read: { description: "", execute: () => "line\n".repeat(200_000) } };
  const reader = environment({ problems, tools, reward: ({ stop }) => (stop === "context" ? 1 : 0) });
  const { events } = await policy.train(reader, { config: { context_window: 20_000 } });
  for (const { grade } of eventsNamed(events, "graded")) {
    expect(grade).toMatchObject({ verdict: "pass", reward: 1 });
    expect(grade.episode).toMatchObject({ stop: "context", toolCalls: 1, turns: [0] });
  }
});

/** What a model with a tool `open` does: it opens, saves where it may, and says that it is done. */
const openThenSave = (prompt: string): string[] => {
  if (!prompt.includes("it is open")) return [called("open", "{}")];
  return [prompt.includes("<tool_response>\nit is saved") ? "Done." : called("save", '{"as": "a"}')];
};
const schema = (...names: string[]) => ({
  type: "object",
  properties: Object.fromEntries(names.map((name) => [name, { type: "string" }])),
});
const save = { description: "Saves.", inputSchema: schema("as"), execute: () => "it is saved" };

test.each<[string, (tools: Record<string, Tool>) => void, string, string]>([
  ["gains a tool", (tools) => Object.assign(tools, { save }), "save added", "Done."],
  [
    "renames its tool",
    (tools) => {
      tools["save"] = { ...save, description: tools["open"]!.description };
      delete tools["open"];
    },
    "save added; open removed",
    "Done.",
  ],
  [
    "changes a schema in its place",
    (tools) => {
      (tools["open"]!.inputSchema as ReturnType<typeof schema>).properties["page"] = { type: "number" };
    },
    "open changed",
    "",
  ],
])(
  "a tool that %s on the way: a new sequence, which says why, and the model may call what it was told of",
  async (...given) => {
    const [, change, reason, text] = given;
    policy.answers = (prompt) => openThenSave(prompt);
    const tools = () => {
      const own: Record<string, Tool> = {
        open: {
          description: "Opens.",
          inputSchema: schema("name"),
          execute: () => {
            change(own);
            return "it is open";
          },
        },
      };
      return own;
    };
    let ended = "?";
    const changing = environment({
      problems,
      tools,
      maxTurns: 3,
      reward: (ending) => {
        ended = ending.text;
        return ending.messages.length + Math.random();
      },
    });
    const { events } = await policy.train(changing);
    for (const { grade } of eventsNamed(events, "graded"))
      expect(grade.episode).toMatchObject({ turns: [0, 1, 2], rewrites: [`the list of tools is another: ${reason}`] });
    expect(ended).toBe(text);
    expect(policy.prompts.at(-1)!.split("Tools:")).toHaveLength(2);
    // Both sequences are trained on, and the trainer finds in them what was sampled.
    const { metrics } = eventsNamed(events, "step-done")[0]!;
    expect(Math.abs(metrics["optim/kl_sample_train_v1"]!)).toBeLessThan(1e-6);
  },
);

test("a megabyte from a tool that does fit is read and answered", async () => {
  policy.answers = (prompt) => [prompt.includes("line\n".repeat(9)) ? "Long." : called("read", "{}")];
  const tools = { read: { execute: () => "line\n".repeat(200_000) } };
  const reader = environment({
    problems,
    tools,
    reward: ({ text, messages }) => text.length + messages[2]!.content.length,
  });
  const { events } = await policy.train(reader, { config: { context_window: 2_000_000, completions_per_prompt: 2 } });
  for (const { grade } of eventsNamed(events, "graded")) {
    expect(grade.reward).toBe(1_000_005);
    expect(grade.episode).toMatchObject({ stop: "done", rewrites: [], turns: [0, 1] });
  }
});

test("tools that all episodes have in common may not change: the run says which did, and goes on when that is mended", async () => {
  policy.answers = (prompt) => openThenSave(prompt);
  const tools: Record<string, Tool> = {
    open: {
      execute: () => {
        tools["save"] = save;
        return "it is open";
      },
    },
  };
  const shared = environment({
    problems,
    tools,
    // Whatever an environment makes of it.
    run: async ({ chat }) => {
      try {
        for await (const _ of chat);
      } catch {}
      return 0;
    },
  });
  await expect(policy.train(shared)).rejects.toMatchObject({
    code: "rl/bad-tool",
    message: expect.stringMatching(/no longer what they were: save added\. Make them for each episode/),
  });
});

test.each<[string, unknown, RegExp]>([
  ["a function", () => "", /The tool "read" is a function. Give \{ description/],
  ["nothing", undefined, /The tool "read" is undefined/],
  ["executed by text", { execute: "read" }, /The tool "read" has execute="read". Give a function/],
  ["described by a list", { description: [] }, /The description of the tool "read" is \[\]/],
])("a tool that is %s ends the run before anything is sampled", async (_, tool, message) => {
  const asked = policy.prompts.length;
  const wrong = environment({ problems, tools: { read: tool } as ToolSet, reward: () => 1 });
  await expect(policy.train(wrong)).rejects.toMatchObject({
    code: "rl/bad-tool",
    message: expect.stringMatching(message),
  });
  expect(policy.prompts).toHaveLength(asked);
});

/** WHET_TURNS=1000 plays more. */
const manyTurns = Number(process.env["WHET_TURNS"] ?? 150);

test(`${manyTurns} turns are as many as the window has room for, or as the run allows`, async () => {
  policy.answers = () => ["ok"];
  const talker = environment({
    problems,
    maxTurns: manyTurns,
    async run({ chat, random }) {
      for await (const _ of chat) chat.user("on");
      return random();
    },
  });
  const played = async (config: TrainSettings) => {
    const { events } = await policy.train(talker, {
      config: { completions_per_prompt: 2, max_tokens: 8, min_generation: 8, ...config },
    });
    return eventsNamed(events, "graded").map(({ grade: { episode } }) => [episode!.stop, episode!.turns.length]);
  };
  expect(await played({})).toEqual([
    ["max_turns", manyTurns],
    ["max_turns", manyTurns],
  ]);
  for (const [stop, turns] of await played({ context_window: 2_000 })) {
    expect(stop).toBe("context");
    expect(turns).toBeGreaterThan(40);
  }
});
