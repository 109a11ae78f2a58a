// What the Vercel AI SDK and openai-node do to a conversation by themselves, with the packages as they are: agent loops that compact, that
// change their tools and their system prompt, retries, streams that nobody reads to their end.
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import type { Endpoint, Episode } from "whetstone/rl";
import { aiModel, aiTools } from "../support/agents.ts";
import { type Body, gate, openai, play, user } from "../support/endpoint-episodes.ts";
import { clientPackages, importFrom } from "../support/npm-packages.ts";
import { called, lastSaid, type ScriptedPolicy, scriptedPolicy } from "../support/scripted-policy.ts";

let policy: ScriptedPolicy;
let folder: string;
let ai: Body;
beforeAll(async () => {
  policy = await scriptedPolicy();
  const packages = await clientPackages();
  if ("missing" in packages) return console.warn(`not run: ${packages.missing}`);
  folder = packages.folder;
  ai = await importFrom<Body>(folder, "ai");
});
afterAll(() => policy.close());
afterEach(() => {
  policy.answers = () => ["."];
  policy.before = undefined;
  policy.prompts.length = 0;
});

const episodesOf = async (run: (episode: Episode<{ id: string; prompt: string }>) => Promise<unknown>) =>
  ai ? play(policy, run) : undefined;

/** An agent loop of the AI SDK that looks things up until it knows, as its documentation writes it; `more` is what it changes by itself. */
async function loop(endpoint: Endpoint, more: object): Promise<Body> {
  const { generateText, isStepCount } = ai;
  const tools = { ...aiTools(ai, (key) => key.toUpperCase()), other: aiTools(ai, (key) => key).look };
  const model = await aiModel(folder, endpoint);
  return generateText({ model, tools, prompt: "Find it.", stopWhen: isStepCount(5), ...more });
}

/** Looks up alpha, then beta, then knows. */
const finds = (prompt: string): string[] => {
  const said = lastSaid(prompt);
  if (said.includes("BETA")) return ["Found."];
  return [called("look", JSON.stringify({ key: said.includes("ALPHA") ? "beta" : "alpha" }))];
};

test("an agent loop that compacts its messages begins a sequence, and its summary is trained", async () => {
  policy.answers = finds;
  const prepareStep = ({ stepNumber }: { stepNumber: number }) =>
    stepNumber === 2 ? { messages: [user("So far: ALPHA, BETA.")] } : {};
  const played = await episodesOf(async ({ endpoint }) =>
    expect((await loop(endpoint, { prepareStep })).text).toBe("Found."),
  );
  if (!played) return;
  expect(played.episodes[0]).toMatchObject({ turns: [0, 1, 2], rewrites: [], toolCalls: 2 });
  expect(played.sequences).toBe(2);
});

test("an agent loop that changes its tools begins a sequence, and the reason is written down", async () => {
  policy.answers = finds;
  const prepareStep = ({ stepNumber }: { stepNumber: number }) => ({
    activeTools: stepNumber === 0 ? ["look", "other"] : ["look"],
  });
  const played = await episodesOf(({ endpoint }) => loop(endpoint, { prepareStep }));
  if (!played) return;
  expect(played.episodes[0]).toMatchObject({
    turns: [0, 1, 2],
    rewrites: ["the list of tools is another: other removed"],
  });
  expect(played.sequences).toBe(2);
});

test("an agent loop with a clock in its system prompt begins a sequence at each answer", async () => {
  policy.answers = finds;
  const prepareStep = ({ stepNumber }: { stepNumber: number }) => {
    const system = `It is 12:00:0${stepNumber}.`;
    return { system, instructions: system };
  };
  const played = await episodesOf(({ endpoint }) => loop(endpoint, { prepareStep }));
  if (!played) return;
  expect(played.episodes[0]!.rewrites).toEqual(Array(2).fill("the system message is another"));
  expect(played.episodes[0]!.metrics).toMatchObject({ "endpoint/system_changed": 2, "endpoint/answers": 3 });
  expect(played.sequences).toBe(3);
});

test("several agent loops side by side in one episode are a sequence each", async () => {
  policy.answers = finds;
  const played = await episodesOf(({ endpoint }) => Promise.all([1, 2, 3].map(() => loop(endpoint, {}))));
  if (!played) return;
  expect(played.episodes[0]).toMatchObject({ rewrites: [], toolCalls: 6 });
  expect(played.episodes[0]!.turns).toHaveLength(9);
  expect(played.sequences).toBe(3);
});

