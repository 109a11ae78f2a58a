// What the client does when the server, or the line to it, misbehaves.
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type Fault, type Reply, ScriptedServer, type SeenRequest } from "../../test/support/scripted-server.ts";
import { type ClientOptions, type DatumInput, type QueueStateEvent, ServiceClient, type Timings } from "./index.ts";

let server: ScriptedServer;
const services: ServiceClient[] = [];

/** Every wait is short; limits that a test does not aim at are long. */
const quick: Partial<Timings> = {
  requestTimeoutMs: 2000,
  pollTimeoutMs: 2000,
  retryBaseMs: 1,
  retryMaxMs: 4,
  retryWindowMs: 10_000,
};

beforeEach(async () => {
  server = await ScriptedServer.start();
});

afterEach(async () => {
  await Promise.all(services.splice(0).map((service) => service.close()));
  await server.close();
});

function connect(options: ClientOptions = {}): ServiceClient {
  const { timings, ...rest } = options;
  const service = new ServiceClient({
    apiKey: "tml-test",
    baseUrl: server.url,
    onWarning: () => undefined,
    timings: { ...quick, ...timings },
    ...rest,
  });
  services.push(service);
  return service;
}

const train = (options: ClientOptions = {}) => connect(options).createLoraTrainingClient({ baseModel: "tiny" });
const data: DatumInput[] = [{ modelInput: [1, 2], lossFnInputs: { target_tokens: [2, 3], weights: [1, 1] } }];
const refusal = (status: number, detail = "no"): Reply => ({ status, json: { detail } });
const seqIds = (route: string) => server.seen(route).map((request) => request.json["seq_id"]);

