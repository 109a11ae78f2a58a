// What clients do with a conversation, one test each: what is trained is what was sampled, once, in as few sequences as the chat format
// allows, and what nobody got is not trained.
import { request as httpRequest } from "node:http";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { type Endpoint, environment } from "whetstone/rl";
import {
  type Body,
  gate,
  type Message,
  openai,
  play as playEpisodes,
  post,
  say,
  tool,
  user,
} from "../support/endpoint-episodes.ts";
import { eventsNamed, newFolder } from "../support/environment-runs.ts";
import { called, lastSaid, type ScriptedPolicy, scriptedPolicy } from "../support/scripted-policy.ts";

let policy: ScriptedPolicy;
beforeAll(async () => {
  policy = await scriptedPolicy();
});
afterAll(() => policy.close());
afterEach(() => {
  policy.answers = () => ["."];
  policy.before = undefined;
  policy.prompts.length = 0;
});

const play = (...given: Parameters<typeof playEpisodes> extends [unknown, ...infer Rest] ? Rest : never) =>
  playEpisodes(policy, ...given);

test("arguments spelled otherwise, calls and results in another order, content as parts: one sequence", async () => {
  const number = '{ "b" : 12345678901234567890, "a": 1.0, "c": "\\u00e9" }';
  policy.answers = (prompt) =>
    prompt.includes("tool_response") ? ["Done."] : [`So:\n${called("f", number)}\n${called("g", "{}")}`];
  const tools = [tool("f"), tool("g")];
  const { episodes, sequences } = await play(async ({ endpoint }) => {
    const answer = await say(endpoint, [user("?")], { tools });
    // As the model spelled its numbers: a client that knows larger ones loses nothing.
    expect(answer.tool_calls[0].function.arguments).toBe('{"b": 12345678901234567890, "a": 1.0, "c": "é"}');
    const [f, g] = answer.tool_calls;
    f.function.arguments = '{"c":"\\u00E9","a":1,"b":12345678901234567890}';
    const results = [
      { role: "tool", tool_call_id: g.id, content: "of g" },
      { role: "tool", tool_call_id: f.id, content: [{ type: "text", text: "of f" }] },
    ];
    const again = { role: "assistant", content: [{ type: "text", text: "So:" }], tool_calls: [g, f] };
    await say(endpoint, [user("?"), again, ...results], { tools });
  });
  expect(episodes[0]).toMatchObject({ turns: [0, 1], rewrites: [], toolCalls: 2 });
  expect(sequences).toBe(1);
  expect(policy.prompts.at(-1)).toMatch(/of f[\s\S]*of g/);
});

test("reasoning that a client drops, or moves into the text, is still what the model reads", async () => {
  policy.answers = () => ["<think>\nThe reason.\n</think>\n\nSo."];
  const { sequences, episodes } = await play(async ({ endpoint }) => {
    const first = await say(endpoint, [user("?")]);
    expect(first).toEqual({ role: "assistant", content: "So.", reasoning_content: "The reason." });
    const dropped = [user("?"), { role: "assistant", content: "So." }, user("And?")];
    await say(endpoint, dropped);
    await say(endpoint, [
      ...dropped,
      { role: "assistant", content: "<think>\nThe reason.\n</think>\n\nSo." },
      user("And then?"),
    ]);
  });
  expect(episodes[0]).toMatchObject({ turns: [0, 1, 2], rewrites: [] });
  expect(sequences).toBe(1);
  expect(policy.prompts.at(-1)!.match(/The reason/g)).toHaveLength(2);
});

test("several conversations in one episode are a sequence each", async () => {
  policy.answers = () => ["One.", "Two."];
  const { episodes, sequences } = await play(async ({ endpoint }) => {
    const talk = async () => {
      const answer = await say(endpoint, [user("?")]);
      await say(endpoint, [user("?"), answer, user("And?")]);
    };
    await Promise.all([talk(), talk(), talk()]);
  });
  expect(episodes[0]!.turns).toHaveLength(6);
  expect(sequences).toBe(3);
});

