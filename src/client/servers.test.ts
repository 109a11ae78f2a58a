// What the client does about the kinds of servers there are, and what it tells the user meanwhile.
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type Reply, ScriptedServer, type SeenRequest } from "../../test/support/scripted-server.ts";
import { type ClientOptions, type DatumInput, type OutageNews, ServiceClient } from "./index.ts";

let server: ScriptedServer;
const services: ServiceClient[] = [];

beforeEach(async () => {
  server = await ScriptedServer.start();
});

afterEach(async () => {
  await Promise.all(services.splice(0).map((service) => service.close()));
  await server.close();
});

function connect({ timings, ...options }: ClientOptions = {}): ServiceClient {
  const service = new ServiceClient({
    apiKey: "tml-test",
    baseUrl: server.url,
    onWarning: () => undefined,
    timings: { retryBaseMs: 1, retryMaxMs: 4, retryWindowMs: 10_000, ...timings },
    ...options,
  });
  services.push(service);
  return service;
}

const train = (options: ClientOptions = {}) => connect(options).createLoraTrainingClient({ baseModel: "tiny" });
const data: DatumInput[] = [{ modelInput: [1, 2], lossFnInputs: { target_tokens: [2, 3], weights: [1, 1] } }];
const refusal = (status: number, detail = "no"): Reply => ({ status, json: { detail } });

describe("a server that reads no protobuf", () => {
  const unread: Reply = { status: 500, text: "Internal Server Error" };
  const missing: Reply = { status: 422, json: { detail: [{ type: "missing", loc: ["body"], msg: "Field required" }] } };
  const accepted = (request: SeenRequest): Reply => {
    const input = (request.json["forward_backward_input"] ?? request.json["forward_input"]) as { data: unknown[] };
    const outputs = input.data.map(() => ({ logprobs: { data: [-1, -2], dtype: "float32", shape: [2] } }));
    const result = { loss_fn_output_type: "scalar", loss_fn_outputs: outputs, metrics: {} };
    return { json: { request_id: server.addResult({ json: result }) } };
  };

  test.each([
    ["500 in plain text", unread],
    ["422", { status: 422, json: { detail: [{ type: "model_attributes_type", loc: ["body"], msg: "no" }] } } as Reply],
  ])("that says so with %s gets JSON, from then on at once", async (_, refused) => {
    const warnings: string[] = [];
    const training = await train({ onWarning: (message) => warnings.push(message) });
    server.script("/forward_backward", refused, missing, accepted, accepted);
    server.script("/forward", accepted);
    for (const call of [() => training.forwardBackward(data, "ppo"), () => training.forwardBackward(data, "ppo")])
      expect((await call()).lossFnOutputs[0]!["logprobs"]!.data).toEqual(Float32Array.of(-1, -2));
    await training.forward(data, "cross_entropy");
    const types = server.seen("/forward_backward").map(({ headers }) => headers["content-type"]);
    expect(types).toEqual(["application/x-protobuf", "application/x-protobuf", "application/json", "application/json"]);
    expect(server.seen("/forward_backward")[2]!.json).toMatchObject({ seq_id: 1 });
    expect(server.seen("/forward")[0]!.json).toMatchObject({ seq_id: 3, forward_input: { loss_fn: "cross_entropy" } });
    expect(warnings).toEqual([expect.stringContaining("no protobuf")]);
  });

  test.each([500, 501])("and breaks (%i) over every such body gets JSON too", async (status) => {
    const training = await train();
    server.script("/forward_backward", refusal(status), refusal(status), refusal(422, "model_id"), accepted);
    expect((await training.forwardBackward(data, "ppo")).lossFnOutputs).toHaveLength(1);
    const types = server.seen("/forward_backward").map(({ headers }) => String(headers["content-type"]).split("/")[1]);
    expect(types).toEqual(["x-protobuf", "x-protobuf", "json", "json"]);
  });

  test.each([400, 405, 406])("and only says %i gets the same data as JSON, under the same number", async (status) => {
    const warnings: string[] = [];
    const training = await train({
      onWarning: (message) => warnings.push(message),
      maxRetries: 0,
      timings: { retryWindowMs: 0 },
    });
    server.script("/forward_backward", refusal(status, "There was an error parsing the body"), accepted, accepted);
    for (const _ of [1, 2]) expect((await training.forwardBackward(data, "ppo")).lossFnOutputs).toHaveLength(1);
    const seen = server.seen("/forward_backward").slice(1);
    expect(seen.map(({ json }) => json["seq_id"])).toEqual([1, 2]);
    expect(warnings).toEqual([expect.stringContaining("no protobuf")]);
  });

  test("is not made of one that refuses the data themselves: its own words are raised, and the number is used again", async () => {
    const training = await train();
    server.script("/forward_backward", refusal(400, "weights are NaN"), refusal(400, "json too"));
    await expect(training.forwardBackward(data, "ppo")).rejects.toThrow("weights are NaN");
    await training.forwardBackward(data, "cross_entropy");
    const seen = server.seen("/forward_backward").map(({ headers }) => String(headers["content-type"]).split("/")[1]);
    expect(seen).toEqual(["x-protobuf", "json", "x-protobuf"]);
  });

  test("is not suspected in one that does, whatever it answers", async () => {
    const training = await train();
    server.script("/forward_backward", unread, refusal(422, "loss_fn"));
    await training.forwardBackward(data, "cross_entropy");
    expect(server.seen("/forward_backward").every(({ headers }) => headers["content-type"]?.includes("protobuf"))).toBe(
      true,
    );
  });
});