describe("submitting a training request", () => {
  test.each<[string, (Reply | Fault)[]]>([
    ["429 with Retry-After", [{ ...refusal(429), headers: { "retry-after": "0.01" } }]],
    ["429 with retry-after-ms", [{ ...refusal(429), headers: { "retry-after-ms": "5" } }]],
    ["5xx", [refusal(500), refusal(503), refusal(504)]],
    ["408", [refusal(408)]],
    ["a reset connection", ["reset", "reset"]],
    ["an answer cut in half", ["half"]],
    ["an answer that is lost after the request was taken", ["lost"]],
    ["a proxy's 400 without a length", [{ status: 400, text: "nope", chunked: true }, { status: 400 }]],
    ["402, for a while", [refusal(402), refusal(402)]],
    ["more failures than one call's retries", Array.from({ length: 14 }, () => refusal(503))],
  ])("%s: the same request is sent again until it is taken", async (_, faults) => {
    const training = await train();
    server.script("/optim_step", ...faults);
    const step = training.optimStep();
    const next = training.optimStep();
    await expect(step).resolves.toEqual({ metrics: { step: 1 } });
    await expect(next).resolves.toEqual({ metrics: { step: 2 } });
    expect(seqIds("/optim_step")).toEqual([...faults.map(() => 1), 1, 2]);
  });

  test("a hang ends with the time limit, and the request is sent again", async () => {
    const training = await train({ timings: { requestTimeoutMs: 100 } });
    server.script("/optim_step", "hang");
    await expect(training.optimStep()).resolves.toEqual({ metrics: { step: 1 } });
    expect(seqIds("/optim_step")).toEqual([1, 1]);
  });

  test("every chunk of a batch is retried by itself", async () => {
    server.config = { fwdbwd_max_chunk_len: 1 };
    const training = await train();
    server.script("/forward_backward", "reset", refusal(500), "lost");
    const output = await training.forwardBackward([...data, ...data, ...data], "cross_entropy");
    expect(output.lossFnOutputs).toHaveLength(3);
    expect(server.seen("/forward_backward")).toHaveLength(6);
  });

  test.each([
    [400, "client/bad-request"],
    [401, "client/unauthorized"],
    [403, "client/forbidden"],
    [413, "client/too-large"],
    [422, "client/unprocessable"],
    [418, "client/http-status"],
  ])("status %i is raised at once as %s, and its number is used again", async (status, code) => {
    const training = await train();
    server.script("/optim_step", refusal(status, "because"));
    await expect(training.optimStep()).rejects.toMatchObject({
      code,
      status,
      message: expect.stringContaining("because"),
    });
    await training.optimStep();
    expect(seqIds("/optim_step")).toEqual([1, 1]);
  });

  test("the server's word on retrying wins over its status", async () => {
    const training = await train();
    server.script("/optim_step", { ...refusal(500), headers: { "x-should-retry": "false" } });
    await expect(training.optimStep()).rejects.toMatchObject({ code: "client/server-error" });
    server.script("/optim_step", { ...refusal(422), headers: { "x-should-retry": "true" } });
    await training.optimStep();
  });

  test("a conflict is retried for a short while only", async () => {
    const training = await train({ timings: { retryWindowMs: 6000 } });
    server.script("/save_weights", ...Array.from({ length: 200 }, () => refusal(409, "the name is taken")));
    await expect(training.saveState("a")).rejects.toMatchObject({ code: "client/conflict" });
    expect(server.seen("/save_weights").length).toBeGreaterThan(1);
  });

  test("402 is raised when it lasts longer than the server allows", async () => {
    server.config = { billing_exception_max_pause_duration_sec: 0 };
    const training = await train();
    server.script("/optim_step", refusal(402, "pay"));
    await expect(training.optimStep()).rejects.toMatchObject({ code: "client/billing", status: 402 });
  });

  test("calls queued behind one that failed are not sent; calls made afterwards are", async () => {
    const training = await train();
    server.script("/forward_backward", refusal(422, "bad loss"));
    const update = training.forwardBackward(data, "cross_entropy");
    const step = training.optimStep();
    await expect(update).rejects.toMatchObject({ code: "client/unprocessable" });
    await expect(step).rejects.toMatchObject({
      code: "client/earlier-call-failed",
      cause: expect.objectContaining({ status: 422 }),
    });
    expect(server.seen("/optim_step")).toEqual([]);
    await expect(training.optimStep()).resolves.toEqual({ metrics: { step: 1 } });
  });

  test("a number whose fate is unknown is never given to another request", async () => {
    const training = await train({ maxRetries: 1, timings: { retryWindowMs: 0 } });
    server.script("/optim_step", "lost", "reset");
    await expect(training.optimStep()).rejects.toMatchObject({ code: "client/connection" });
    await expect(training.optimStep()).resolves.toEqual({ metrics: { step: 2 } });
  });

  test("no server: the message names the URL, the tries and what to do", async () => {
    const { url } = server;
    await server.close();
    server = await ScriptedServer.start();
    const service = connect({ baseUrl: url, maxRetries: 2, timings: { retryWindowMs: 0 } });
    await expect(service.getServerCapabilities()).rejects.toThrow(
      new RegExp(`${url}.*connection refused.*3 tries.*whet serve`, "s"),
    );
  });

  test("retries of one call carry the same idempotency key, another call has another", async () => {
    const training = await train();
    server.script("/optim_step", refusal(500), "lost");
    await training.optimStep();
    await training.optimStep();
    const keys = server.seen("/optim_step").map((request) => request.headers["x-idempotency-key"]);
    expect(keys[0]).toBeTruthy();
    expect(keys).toEqual([keys[0], keys[0], keys[0], keys[3]]);
    expect(keys[3]).not.toBe(keys[0]);
  });
});