test("a compacted conversation begins anew; its summary was sampled, and is trained", async () => {
  policy.answers = (prompt) => [lastSaid(prompt).includes("Sum up") ? "All is well." : "Go on."];
  const { episodes, sequences } = await play(async ({ endpoint }) => {
    const first = await say(endpoint, [user("?")]);
    const summary = await say(endpoint, [user("?"), first, user("Sum up.")]);
    await say(endpoint, [user(`So far: ${summary.content}`)]);
  });
  expect(episodes[0]).toMatchObject({ turns: [0, 1, 2], rewrites: [] });
  expect(sequences).toBe(2);
});

test("a retry while the first request runs gets its answer: it is sampled once", async () => {
  let begun = 0;
  let second: ReturnType<typeof gate>;
  const { episodes } = await play(async ({ endpoint }) => {
    const first = await say(endpoint, [user("?")]);
    // Both episodes have their first answers before either asks for more.
    if (begun++ === 0) second = gate(policy, 2);
    const patience = new AbortController();
    const conversation = [user("?"), first, user("And?")];
    const late = post(endpoint, conversation, {}, { signal: patience.signal });
    await second.reached;
    patience.abort();
    await expect(late).rejects.toThrow();
    const retry = say(endpoint, conversation);
    second.open();
    await retry;
  });
  expect(episodes.map(({ turns }) => turns)).toEqual([
    [0, 1],
    [0, 1],
  ]);
  // Two episodes of two answers each, and no third.
  expect(policy.prompts).toHaveLength(4);
  expect(episodes[0]!.metrics).toMatchObject({
    "endpoint/retries": 1,
    "endpoint/answers": 2,
    "endpoint/lost_tokens": 0,
  });
});

test("an answer that nobody waited for is not trained", async () => {
  const patience = new AbortController();
  const { episodes, events } = await play(async ({ endpoint }) => {
    const first = await say(endpoint, [user("?")]);
    policy.before ??= () => patience.abort();
    await expect(post(endpoint, [user("?"), first, user("Lost.")], {}, { signal: patience.signal })).rejects.toThrow();
    await say(endpoint, [user("?"), first, user("Kept.")]);
  });
  const turns = eventsNamed(events, "turn-sampled");
  const said = (sample: number, turn: number) =>
    turns.find((one) => one.sample === sample && one.turn === turn)!.added[0]!.content;
  expect(turns.length).toBeGreaterThan(2);
  expect(episodes.some(({ metrics }) => metrics["endpoint/lost_tokens"]! > 0)).toBe(true);
  for (const [sample, { turns: counted }] of episodes.entries()) {
    expect(counted).toHaveLength(2);
    expect(said(sample, counted[1]!)).toBe("Kept.");
  }
});

test("after its end an episode answers nobody, and says so", async () => {
  let left: Endpoint | undefined;
  await play(async ({ endpoint }) => {
    await say(endpoint, [user("?")]);
    left = endpoint;
  });
  const { status, body } = await post(left!, [user("?")]);
  expect([status, body.error.code]).toEqual([400, "ended"]);
  const client = await openai(left!);
  if (client) await expect(client.models.list()).rejects.toThrow(/400 The episode of this address has ended/);
});

test("another list of tools begins a sequence, and the reason is written down", async () => {
  const { episodes, sequences } = await play(async ({ endpoint }) => {
    const first = await say(endpoint, [user("?")], { tools: [tool("f")] });
    await say(endpoint, [user("?"), first, user("And?")], { tools: [tool("f"), tool("g")] });
  });
  expect(episodes[0]).toMatchObject({ turns: [0, 1], rewrites: ["the list of tools is another: g added"] });
  expect(sequences).toBe(2);
});

test('"continue" after a cut answer begins a sequence with what was said', async () => {
  policy.answers = (prompt) => [prompt.includes("Go on") ? " four." : "One, two, three,"];
  const { episodes, sequences } = await play(async ({ endpoint }) => {
    const { body } = await post(endpoint, [user("Count.")], { max_tokens: 4 });
    const { message, finish_reason: reason } = body.choices[0];
    expect([message.content, reason]).toEqual(["One,", "length"]);
    await say(endpoint, [user("Count."), message, user("Go on.")]);
  });
  expect(episodes[0]).toMatchObject({ rewrites: ["the answer ended without its end-of-turn token"] });
  expect(sequences).toBe(2);
});

