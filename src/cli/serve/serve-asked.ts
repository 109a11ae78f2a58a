// `./whet sample serve=true`: the weights that were asked for, behind the OpenAI API until Ctrl-C.
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { listenChat } from "../../openai/index.ts";
import type { Asked } from "../weights/asked-weights.ts";
import { ServedChat } from "./served-chat.ts";

/** Serves all of them, each under its label. */
export async function serveAsked(
  all: readonly Asked[],
  { port, api_key: given }: { port: number; api_key: string },
  signal: AbortSignal,
): Promise<number> {
  const byName = new Map(
    all.map(({ label, sampler, renderer, bench }) => [
      label,
      { sampler, renderer, window: bench.config.context_window },
    ]),
  );
  const model = new ServedChat([...byName.keys()], (name) => {
    const asked = byName.get(name);
    return asked && Promise.resolve(asked);
  });
  const apiKey = given || `whet-${randomBytes(18).toString("base64url")}`;
  const server = await listenChat({ apiKey, model }, port);
  console.log(
    `whetstone: serving the OpenAI API at ${server.baseURL} (${model.models.map((name) => `model ${name}`).join(", ")})`,
  );
  if (given === "") console.error(`whetstone: the API key of this server is ${apiKey}`);
  if (!signal.aborted) await once(signal, "abort");
  await server.close();
  return 0;
}
