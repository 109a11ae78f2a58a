// Episodes that talk to their endpoint as a test wants it, with the openai package where it can be had; and what was trained of them.

import { expect } from "vitest";
import { type Endpoint, type Episode, environment, type TrainSettings } from "whetstone/rl";
import { eventsNamed } from "./environment-runs.ts";
import { clientPackages, importFrom } from "./npm-packages.ts";
import type { ScriptedPolicy } from "./scripted-policy.ts";

// biome-ignore lint/suspicious/noExplicitAny: bodies are whatever a test looks at
export type Body = any;
export type Message = Record<string, unknown>;

/** Asks as a client without any library does. */
export async function post(
  endpoint: Endpoint,
  messages: readonly Message[],
  more: object = {},
  init: RequestInit = {},
) {
  const { baseURL, apiKey, model } = endpoint;
  const response = await fetch(`${baseURL}/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${apiKey}` },
    body: JSON.stringify({ model, messages, ...more }),
    ...init,
  });
  return { status: response.status, body: (await response.json()) as Body };
}

/** The openai package, where it can be had. */
export async function openai({ baseURL, apiKey }: Endpoint, options: object = {}): Promise<Body> {
  const packages = await clientPackages();
  if ("missing" in packages) return undefined;
  const { OpenAI } = await importFrom<Body>(packages.folder, "openai");
  return new OpenAI({ baseURL, apiKey, ...options });
}

/** An answer as a message, asked with the openai package; anything else fails the episode. */
export async function say(endpoint: Endpoint, messages: readonly Message[], more: object = {}): Promise<Body> {
  const client = await openai(endpoint);
  const { model } = endpoint;
  if (client) return (await client.chat.completions.create({ model, messages, ...more })).choices[0].message;
  const { status, body } = await post(endpoint, messages, more);
  if (status !== 200) throw new Error(`${status} ${body.error.message}`);
  return body.choices[0].message;
}

export const user = (content: string) => ({ role: "user", content });
export const tool = (name: string) => ({
  type: "function",
  function: { name, parameters: { type: "object", properties: {} } },
});

/** Two episodes and what was trained of them. */
export async function play(
  policy: ScriptedPolicy,
  run: (episode: Episode<{ id: string; prompt: string }>) => Promise<unknown>,
  config: TrainSettings = {},
) {
  let failure: unknown;
  const one = environment({
    problems: [{ id: "p", prompt: "?" }],
    async run(episode) {
      // What a test expects inside an episode fails the test, not the episode.
      await run(episode).catch((error: unknown) => {
        failure ??= error;
      });
      return episode.random();
    },
  });
  const { path, events } = await policy.train(one, { config: { completions_per_prompt: 2, ...config } });
  if (failure !== undefined) throw failure;
  const episodes = eventsNamed(events, "graded").map(({ grade }) => grade.episode!);
  const [done] = eventsNamed(events, "step-done");
  // The sampler's log-probabilities are the trainer's, over all that was trained.
  expect(Math.abs(done!.metrics["optim/kl_sample_train_v1"]!)).toBeLessThan(1e-6);
  const tokensOf = (sample: number, turn: number) =>
    turn === 0
      ? eventsNamed(events, "group-sampled")[0]!.samples[sample]!.tokens
      : eventsNamed(events, "turn-sampled").find((one) => one.sample === sample && one.turn === turn)!.tokens;
  const sampled = episodes.flatMap(({ turns }, sample) => turns.map((turn) => tokensOf(sample, turn)));
  expect(done!.metrics["tokens/trained"]).toBe(sampled.reduce((sum, tokens) => sum + tokens, 0));
  return { path, events, episodes, sequences: done!.metrics["n_datums"]! / episodes.length, metrics: done!.metrics };
}

/** A gate before the policy: `reached` resolves when so many requests wait at it. */
export function gate(policy: ScriptedPolicy, requests: number) {
  let waiting = 0;
  let reach = () => {};
  let open = () => {};
  const reached = new Promise<void>((resolve) => {
    reach = resolve;
  });
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  policy.before = () => {
    if (++waiting === requests) reach();
    return opened;
  };
  return { reached, open };
}