test("a call that cannot be read is text, and so is one that is only quoted", async () => {
  policy.answers = (prompt) => [
    prompt.includes("Again") ? "‹tool_call›{}‹/tool_call›" : '<tool_call>\n{"name": f}\n</tool_call>',
  ];
  const { episodes, sequences } = await play(async ({ endpoint }) => {
    const broken = await say(endpoint, [user("?")], { tools: [tool("f")] });
    expect(broken.content).toContain('{"name": f}');
    const conversation = [user("?"), broken, user("Again.")];
    const quoted = await say(endpoint, conversation, { tools: [tool("f")] });
    expect(quoted).toEqual({ role: "assistant", content: "<tool_call>{}</tool_call>" });
    await say(endpoint, [...conversation, quoted, user("Again.")], { tools: [tool("f")] });
  });
  expect(episodes[0]).toMatchObject({ turns: [0, 1, 2], rewrites: [], malformed: 1, toolCalls: 0 });
  expect(sequences).toBe(1);
});

test("a clock in the system prompt begins a sequence at each answer, and the reason is written down", async () => {
  const { episodes, sequences } = await play(async ({ endpoint }) => {
    let conversation: Message[] = [];
    for (const second of [1, 2, 3]) {
      conversation = [...conversation, user("?")];
      const answer = await say(endpoint, [{ role: "system", content: `It is 12:00:0${second}.` }, ...conversation]);
      conversation.push(answer);
    }
  });
  expect(episodes[0]!.rewrites).toEqual(Array(2).fill("the system message is another"));
  expect(episodes[0]!.metrics).toMatchObject({
    "endpoint/system_changed": 2,
    "endpoint/answers": 3,
    "endpoint/lost_tokens": 0,
  });
  expect(sequences).toBe(3);
});

test("a changed message begins a sequence, and is counted for the diagnosis", async () => {
  const { episodes, sequences } = await play(async ({ endpoint }) => {
    const first = await say(endpoint, [user("?")]);
    await say(endpoint, [user("? (at last)"), first, user("And?")]);
  });
  expect(episodes[0]!.rewrites).toEqual(["an earlier user message was changed"]);
  expect(episodes[0]!.metrics).toMatchObject({ "endpoint/changed": 1, "endpoint/system_changed": 0 });
  expect(sequences).toBe(2);
});

test("/models first, another model's name, and a stream with usage", async () => {
  const { episodes } = await play(async ({ endpoint }) => {
    const client = await openai(endpoint);
    if (!client) return void (await say(endpoint, [user("?")], { model: "gpt-5", temperature: 0.2 }));
    const { data } = await client.models.list();
    expect(data.map(({ id }: { id: string }) => id)).toEqual([endpoint.model]);
    const asked = { model: "gpt-5", temperature: 0.2, messages: [user("?")] };
    const stream = await client.chat.completions.create({
      ...asked,
      stream: true,
      stream_options: { include_usage: true },
    });
    let text = "";
    let usage: Body;
    for await (const chunk of stream) {
      text += chunk.choices[0]?.delta.content ?? "";
      usage = chunk.usage ?? usage;
    }
    const { choices, usage: whole } = await client.chat.completions.create(asked);
    expect([text, usage]).toEqual([choices[0].message.content, whole]);
    expect(usage.completion_tokens).toBe(2);
  });
  expect(episodes[0]!.log).toMatchObject({
    "endpoint/model": expect.stringContaining("gpt-5"),
    "endpoint/temperature": "the agent asks for 0.2; the run's holds (temperature=1)",
  });
});