describe("polling", () => {
  test.each<[string, (Reply | Fault)[]]>([
    ["408", [refusal(408), { status: 408, json: { type: "try_again", request_id: "x", queue_state: "active" } }]],
    ["try_again with 200", [{ json: { type: "try_again", request_id: "x" } }]],
    ["5xx", [refusal(500), refusal(502), refusal(503)]],
    ["429", [refusal(429)]],
    ["a reset connection", ["reset", "half"]],
    ["three 400s", [refusal(400), refusal(400), refusal(400)]],
    ["400s told apart by a 408 with a body", [refusal(400), refusal(400), refusal(400), refusal(408), refusal(400)]],
    ["a proxy's 400", [{ status: 400, text: "nope", chunked: true }]],
    ["402, for a while", [refusal(402)]],
    ["a result announced by its size", [{ json: { status: "complete_metadata", response_payload_size: 10 ** 9 } }]],
  ])("%s: it asks again and gets the result", async (_, faults) => {
    const training = await train();
    server.script("/retrieve_future", ...faults);
    await expect(training.optimStep()).resolves.toEqual({ metrics: { step: 1 } });
    expect(server.seen("/optim_step")).toHaveLength(1);
  });

  test("a poll that hangs is asked again after its time limit", async () => {
    const training = await train({ timings: { pollTimeoutMs: 100 } });
    server.script("/retrieve_future", "hang");
    await expect(training.optimStep()).resolves.toEqual({ metrics: { step: 1 } });
  });

  test("after the size was announced, the result itself is asked for", async () => {
    const training = await train();
    server.script("/retrieve_future", { json: { status: "complete_metadata", response_payload_size: 100 } });
    await training.optimStep();
    const polls = server
      .seen("/retrieve_future")
      .slice(-2)
      .map((request) => request.json["allow_metadata_only"]);
    expect(polls).toEqual([true, false]);
  });

  test("large results share a budget: a second one is fetched when the first has arrived", async () => {
    server.config = { inflight_response_bytes_semaphore_size: 100 };
    const training = await train();
    const before = server.seen("/retrieve_future").length;
    const metadata = (request: SeenRequest): Reply | undefined =>
      request.json["allow_metadata_only"] === true
        ? { json: { status: "complete_metadata", response_payload_size: 1000 } }
        : undefined;
    server.script("/retrieve_future", ...Array.from({ length: 6 }, () => metadata));
    await Promise.all([training.optimStep(), training.optimStep(), training.optimStep()]);
    const asked = server.seen("/retrieve_future").slice(before);
    expect(asked.filter((request) => request.json["allow_metadata_only"] === true)).toHaveLength(3);
    expect(asked).toHaveLength(6);
  });

  test("a failed operation is raised with its text and category", async () => {
    const training = await train();
    server.script("/retrieve_future", {
      json: { error: "NonFiniteInTensor", category: "user", code: "server/not-finite" },
    });
    await expect(training.optimStep()).rejects.toMatchObject({
      code: "client/request-failed",
      category: "user",
      serverCode: "server/not-finite",
      message: expect.stringContaining("NonFiniteInTensor"),
    });
    server.script("/retrieve_future", { json: { error: "oops", category: "odd" } });
    await expect(training.optimStep()).rejects.toMatchObject({ category: "unknown" });
  });

  test("a 400 that stays is the operation's failure where it has a detail, as SkyRL reports it", async () => {
    const training = await train();
    server.script("/retrieve_future", ...Array.from({ length: 4 }, () => refusal(400, "rank is too large")));
    await expect(training.optimStep()).rejects.toMatchObject({
      code: "client/request-failed",
      message: expect.stringContaining("rank is too large"),
    });
    server.script("/retrieve_future", ...Array.from({ length: 4 }, (): Reply => ({ status: 400, text: "what?" })));
    await expect(training.optimStep()).rejects.toMatchObject({ code: "client/bad-request", status: 400 });
  });

  test.each([404, 410])("a training request that the server lost (%i) is not sent again", async (status) => {
    const training = await train();
    server.script("/retrieve_future", refusal(status, "restarted"));
    await expect(training.optimStep()).rejects.toMatchObject({
      code: "client/request-lost",
      message: expect.stringContaining("last checkpoint"),
    });
    expect(server.seen("/optim_step")).toHaveLength(1);
  });

  test.each([401, 403, 409, 422])("status %i ends the wait", async (status) => {
    const training = await train();
    server.script("/retrieve_future", refusal(status));
    await expect(training.optimStep()).rejects.toMatchObject({ status });
  });

  test.each<[string, Reply]>([
    ["text that is not JSON", { text: "<html>" }],
    ["JSON of another shape", { json: { metrics: "none" } }],
    ["protobuf where JSON was asked for", { bytes: Uint8Array.of(1) }],
  ])("a result that is %s is refused", async (_, reply) => {
    const training = await train();
    server.script("/retrieve_future", reply);
    await expect(training.optimStep()).rejects.toMatchObject({ code: "client/bad-response" });
  });

  test("broken protobuf is refused", async () => {
    const training = await train();
    server.script("/retrieve_future", { bytes: Uint8Array.of(0x0a, 0x05) });
    await expect(training.forward(data, "cross_entropy")).rejects.toMatchObject({
      code: "client/bad-response",
      cause: expect.objectContaining({ code: "protocol/malformed-protobuf" }),
    });
  });

  test("queue states are told when they change", async () => {
    const events: QueueStateEvent[] = [];
    const training = await train({ onQueueState: (event) => events.push(event) });
    const again = (queue_state: string, queue_state_reason?: string): Reply => ({
      status: 408,
      json: { type: "try_again", queue_state, queue_state_reason },
    });
    const paused = again("paused_capacity", "many users");
    server.script("/retrieve_future", again("active"), paused, paused, again("new_word"), again("active"));
    await training.optimStep();
    const id = training.modelId;
    expect(events).toEqual([
      { id, state: "paused_capacity", reason: "many users" },
      { id, state: "unknown", reason: undefined },
      { id, state: "active", reason: undefined },
    ]);
  });

  test("without a listener, a pause is a warning", async () => {
    const warnings: string[] = [];
    const training = await train({ onWarning: (message) => warnings.push(message) });
    const paused: Reply = { status: 408, json: { type: "try_again", queue_state: "paused_rate_limit" } };
    server.script("/retrieve_future", paused, refusal(408), paused);
    await training.optimStep();
    expect(warnings).toEqual([`The queue of ${training.modelId} is paused_rate_limit.`]);
  });
});