describe("what the user is told", () => {
  test("a server that is gone is mentioned once, not once for each of a hundred samples", async () => {
    const warnings: string[] = [];
    const service = connect({
      onWarning: (message) => warnings.push(message),
      timings: { noticeMs: 30, retryMaxMs: 20 },
    });
    const sampling = await service.createSamplingClient({ baseModel: "tiny" });
    server.script("/asample", ...Array.from({ length: 2000 }, () => refusal(503, "rebooting")));
    const samples = Array.from({ length: 100 }, () => sampling.sample({ prompt: [1, 2] }).catch(() => undefined));
    while (warnings.length === 0) await new Promise((resolve) => setTimeout(resolve, 20));
    await service.close();
    await Promise.all(samples);
    expect(warnings[0]).toMatch(
      /^The Tinker server at http\S+ has given no answer for .*up to 30 min more\..*rebooting/,
    );
    expect(warnings.length).toBeLessThan(5);
  });

  test("a server that is full is mentioned too, with its own words", async () => {
    const warnings: string[] = [];
    const service = connect({ onWarning: (message) => warnings.push(message), timings: { noticeMs: 10 } });
    const sampling = await service.createSamplingClient({ baseModel: "tiny" });
    server.script("/asample", ...Array.from({ length: 40 }, () => refusal(429, "too many requests wait")));
    await sampling.sample({ prompt: [1, 2] });
    expect(warnings[0]).toMatch(
      /^sample has failed for \d+ s \(\d+ tries\) and is tried again.*too many requests wait/,
    );
    // It waited as often as it was told to, and asked under one number.
    expect(new Set(server.seen("/asample").map(({ json }) => json["seq_id"])).size).toBe(1);
  });

  test("a call that fails for a while says so, with the reason, and goes on", async () => {
    const warnings: string[] = [];
    const training = await train({ onWarning: (message) => warnings.push(message), timings: { noticeMs: 20 } });
    server.script("/optim_step", ...Array.from({ length: 30 }, () => refusal(503, "rebooting")));
    await training.optimStep();
    expect(warnings[0]).toMatch(/has given no answer for \d+ s; it is tried again for up to 30 min more\..*rebooting/);
    expect(warnings.at(-1)).toMatch(/^The Tinker server at http\S+ answers again after \d+ s$/);
    expect(warnings.length).toBeLessThan(9);
  });

  test("a server that hangs is given up after outageMs, and a caller's wait with it", async () => {
    const news: OutageNews[] = [];
    const service = connect({
      onOutage: (found) => news.push(found),
      timings: { noticeMs: 20, pollTimeoutMs: 40, requestTimeoutMs: 40, heartbeatIntervalMs: 10, outageMs: 400 },
    });
    const sampling = await service.createSamplingClient({ baseModel: "tiny" });
    for (const route of ["/retrieve_future", "/session_heartbeat"])
      server.script(route, ...Array.from({ length: 500 }, () => "hang" as const));
    const first = sampling.sample({ prompt: [1] });
    const second = sampling.sample({ prompt: [2] });
    for (const sample of [first, second]) await expect(sample).rejects.toThrow(/no complete answer.*Gave up after/);
    expect(news[0]).toMatchObject({ state: "away", due: true });
    expect(news.filter(({ due }) => due).length).toBeLessThan(8);
  });

  test("a sample that takes long says so once, and is waited for", async () => {
    const warnings: string[] = [];
    const service = connect({ onWarning: (message) => warnings.push(message), timings: { noticeMs: 2 } });
    const sampling = await service.createSamplingClient({ baseModel: "tiny" });
    const unready: Reply = { status: 408, json: { type: "try_again" } };
    server.script("/retrieve_future", ...Array.from({ length: 12 }, () => unready));
    await sampling.sample({ prompt: [1] });
    expect(warnings[0]).toMatch(/^Sample of s1:sample:0 is not ready after .* compiles/);
  });

  test("what a server will drop is passed on once", async () => {
    const warnings: string[] = [];
    const training = await train({ onWarning: (message) => warnings.push(message) });
    const note = { headers: { "x-deprecation-note": "optim_step goes away" }, status: 503, json: { detail: "x" } };
    server.script("/optim_step", note, note);
    await training.optimStep();
    expect(warnings).toEqual(["The server says: optim_step goes away"]);
  });
});

describe("seeds", () => {
  const sent = async (seed: number | bigint) => {
    const sampling = await connect().createSamplingClient({ baseModel: "tiny" });
    await sampling.sample({ prompt: [1], samplingParams: { seed } });
    return (server.seen("/asample").at(-1)!.json["sampling_params"] as { seed: number }).seed;
  };

  test("fit 31 bits, with room for one per sample, unless the server takes more", async () => {
    for (const seed of [2 ** 31, 2 ** 32 - 1, -1, 2n ** 64n - 1n]) {
      const folded = await sent(seed);
      expect(Number.isInteger(folded) && folded >= 0 && folded < 2 ** 31 - 2 ** 16, `${seed}`).toBe(true);
    }
    expect(await sent(2 ** 31)).not.toBe(await sent(2 ** 31 + 1));
    expect(await sent(77)).toBe(77);
    server.config = { seed_limit: Number.MAX_SAFE_INTEGER };
    expect(await sent(2 ** 32 - 1)).toBe(2 ** 32 - 1);
  });
});
