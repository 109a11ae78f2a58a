// Checkpoints as models of the OpenAI API, for evaluation harnesses and chat front-ends: each request is rendered, sampled and read by
// itself, with the settings that it asks for.
import { randomUUID } from "node:crypto";
import type { SamplingClient } from "../../client/index.ts";
import {
  type Asked,
  type ChatModel,
  type ChatRequest,
  type Choice,
  EndpointError,
  type Reply,
  readMessages,
  type TokenLogprob,
  toClient,
  toolsOf,
} from "../../openai/index.ts";
import type { Renderer } from "../../renderers/index.ts";

/** One model that is served. */
export interface ServedModel {
  sampler: SamplingClient;
  renderer: Renderer;
  /** Tokens of a prompt and its answer. */
  window: number;
}

/** Models by name; `open` gets one that a client asks for. */
export class ServedChat implements ChatModel {
  readonly models: readonly string[];
  readonly #open: (name: string) => Promise<ServedModel> | undefined;
  readonly #opened = new Map<string, Promise<ServedModel>>();

  constructor(models: readonly string[], open: (name: string) => Promise<ServedModel> | undefined) {
    this.models = models;
    this.#open = open;
  }

  async answer({ request, gone }: Asked): Promise<{ reply: Reply; delivered(): void }> {
    if (request.top_logprobs)
      throw new EndpointError(
        400,
        "endpoint/top-logprobs",
        `top_logprobs=${request.top_logprobs}: there are log-probabilities of the tokens that were sampled, not of others. Leave it out.`,
      );
    const name = request.model || this.models[0]!;
    const { sampler, renderer, window } = await this.#modelOf(name);
    const tools = toolsOf(request);
    const options = tools.length > 0 ? { tools } : {};
    const prompt = Int32Array.from(renderer.buildGenerationPrompt(readMessages(request.messages), options));
    const room = window - prompt.length;
    const asked = request.max_completion_tokens ?? request.max_tokens ?? room;
    if (room < 1)
      throw new EndpointError(
        400,
        "endpoint/context-length-exceeded",
        `The prompt has ${prompt.length} tokens and exceeds the maximum context length, ${window}. Shorten the conversation.`,
      );
    const { sequences } = await sampler.sample({
      prompt,
      numSamples: request.n ?? 1,
      samplingParams: { ...settingsOf(request), maxTokens: Math.min(asked, room), stop: renderer.stop },
      signal: gone,
    });
    const stops = [request.stop ?? []].flat().filter((text) => text !== "");
    const choices = sequences.map(({ tokens, logprobs, stopReason }): Choice => {
      const { message: answer, reasoningOpen = false } = renderer.parseResponse(tokens, options);
      const message = toClient(answer, () => `call_${randomUUID()}`);
      const end = stopAt(message.content, stops);
      return {
        message: end === undefined ? message : { ...message, content: message.content.slice(0, end), toolCalls: [] },
        isCut: end === undefined && (stopReason === "length" || reasoningOpen),
        logprobs: request.logprobs && logprobs ? logprobsOf(renderer, tokens, logprobs) : undefined,
      };
    });
    const completionTokens = sequences.reduce((sum, { tokens }) => sum + tokens.length, 0);
    const created = Math.floor(Date.now() / 1000);
    const id = `chatcmpl-${randomUUID()}`;
    const reply = { id, model: name, created, choices, promptTokens: prompt.length, completionTokens };
    return { reply, delivered: () => {} };
  }

  async #modelOf(name: string): Promise<ServedModel> {
    const opened = this.#opened.get(name) ?? this.#open(name);
    if (!opened)
      throw new EndpointError(
        404,
        "endpoint/model-not-found",
        `There is no model ${JSON.stringify(name.slice(0, 100))} here. There is ${this.models.join(", ")}.`,
      );
    this.#opened.set(name, opened);
    try {
      return await opened;
    } catch (error) {
      this.#opened.delete(name);
      throw error;
    }
  }
}

/** As OpenAI's defaults are; greedy where temperature is 0. */
function settingsOf({ temperature, top_p, top_k, seed }: ChatRequest) {
  return {
    temperature: temperature ?? 1,
    topP: top_p ?? 1,
    ...(top_k && top_k > 0 ? { topK: top_k } : {}),
    ...(seed !== null && seed !== undefined && { seed }),
  };
}

/** Where a text that ends the answer stands first; such texts are looked for when the model has ended. */
function stopAt(content: string, stops: readonly string[]): number | undefined {
  const found = stops.map((stop) => content.indexOf(stop)).filter((at) => at >= 0);
  return found.length > 0 ? Math.min(...found) : undefined;
}

/** Of every token that was sampled, reasoning and calls included; a token that ends the answer is none of it. */
function logprobsOf({ tokenizer, stop }: Renderer, tokens: Int32Array, logprobs: Float32Array): TokenLogprob[] {
  const stops: readonly unknown[] = stop;
  const entries = [...tokens].map((id, index) => ({ id, logprob: logprobs[index]! }));
  return entries
    .filter(({ id }) => !stops.includes(id))
    .map(({ id, logprob }) => {
      const token = tokenizer.decode([id]);
      return { token, logprob, bytes: [...Buffer.from(token)], top_logprobs: [] };
    });
}