describe("a server that was restarted", () => {
  test("a model it does not have any more is a documented error, and nothing is applied again", async () => {
    const training = await train();
    await training.optimStep();
    server.script("/forward_backward", refusal(404, "no such model"));
    const update = training.forwardBackward(data, "cross_entropy");
    const step = training.optimStep();
    await expect(update).rejects.toMatchObject({ code: "client/model-lost", modelId: training.modelId });
    await expect(step).rejects.toMatchObject({ code: "client/earlier-call-failed" });
    expect(server.seen("/optim_step")).toHaveLength(1);
    server.script("/get_info", refusal(404));
    await expect(training.getInfo()).rejects.toMatchObject({ code: "client/model-lost" });
  });

  test("a checkpoint that is not there is not mistaken for a lost model", async () => {
    const training = await train();
    server.script("/load_weights", refusal(404, "no such checkpoint"));
    await expect(training.loadState("tinker://x/weights/y")).rejects.toMatchObject({ code: "client/not-found" });
  });
});

describe("sampling", () => {
  const sampler = (options: ClientOptions = {}) => connect(options).createSamplingClient({ baseModel: "tiny" });

  test("429 slows the whole session down, and the same request is sent again", async () => {
    const sampling = await sampler();
    server.script("/asample", ...Array.from({ length: 30 }, () => refusal(429)));
    await Promise.all(Array.from({ length: 20 }, () => sampling.sample({ prompt: [1] })));
    const ids = seqIds("/asample");
    expect(ids).toHaveLength(50);
    expect(new Set(ids).size).toBe(20);
  });

  test("an unanswered submit is repeated as the same request; a lost result is asked for anew", async () => {
    const sampling = await sampler();
    server.script("/asample", "lost", "reset");
    await sampling.sample({ prompt: [1] });
    expect(seqIds("/asample")).toEqual([0, 0, 0]);
    server.script("/retrieve_future", refusal(410), refusal(404));
    await sampling.sample({ prompt: [1] });
    expect(seqIds("/asample").slice(3)).toEqual([1, 2, 3]);
  });

  test("a server that never knows its own requests is given up", async () => {
    const sampling = await sampler();
    server.script("/retrieve_future", ...Array.from({ length: 10 }, () => refusal(404)));
    await expect(sampling.sample({ prompt: [1] })).rejects.toMatchObject({ code: "client/not-found" });
  });

  test("5xx and connection errors are retried without end, refusals are not", async () => {
    const sampling = await sampler();
    server.script(
      "/asample",
      ...Array.from({ length: 20 }, (_, index) => (index % 2 ? refusal(503) : ("reset" as const))),
    );
    await sampling.sample({ prompt: [1] });
    server.script("/asample", refusal(404, "no such sampler"));
    await expect(sampling.sample({ prompt: [1] })).rejects.toMatchObject({ code: "client/not-found" });
    server.script("/asample", refusal(402));
    await sampling.sample({ prompt: [1] });
  });

  test("it gives up when nothing has finished for too long", async () => {
    const sampling = await sampler({ timings: { stuckMs: 20 } });
    server.script("/asample", ...Array.from({ length: 500 }, () => refusal(503)));
    await expect(sampling.sample({ prompt: [1] })).rejects.toMatchObject({ code: "client/stuck" });
  });

  test("the server can turn retries off", async () => {
    server.config = { sample_no_retries: true };
    const sampling = await sampler();
    server.script("/asample", refusal(503));
    await expect(sampling.sample({ prompt: [1] })).rejects.toMatchObject({ code: "client/server-error" });
  });

  test("the server bounds how many samples are under way", async () => {
    server.config = { sample_max_concurrent_requests: 3 };
    const sampling = await sampler();
    let polls = 0;
    let most = 0;
    const start = server.seen("/asample").length;
    const track = () => {
      polls = server.seen("/asample").length - start;
      return { status: 408, json: { type: "try_again" } };
    };
    server.script("/retrieve_future", track, track, track);
    const done: number[] = [];
    await Promise.all(
      Array.from({ length: 9 }, (_, index) =>
        sampling.sample({ prompt: [1] }).then(() => {
          done.push(index);
          most = Math.max(most, server.seen("/asample").length - start - done.length);
        }),
      ),
    );
    expect(polls).toBeLessThanOrEqual(3);
    expect(most).toBeLessThanOrEqual(3);
    expect(done).toHaveLength(9);
  });
});