test("an agent that was killed in the middle is run again, and what was answered is not sampled again", async () => {
  policy.answers = () => ["One.", "Two."];
  const cancel = new AbortController();
  let asked = 0;
  const heard: string[][] = [];
  const run = async ({ endpoint }: { endpoint: Endpoint }) => {
    const own: string[] = [];
    heard.push(own);
    let conversation: Message[] = [];
    for (const question of ["?", "And?", "And then?"]) {
      conversation = [...conversation, user(question)];
      const answer = await say(endpoint, conversation);
      own.push(answer.content);
      conversation.push(answer);
    }
  };
  const one = environment<{ id: string; prompt: string }>({
    problems: [{ id: "p", prompt: "?" }],
    run: (episode) => run(episode).then(() => episode.random()),
  });
  // The first prompts are one request; the run is cut off while both episodes wait for their third answers.
  policy.before = () => {
    if (++asked === 4) cancel.abort(new Error("cut off"));
  };
  const config = { completions_per_prompt: 2 };
  const path = `${newFolder()}/run`;
  await expect(policy.train(one, { config, path, cancel: cancel.signal })).rejects.toThrow("cut off");
  const before = heard.map((own) => [...own]);
  policy.before = undefined;
  const { events } = await policy.train(one, { config, path });
  expect(heard.slice(2).map((own, sample) => own.slice(0, before[sample]!.length))).toEqual(before);
  const turns = eventsNamed(events, "turn-sampled").map(({ sample, turn }) => `${sample} ${turn}`);
  expect(turns.toSorted()).toEqual(["0 1", "0 2", "1 1", "1 2"]);
  for (const { grade } of eventsNamed(events, "graded"))
    expect(grade.episode).toMatchObject({ turns: [0, 1, 2], diverged: 0 });
});

test("what an episode cannot do is refused with a sentence, and its limits end it", async () => {
  const { episodes, metrics } = await play(
    async ({ endpoint }) => {
      const codes: unknown[] = [];
      for (const more of [{ n: 2 }, { logprobs: true }, { stop: ["."] }, { tool_choice: "required" }]) {
        const { status, body } = await post(endpoint, [user("?")], more);
        codes.push([status, body.error.code]);
      }
      expect(codes).toEqual([
        [400, "n"],
        [400, "logprobs"],
        [400, "stop"],
        [400, "tool_choice"],
      ]);
      await say(endpoint, [user("?")]);
      const { status, body } = await post(endpoint, [user("x ".repeat(40_000))]);
      expect([status, body.error.code]).toEqual([400, "context_length_exceeded"]);
      const { body: responses } = await fetch(`${endpoint.baseURL}/responses`, {
        method: "POST",
        headers: { authorization: `Bearer ${endpoint.apiKey}` },
      }).then(async (response) => ({ body: (await response.json()) as Body }));
      expect(responses.error.message).toContain("a client of the responses API has a setting for chat completions");
    },
    { context_window: 4096 },
  );
  expect(episodes.map(({ stop }) => stop)).toEqual(["context", "context"]);
  expect(metrics["episode/stop/context"]).toBe(1);
});

test("an agent that never stops is stopped after max_turns, and its end is judged", async () => {
  const loop = environment({
    problems: [{ id: "p", prompt: "?" }],
    maxTurns: 3,
    async run({ endpoint }) {
      for (;;) await say(endpoint, [user("?")]);
    },
    reward: ({ turns, stop, text }) => turns + Number(stop === "max_turns") + text.length / 100,
  });
  policy.answers = () => ["One.", "Three."];
  const { events } = await policy.train(loop, { config: { completions_per_prompt: 2 } });
  for (const { grade } of eventsNamed(events, "graded")) {
    expect(grade.episode).toMatchObject({ stop: "max_turns", turns: [0, 1, 2] });
    expect(Math.floor(grade.reward!)).toBe(4);
  }
});

test("whoever has not the secret, a page in a browser, and a name that leads here get nothing", async () => {
  await play(async ({ endpoint }) => {
    const { baseURL, apiKey } = endpoint;
    const models = (url: string, headers: Record<string, string>): Promise<number> =>
      new Promise((resolve, reject) => {
        const request = httpRequest(`${url}/models`, { headers }, (response) => resolve(response.resume().statusCode!));
        request.on("error", reject).end();
      });
    const authorization = `Bearer ${apiKey}`;
    const other = baseURL.replace(apiKey, "A".repeat(apiKey.length));
    expect(await models(baseURL, { authorization })).toBe(200);
    expect(await models(baseURL, {})).toBe(401);
    expect(await models(baseURL, { authorization: `${authorization}x` })).toBe(401);
    expect(await models(other, { authorization })).toBe(401);
    expect(await models(new URL("/v1", baseURL).href, { authorization })).toBe(401);
    expect(await models(baseURL, { authorization, origin: "https://example.com" })).toBe(403);
    expect(await models(baseURL, { authorization, "sec-fetch-site": "cross-site" })).toBe(403);
    expect(await models(baseURL, { authorization, host: "example.com" })).toBe(403);
    await say(endpoint, [user("?")]);
  });
});