test("an answer that is cut, gone on with; a call that cannot be read, and one that is quoted: text that the AI SDK gives back", async () => {
  policy.answers = (prompt) =>
    prompt.includes("Quote")
      ? ["‹tool_call›{}‹/tool_call›"]
      : [prompt.includes("Call") ? '<tool_call>\n{"name": f}\n</tool_call>' : "One, two, three,"];
  const played = await episodesOf(async ({ endpoint }) => {
    const { generateText } = ai;
    const model = await aiModel(folder, endpoint);
    const tools = aiTools(ai, (key) => key);
    const cut = await generateText({ model, tools, prompt: "Count.", maxOutputTokens: 4 });
    expect([cut.text, cut.finishReason]).toEqual(["One,", "length"]);
    const messages: Body[] = [user("Count."), ...cut.response.messages, user("Call.")];
    const broken = await generateText({ model, tools, messages });
    expect(broken.text).toContain('{"name": f}');
    messages.push(...broken.response.messages, user("Quote."));
    const quoted = await generateText({ model, tools, messages });
    expect([quoted.text, quoted.toolCalls]).toEqual(["<tool_call>{}</tool_call>", []]);
    await generateText({ model, tools, messages: [...messages, ...quoted.response.messages, user("Quote again.")] });
  });
  if (!played) return;
  expect(played.episodes[0]).toMatchObject({
    turns: [0, 1, 2, 3],
    rewrites: ["the answer ended without its end-of-turn token"],
    malformed: 1,
    toolCalls: 0,
  });
  expect(played.sequences).toBe(2);
});

/** Requests of a client of which the first one's connection breaks when it is under way, as a proxy's restart does. */
function breaking(begun: () => Promise<void>, again: () => void): typeof fetch {
  let asked = 0;
  return async (url, init) => {
    if (asked++ > 0) {
      const retried = fetch(url, init);
      again();
      return retried;
    }
    const broken = new AbortController();
    const first = fetch(url, { ...init, signal: broken.signal });
    await begun();
    broken.abort();
    await first.catch(() => {});
    throw new TypeError("fetch failed", { cause: Object.assign(new Error("read ECONNRESET"), { code: "ECONNRESET" }) });
  };
}

test.each(["openai", "ai"])("%s asks again by itself where its connection broke: it is sampled once", async (name) => {
  if (!ai) return;
  // One episode's request at a time: the equal first prompts of a group are one.
  const { reached, open } = gate(policy, 1);
  const played = await play(policy, async ({ endpoint }) => {
    const own = breaking(() => reached, open);
    if (name === "openai") {
      const client = await openai(endpoint, { fetch: own });
      await client.chat.completions.create({ model: endpoint.model, messages: [user("?")] });
    } else await ai.generateText({ model: await aiModel(folder, endpoint, { fetch: own }), prompt: "?" });
  });
  expect(played.episodes.map(({ turns }) => turns)).toEqual([[0], [0]]);
  // One answer for each of the two episodes, and no third.
  expect(policy.prompts).toHaveLength(2);
  for (const { metrics } of played.episodes)
    expect(metrics).toMatchObject({ "endpoint/retries": 1, "endpoint/answers": 1, "endpoint/lost_tokens": 0 });
});

test("openai gives an answer up after its own timeout, and asks again: it is sampled once", async () => {
  if (!ai) return;
  const { open } = gate(policy, 1);
  const played = await play(policy, async ({ endpoint }) => {
    let asked = 0;
    const counted: typeof fetch = (url, init) => {
      const sent = fetch(url, init);
      if (++asked === 2) open();
      return sent;
    };
    const client = await openai(endpoint, { fetch: counted, timeout: 500, maxRetries: 5 });
    await client.chat.completions.create({ model: endpoint.model, messages: [user("?")] });
  });
  expect(policy.prompts).toHaveLength(2);
  expect(played.episodes.map(({ turns }) => turns)).toEqual([[0], [0]]);
});

test("eight streams closed halfway at once: each answer is its client's or nobody's, and the agent goes on", async () => {
  if (!ai) return;
  policy.answers = (prompt) => [prompt.includes("Go on") ? "Done." : "A long answer. ".repeat(100)];
  const played = await play(policy, async ({ endpoint }) => {
    const client = await openai(endpoint);
    const model = await aiModel(folder, endpoint);
    const halves = Array.from({ length: 8 }, async (_, index) => {
      if (index % 2 === 0) {
        const messages = [user(`Half ${index}.`)];
        const stream = await client.chat.completions.create({ model: endpoint.model, messages, stream: true });
        for await (const _ of stream) break; // which closes the connection
        return;
      }
      const left = new AbortController();
      const { textStream } = ai.streamText({
        model,
        prompt: `Half ${index}.`,
        abortSignal: left.signal,
        onError: () => {},
      });
      for await (const _ of textStream) left.abort();
    });
    await Promise.all(halves);
    const { text } = await ai.generateText({ model, prompt: "Go on." });
    expect(text).toBe("Done.");
  });
  for (const { turns, metrics } of played.episodes) {
    expect(metrics["endpoint/answers"]).toBe(9);
    expect(turns).toContain(8);
  }
});

test("after its end an episode refuses the AI SDK once and for all", async () => {
  if (!ai) return;
  let left: Endpoint | undefined;
  await play(policy, async ({ endpoint }) => {
    left = endpoint;
    await ai.generateText({ model: await aiModel(folder, endpoint), prompt: "?" });
  });
  const late = ai.generateText({ model: await aiModel(folder, left!), prompt: "?" });
  // No retry: the error says that there is no use.
  await expect(late).rejects.toMatchObject({ statusCode: 400, isRetryable: false });
});