describe("abort and close", () => {
  test("a training call that was not sent yet is not sent; one that was only stops being awaited", async () => {
    const training = await train();
    server.script("/retrieve_future", "hang");
    const first = new AbortController();
    const second = new AbortController();
    const step = training.optimStep({}, { signal: first.signal });
    await step.submitted;
    second.abort(new Error("too late"));
    await expect(training.optimStep({}, { signal: second.signal })).rejects.toThrow("too late");
    first.abort(new Error("enough"));
    await expect(step).rejects.toThrow("enough");
    await expect(training.optimStep()).resolves.toEqual({ metrics: { step: 2 } });
    expect(seqIds("/optim_step")).toEqual([1, 2]);
  });

  test("a sample can be aborted while it is held back, submitted or polled", async () => {
    const sampling = await connect({ timings: { retryBaseMs: 30_000 } }).createSamplingClient({ baseModel: "tiny" });
    for (const [route, fault] of [
      ["/asample", refusal(429)],
      ["/asample", "hang"],
      ["/retrieve_future", "hang"],
    ] as const) {
      const controller = new AbortController();
      if (route === "/retrieve_future" || fault === "hang") {
        const fresh = await connect().createSamplingClient({ baseModel: "tiny" });
        server.script(route, fault);
        const sample = fresh.sample({ prompt: [1], signal: controller.signal });
        setTimeout(() => controller.abort(new Error("enough")), 20);
        await expect(sample).rejects.toThrow("enough");
      } else {
        server.script(route, fault);
        const sample = sampling.sample({ prompt: [1], signal: controller.signal });
        setTimeout(() => controller.abort(new Error("enough")), 20);
        await expect(sample).rejects.toThrow("enough");
      }
    }
  });

  test("every call under way fails with client/closed, wherever it waits", async () => {
    const service = connect({
      timings: { retryBaseMs: 60_000, retryMaxMs: 60_000 },
    });
    const training = await service.createLoraTrainingClient({ baseModel: "tiny" });
    const sampling = await service.createSamplingClient({ baseModel: "tiny" });
    server.script("/optim_step", refusal(500));
    server.script("/retrieve_future", "hang");
    server.script("/asample", (request) => {
      expect(request.route).toBe("/asample");
      return { json: { request_id: "req-1" } };
    });
    const calls = [training.optimStep(), training.saveState("a"), sampling.sample({ prompt: [1] })];
    await new Promise((resolve) => setTimeout(resolve, 50));
    await service.close();
    for (const call of calls)
      await expect(call).rejects.toMatchObject({
        code: expect.stringMatching(/^client\/(closed|earlier-call-failed)$/),
      });
    await expect(service.getServerCapabilities()).rejects.toMatchObject({ code: "client/closed" });
  });
});
