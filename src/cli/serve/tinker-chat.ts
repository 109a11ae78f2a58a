// The OpenAI API beside the Tinker API of `./whet serve`: its base model, and every checkpoint by its tinker:// path, asked as any other
// client of the server does.
import type { IncomingMessage, ServerResponse } from "node:http";
import { ServiceClient } from "../../client/index.ts";
import { ConfigError } from "../../core/errors.ts";
import { answersChat, type ChatServer } from "../../openai/index.ts";
import { chooseRenderer } from "../../renderers/index.ts";
import { loadTokenizer } from "../../tokenizer/index.ts";
import { bundledName } from "../engines/model.ts";
import { ServedChat } from "./served-chat.ts";

interface Options {
  engine: "embedded" | "simulated";
  model?: string | undefined;
  tokenizer?: string | undefined;
}

export class TinkerChat {
  readonly #folder: string;
  #service: ServiceClient | undefined;
  #chat: ChatServer | undefined;

  constructor({ engine, model, tokenizer }: Options) {
    if (engine === "simulated" && tokenizer === undefined)
      throw new ConfigError(
        "config/bad-value",
        "openai=true needs tokenizer= with engine=simulated: its tokens are no text otherwise.",
      );
    this.#folder = engine === "simulated" ? tokenizer! : (model ?? bundledName);
  }

  /** Answers what is below `/v1`. */
  readonly beside = async (request: IncomingMessage, response: ServerResponse): Promise<boolean> =>
    this.#chat ? answersChat(request, response, this.#chat) : false;

  /** Begins; gives its address. */
  async open(url: string, apiKey: string): Promise<string> {
    const service = new ServiceClient({ baseUrl: url, apiKey });
    this.#service = service;
    const { supportedModels } = await service.getServerCapabilities();
    const [base] = supportedModels;
    const name = base!.modelName!;
    const { renderer } = chooseRenderer(name, await loadTokenizer(this.#folder));
    const window = base!.maxContextLength ?? 32_768;
    const model = new ServedChat([name], (asked) => {
      if (asked !== name && !asked.startsWith("tinker://")) return undefined;
      const source = asked === name ? { baseModel: name } : { modelPath: asked };
      return service.createSamplingClient(source).then((sampler) => ({ sampler, renderer, window }));
    });
    this.#chat = { apiKey, model };
    return `${url}/v1 (model ${name})`;
  }

  async close(): Promise<void> {
    this.#chat = undefined;
    await this.#service?.close();
  }
}
