// Checkpoints as models of the OpenAI API, for evaluation harnesses and chat front-ends: each request is rendered, sampled and read by
// itself, with the settings that it asks for.
import { randomBytes, randomUUID } from "node:crypto";
import { once } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import { type SamplingClient, ServiceClient } from "../../client/index.ts";
import { ConfigError } from "../../core/errors.ts";
import {
  answersChat,
  type ChatModel,
  type ChatRequest,
  type ChatServer,
  type Choice,
  EndpointError,
  listenChat,
  type Reply,
  readMessages,
  type TokenLogprob,
  toClient,
  toolsOf,
} from "../../openai/index.ts";
import { chooseRenderer, type Renderer } from "../../renderers/index.ts";
import { loadTokenizer } from "../../tokenizer/index.ts";
import { bundledName } from "../engines/model.ts";
import type { Asked } from "../weights/asked-weights.ts";

/** One model that is served. */
interface ServedModel {
  sampler: SamplingClient;
  renderer: Renderer;
  /** Tokens of a prompt and its answer. */
  window: number;
}

/** `./whet sample serve=true`: the weights that were asked for, each under its label, until Ctrl-C. */
export async function serveAsked(
  all: readonly Asked[],
  { port, api_key: given }: { port: number; api_key: string },
  signal: AbortSignal,
): Promise<number> {
  const byName = new Map(
    all.map(({ label, sampler, renderer, bench }) => [
      label,
      Promise.resolve({ sampler, renderer, window: bench.config.context_window }),
    ]),
  );
  const models = [...byName.keys()];
  const apiKey = given || `whet-${randomBytes(18).toString("base64url")}`;
  const server = await listenChat({ apiKey, model: chatModel(models, (name) => byName.get(name)) }, port);
  console.log(
    `whetstone: serving the OpenAI API at ${server.baseURL} (${models.map((name) => `model ${name}`).join(", ")})`,
  );
  if (given === "") console.error(`whetstone: the API key of this server is ${apiKey}`);
  if (!signal.aborted) await once(signal, "abort");
  await server.close();
  return 0;
}

interface BesideOptions {
  engine: "embedded" | "simulated";
  model?: string | undefined;
  tokenizer?: string | undefined;
}

/**
 * The OpenAI API beside the Tinker API of `./whet serve`: its base model, and every checkpoint by its tinker:// path, asked as any other
 * client of the server does.
 */
export function chatBeside({ engine, model, tokenizer }: BesideOptions) {
  if (engine === "simulated" && tokenizer === undefined)
    throw new ConfigError(
      "config/bad-value",
      "openai=true needs tokenizer= with engine=simulated: its tokens are no text otherwise.",
    );
  const folder = engine === "simulated" ? tokenizer! : (model ?? bundledName);
  let service: ServiceClient | undefined;
  let chat: ChatServer | undefined;
  return {
    /** Answers what is below `/v1`, once it is open. */
    beside: async (request: IncomingMessage, response: ServerResponse): Promise<boolean> =>
      chat ? answersChat(request, response, chat) : false,
    /** Begins; gives its address. */
    async open(url: string, apiKey: string): Promise<string> {
      const client = new ServiceClient({ baseUrl: url, apiKey });
      service = client;
      const { supportedModels } = await client.getServerCapabilities();
      const { modelName, maxContextLength } = supportedModels[0]!;
      const name = modelName!;
      const window = maxContextLength ?? 32_768;
      const { renderer } = chooseRenderer(name, await loadTokenizer(folder));
      const open = (asked: string) => {
        if (asked !== name && !asked.startsWith("tinker://")) return undefined;
        const source = asked === name ? { baseModel: name } : { modelPath: asked };
        return client.createSamplingClient(source).then((sampler) => ({ sampler, renderer, window }));
      };
      chat = { apiKey, model: chatModel([name], open) };
      return `${url}/v1 (model ${name})`;
    },
    async close(): Promise<void> {
      chat = undefined;
      await service?.close();
    },
  };
}

/** Models by name; `open` gets one that a client asks for, and is asked again after a failure. */
function chatModel(models: readonly string[], open: (name: string) => Promise<ServedModel> | undefined): ChatModel {
  const opened = new Map<string, Promise<ServedModel>>();
  const modelOf = async (name: string): Promise<ServedModel> => {
    const found = opened.get(name) ?? open(name);
    if (!found)
      throw new EndpointError(
        404,
        "endpoint/model-not-found",
        `There is no model ${JSON.stringify(name.slice(0, 100))} here. There is ${models.join(", ")}.`,
      );
    opened.set(name, found);
    return found.catch((error: unknown) => {
      opened.delete(name);
      throw error;
    });
  };
  return {
    models,
    async answer({ request, gone }) {
      if (request.top_logprobs)
        throw new EndpointError(
          400,
          "endpoint/top-logprobs",
          `top_logprobs=${request.top_logprobs}: there are log-probabilities of the tokens that were sampled, not of others. Leave it out.`,
        );
      const name = request.model || models[0]!;
      return { reply: await replyTo(request, name, await modelOf(name), gone), delivered: () => {} };
    },
  };
}

async function replyTo(
  request: ChatRequest,
  model: string,
  { sampler, renderer, window }: ServedModel,
  signal: AbortSignal,
): Promise<Reply> {
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
    signal,
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
  return { id: `chatcmpl-${randomUUID()}`, model, created, choices, promptTokens: prompt.length, completionTokens };
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
