import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, test } from "vitest";
import { key, start } from "../../test/support/tinker-server.ts";
import { ModelLostError, ServiceClient } from "../client/index.ts";
import { isGone, isModelLost } from "./lost.ts";

const missing = "tinker://none:train:0/weights/000010";
const failureOf = (promise: Promise<unknown>) =>
  promise.then(
    () => expect.fail("it should have failed"),
    (error: unknown) => error,
  );

test("a path that the server does not have is gone; and that is not a lost model", async () => {
  const server = await start();
  const service = new ServiceClient({ baseUrl: server.url, apiKey: key });
  const training = await failureOf(service.createTrainingClientFromStateWithOptimizer(missing));
  const sampling = await failureOf(
    service.createSamplingClient({ modelPath: missing.replace("weights", "sampler_weights") }),
  );
  for (const error of [training, sampling]) {
    expect(await isGone(error, service)).toBe(true);
    expect(isModelLost(error)).toBe(false);
  }
  expect(isModelLost(new Error("x", { cause: new ModelLostError("gone", "m") }))).toBe(true);
  await service.close();
});

test("an address where everything is a 404 is not a server that lost a checkpoint", async () => {
  const server = createServer((_, response) => response.writeHead(404).end("no such page"));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const service = new ServiceClient({ baseUrl, apiKey: key, maxRetries: 0 });
  const error = await failureOf(service.createRestClient().getWeightsInfoByTinkerPath(missing));
  expect(await isGone(error, service)).toBe(false);
  await service.close();
  server.closeAllConnections();
  server.close();
});
