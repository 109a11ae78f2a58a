// An answer counts as delivered when its client has all of it.
import { request as httpRequest } from "node:http";
import { expect, test } from "vitest";
import type { ChatModel } from "./answer.ts";
import { EndpointServer } from "./server.ts";

/** Far more than the sockets on the way hold. */
const content = "x".repeat(64 << 20);

async function ask(stream: boolean, take: "all" | "the beginning"): Promise<boolean> {
  let told: (isDelivered: boolean) => void = () => {};
  const isDelivered = new Promise<boolean>((resolve) => {
    told = resolve;
  });
  const model: ChatModel = {
    models: ["m"],
    answer: async ({ gone }) => {
      gone.addEventListener("abort", () => told(false));
      const choices = [{ message: { role: "assistant" as const, content }, isCut: false }];
      const reply = { id: "1", model: "m", created: 0, choices, promptTokens: 1, completionTokens: 1 };
      return { reply, delivered: () => told(true) };
    },
  };
  const server = new EndpointServer();
  const { baseURL, apiKey } = await server.add(model);
  const headers = { authorization: `Bearer ${apiKey}` };
  const request = httpRequest(`${baseURL}/chat/completions`, { method: "POST", headers }, (response) => {
    if (take === "all") response.resume();
    else response.once("data", () => request.destroy());
    response.on("error", () => {});
  });
  request.on("error", () => {});
  request.end(JSON.stringify({ messages: [{ role: "user", content: "?" }], stream }));
  const delivered = await isDelivered;
  await server.close();
  return delivered;
}

test.each([true, false])("stream=%s: a client that leaves in the middle has not got its answer", async (stream) => {
  expect(await ask(stream, "the beginning")).toBe(false);
  expect(await ask(stream, "all")).toBe(true);
});
