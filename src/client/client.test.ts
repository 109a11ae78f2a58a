// The clients' everyday behaviour, against a plain server.
import { spawn } from "node:child_process";
import { Worker } from "node:worker_threads";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ScriptedServer } from "../../test/support/scripted-server.ts";
import { typescriptFlags } from "../core/workers.ts";
import { type ClientOptions, type DatumInput, SamplingClient, ServiceClient, tokenizerIdOf } from "./index.ts";

let server: ScriptedServer;
const services: ServiceClient[] = [];

beforeEach(async () => {
  server = await ScriptedServer.start();
});

afterEach(async () => {
  await Promise.all(services.splice(0).map((service) => service.close()));
  await server.close();
});

function connect(options: ClientOptions = {}): ServiceClient {
  const service = new ServiceClient({
    apiKey: "tml-test",
    baseUrl: server.url,
    onWarning: () => undefined,
    ...options,
  });
  services.push(service);
  return service;
}

const datum = (...tokens: number[]): DatumInput => ({
  modelInput: tokens.slice(0, -1),
  lossFnInputs: { target_tokens: tokens.slice(1), weights: tokens.slice(1).map(() => 1) },
});

describe("training", () => {
  test("back-to-back calls are queued at once and numbered in call order", async () => {
    const training = await connect().createLoraTrainingClient({ baseModel: "tiny", rank: 8, seed: 3 });
    expect(training.modelId).toBe("s1:train:0");
    const update = training.forwardBackward([datum(1, 2, 3)], "cross_entropy");
    const step = training.optimStep({ learningRate: 0.5 });
    const saved = training.saveState("one", { ttlSeconds: 60 });
    const [output, optim, { path }] = await Promise.all([update, step, saved]);
    expect(output.lossFnOutputs[0]!["logprobs"]!.data).toEqual(Float32Array.of(-0.5, -0.5));
    expect(output.metrics["loss:sum"]).toBe(1);
    expect(optim.metrics).toEqual({ step: 2 });
    expect(path).toBe("tinker://s1:train:0/weights/one");
    expect(server.seen("/create_model")[0]!.json).toEqual({
      type: "create_model",
      session_id: "s1",
      model_seq_id: 0,
      base_model: "tiny",
      lora_config: { rank: 8, seed: 3, train_attn: true, train_mlp: true, train_unembed: true },
      optimizer_config: { type: "adamw" },
    });
    expect(server.seen("/forward_backward")[0]!.training).toMatchObject({
      seqId: 1,
      lossFn: "cross_entropy",
      forwardOnly: false,
    });
    expect(server.seen("/optim_step")[0]!.json).toEqual({
      type: "optim_step",
      model_id: "s1:train:0",
      seq_id: 2,
      adam_params: { learning_rate: 0.5, beta1: 0.9, beta2: 0.95, eps: 1e-12, weight_decay: 0, grad_clip_norm: 0 },
    });
    expect(server.seen("/save_weights")[0]!.json).toMatchObject({ seq_id: 3, path: "one", ttl_seconds: 60 });
  });

  test("a future can be awaited again, and a time limit only ends the wait", async () => {
    const training = await connect().createLoraTrainingClient({ baseModel: "tiny" });
    server.script("/retrieve_future", "hang");
    const step = training.optimStep();
    await step.submitted;
    await expect(step.result({ timeoutMs: 20 })).rejects.toMatchObject({ code: "client/wait-timeout" });
    await expect(step.result({ signal: AbortSignal.abort(new Error("enough")) })).rejects.toThrow("enough");
  });

  test("a large batch is cut into requests; the first is sent last and the results are one", async () => {
    server.config = { fwdbwd_max_chunk_len: 2 };
    const training = await connect().createLoraTrainingClient({ baseModel: "tiny" });
    const data = [1, 2, 3, 4, 5].map((token) => datum(token, token, token));
    const output = await training.forward(data, "cross_entropy");
    const seen = server.seen("/forward_backward").map((request) => request.training!);
    expect(seen.map((request) => request.data.length).reverse()[0]).toBe(2);
    expect(seen.map((request) => request.seqId)).toEqual([expect.any(Number), expect.any(Number), 1]);
    expect(new Set(seen.map((request) => request.seqId))).toEqual(new Set([1, 2, 3]));
    expect(seen.every((request) => request.forwardOnly)).toBe(true);
    expect(output.lossFnOutputs).toHaveLength(5);
    expect(output.metrics["loss:sum"]).toBe(5);
    // Weighted by data: (1·2 + 2·2 + 3·1) / 5.
    expect(output.metrics["first:mean"]).toBeCloseTo(9 / 5);
    await training.optimStep();
    expect(server.seen("/optim_step")[0]!.json["seq_id"]).toBe(4);
  });

  test("a request of megabytes arrives whole and with its length, also when it is sent again", async () => {
    const training = await connect({ timings: { retryBaseMs: 1 } }).createLoraTrainingClient({ baseModel: "tiny" });
    const tokens = Int32Array.from({ length: 100_000 }, (_, index) => index);
    const logprobs = Float32Array.from(tokens, (token) => -token);
    const data = [0, 1].map(() => ({ modelInput: tokens, lossFnInputs: { target_tokens: tokens, logprobs } }));
    server.script("/forward_backward", "lost");
    await training.forwardBackward(data, "ppo");
    const [first, second] = server.seen("/forward_backward");
    expect(Number(first!.headers["content-length"])).toBeGreaterThan(3_000_000);
    expect(first!.training!.data[1]!.lossFnInputs["logprobs"]!.data).toEqual(logprobs);
    expect(second!.training).toEqual(first!.training);
    // The memory of the first batch is used again, with nothing of it left over.
    await training.forwardBackward([datum(1, 2, 3), ...data.slice(1)], "ppo");
    expect(server.seen("/forward_backward")[2]!.training!.data[0]!.lossFnInputs["target_tokens"]!.data).toEqual(
      Int32Array.of(2, 3),
    );
    expect(server.seen("/forward_backward")[2]!.training!.data[1]).toEqual(first!.training!.data[1]);
  });

  test("bytes cut a batch too, and without parallel chunks they go out in order", async () => {
    server.config = { fwdbwd_max_chunk_bytes_count: 60, parallel_fwdbwd_chunks: false };
    const training = await connect().createLoraTrainingClient({ baseModel: "tiny" });
    // Two positions count for 2·4 (tokens) + 2·8 (targets) + 2·4 (weights) = 32 bytes.
    await training.forwardBackward(
      [1, 2, 3].map((token) => datum(token, token, token)),
      "cross_entropy",
    );
    expect(server.seen("/forward_backward").map((request) => request.training!.seqId)).toEqual([1, 2, 3]);
  });

  test("a custom loss sends the negated gradient as weights, and later calls wait for it", async () => {
    const training = await connect().createLoraTrainingClient({ baseModel: "tiny" });
    const update = training.forwardBackwardCustom([datum(1, 2, 3)], (_, [logprobs]) => ({
      loss: 7,
      gradients: [logprobs!.map((logprob) => 2 * logprob)],
      metrics: { "own:mean": 3 },
    }));
    const step = training.optimStep();
    const [output] = await Promise.all([update, step]);
    expect(output.metrics).toMatchObject({ "loss:sum": 7, "own:mean": 3 });
    const [forward, backward] = server.seen("/forward_backward").map((request) => request.training!);
    expect(forward).toMatchObject({ seqId: 1, forwardOnly: true });
    expect(backward).toMatchObject({ seqId: 2, forwardOnly: false });
    expect(backward!.data[0]!.lossFnInputs["weights"]!.data).toEqual(Float32Array.of(1, 1));
    expect(server.seen("/optim_step")[0]!.json["seq_id"]).toBe(3);
  });

  test("resuming asks for the checkpoint's settings, makes a model like it and loads it first", async () => {
    const training = await connect().createTrainingClientFromStateWithOptimizer("tinker://old/weights/a");
    expect(server.seen("/create_model")[0]!.json["lora_config"]).toEqual({
      rank: 4,
      train_attn: true,
      train_mlp: true,
      train_unembed: false,
    });
    expect(server.seen("/load_weights")[0]!.json).toEqual({
      type: "load_weights",
      model_id: "s1:train:0",
      seq_id: 1,
      path: "tinker://old/weights/a",
      optimizer: true,
    });
    await training.optimStep();
    expect(server.seen("/optim_step")[0]!.json["seq_id"]).toBe(2);
  });

  test("where the server offers it, resuming is one request", async () => {
    server.config = { create_model_via_load_weights: true };
    const training = await connect().createTrainingClientFromState("tinker://old/weights/a", { baseModel: "tiny" });
    expect(training.modelId).toBe("s1:train:0");
    expect(server.seen("/create_model")).toEqual([]);
    expect(server.seen("/load_weights")[0]!.json).toMatchObject({
      session_id: "s1",
      model_seq_id: 0,
      optimizer: false,
    });
    await training.optimStep();
    expect(server.seen("/optim_step")[0]!.json["seq_id"]).toBe(1);
  });

  test("a shared checkpoint is asked for under its token", async () => {
    await connect().createTrainingClientFromState("tinker://old/weights/a", { weightsAccessToken: "tml-theirs" });
    expect(server.seen("/weights_info")[0]!.headers["x-api-key"]).toBe("tml-theirs");
    expect(server.seen("/load_weights")[0]!.json["weights_access_token"]).toBe("tml-theirs");
    expect(server.seen("/load_weights")[0]!.headers["x-api-key"]).toBe("tml-test");
  });

  test("getInfo names the tokenizer", async () => {
    const training = await connect().createLoraTrainingClient({ baseModel: "tiny" });
    const info = await training.getInfo();
    expect(tokenizerIdOf(info.modelData)).toBe("org/tiny");
    expect(tokenizerIdOf({ modelName: "org/model/variant:peft:1" })).toBe("org/model");
    expect(tokenizerIdOf({ modelName: "meta-llama/Llama-3.1-8B" })).toMatch(/llama-3-instruct-tokenizer$/);
  });

  test.each<[string, readonly DatumInput[], RegExp]>([
    ["an empty batch", [], /The batch is empty/],
    [
      "targets of another length",
      [{ modelInput: [1, 2], lossFnInputs: { target_tokens: [2] } }],
      /has 1 positions, but modelInput has 2/,
    ],
    ["a fraction as a token", [{ modelInput: [1.5], lossFnInputs: {} }], /data\[0\]: tokens\[0\] is 1\.5/],
    ["a nested list", [{ modelInput: [1], lossFnInputs: { weights: [[1]] as never } }], /not a number/],
    ["a plain list under an unknown name", [{ modelInput: [1], lossFnInputs: { mask: [1] } }], /mask is a plain list/],
  ])("%s is refused before anything is sent", async (_, data, reason) => {
    const training = await connect().createLoraTrainingClient({ baseModel: "tiny" });
    const update = training.forwardBackward(data, "cross_entropy");
    await expect(update).rejects.toThrow(reason);
    await expect(update).rejects.toMatchObject({ code: "client/invalid-input" });
    expect(server.seen("/forward_backward")).toEqual([]);
  });
});

describe("sampling", () => {
  test("a request has everything the protocol wants, and its result is typed", async () => {
    const training = await connect().createLoraTrainingClient({ baseModel: "tiny" });
    const sampling = await training.saveWeightsAndGetSamplingClient();
    const { sequences } = await sampling.sample({
      prompt: [1, 2],
      numSamples: 2,
      samplingParams: { maxTokens: 4, seed: 7, stop: "\n" },
    });
    expect(sequences[0]).toEqual({ stopReason: "stop", tokens: Int32Array.of(0), logprobs: Float32Array.of(-1) });
    const [seen] = server.seen("/asample");
    expect(seen!.headers["x-tinker-sampling-backpressure"]).toBe("1");
    expect(seen!.json).toEqual({
      type: "sample",
      sampling_session_id: "s1:sample:0",
      seq_id: 0,
      num_samples: 2,
      prompt: { chunks: [{ type: "encoded_text", tokens: [1, 2] }] },
      sampling_params: { max_tokens: 4, seed: 7, stop: ["\n"], temperature: 1, top_k: -1, top_p: 1 },
      prompt_logprobs: false,
      topk_prompt_logprobs: 0,
      topk_sample_logprobs: 0,
      prompt_alt_tokens_k: 0,
      record_stability_info: false,
    });
    const poll = server.seen("/retrieve_future").at(-1)!;
    expect(poll.headers["accept"]).toBe("application/x-protobuf, application/json");
    expect(poll.headers["x-tinker-request-type"]).toBe("Sample");
  });

  test("prompt logprobs have one entry per token, also from a server that leaves out the first", async () => {
    const sampling = await connect().createSamplingClient({ baseModel: "tiny" });
    expect(await sampling.computeLogprobs([1, 2, 3])).toEqual([null, -0.5, -0.25]);
    expect(await sampling.computeLogprobs([1, 2, 3, 4])).toEqual([null, null, -0.5, -0.25]);
    const { promptLogprobs } = await sampling.sample({ prompt: Int32Array.of(1, 2, 3) });
    expect(promptLogprobs).toBeUndefined();
  });

  test("a server that answers in JSON is understood", async () => {
    const sampling = await connect().createSamplingClient({ baseModel: "tiny" });
    server.script("/retrieve_future", {
      json: {
        type: "sample",
        sequences: [{ stop_reason: "length", tokens: [4], logprobs: [-1.5] }],
        prompt_logprobs: null,
      },
    });
    const { sequences } = await sampling.sample({ prompt: [1] });
    expect(sequences).toEqual([{ stopReason: "length", tokens: Int32Array.of(4), logprobs: Float32Array.of(-1.5) }]);
  });

  test("samplers share one counter with unnamed saves", async () => {
    const service = connect();
    const training = await service.createLoraTrainingClient({ baseModel: "tiny" });
    const first = await service.createSamplingClient({ baseModel: "tiny" });
    const second = await training.saveWeightsAndGetSamplingClient();
    const { path } = await training.saveWeightsForSampler("named");
    const third = await training.createSamplingClient(path);
    expect([first, second, third].map((client) => client.samplingSessionId)).toEqual([
      "s1:sample:0",
      "s1:sample:1",
      "s1:sample:2",
    ]);
  });

  test("an exported client samples from the same session, with numbers of its own and no key in it", async () => {
    const sampling = await connect().createSamplingClient({ baseModel: "tiny" });
    const exported = JSON.parse(JSON.stringify(sampling.export())) as ReturnType<SamplingClient["export"]>;
    expect(exported).toEqual({ baseUrl: `${server.url}/`, samplingSessionId: "s1:sample:0" });
    const copy = SamplingClient.fromExport(exported, { apiKey: "tml-test" });
    await copy.sample({ prompt: [1] });
    await copy.close();
    const [seen] = server.seen("/asample");
    expect(seen!.json["seq_id"]).toBeGreaterThanOrEqual(1_000_000_000);
    expect(server.seen("/create_session")).toHaveLength(1);
  });

  test("a client needs a model, and a path must be an address", async () => {
    await expect(connect().createSamplingClient({})).rejects.toThrow(/needs modelPath or baseModel/);
    await expect(connect().createSamplingClient({ modelPath: "/tmp/x" })).rejects.toThrow(/not a checkpoint address/);
  });
});

describe("start-up", () => {
  test("nothing is sent before the first call; REST calls make no session", async () => {
    const service = connect();
    expect(server.requests).toEqual([]);
    server.script("/get_server_capabilities", { json: { supported_models: [{ model_name: "tiny" }] } });
    expect(await service.getServerCapabilities()).toEqual({ supportedModels: [{ modelName: "tiny" }] });
    expect(server.requests.map((request) => request.route)).toEqual(["/client/config", "/get_server_capabilities"]);
  });

  test("a base URL may have a path", async () => {
    const prefixed = await ScriptedServer.start("/services/tinker");
    prefixed.script("/get_server_capabilities", { json: { supported_models: [] } });
    await connect({ baseUrl: `${prefixed.url}/` }).getServerCapabilities();
    expect(prefixed.requests[0]!.url).toBe("/services/tinker/api/v1/client/config");
    await prefixed.close();
  });

  test("a key is exchanged for a token where the server wants it", async () => {
    const token = (claims: object) => `eyJ.${Buffer.from(JSON.stringify(claims)).toString("base64url")}.x`;
    const jwt = token({ sub: "user:1", email: "a@b.c", exp: Date.now() / 1000 + 3600 });
    server.config = { pjwt_auth_enabled: true };
    server.script("/auth/token", { json: { jwt } });
    server.script("/get_server_capabilities", { json: { supported_models: [] } });
    const service = connect();
    await service.getServerCapabilities();
    expect(server.seen("/auth/token")[0]!.headers["x-api-key"]).toBe("tml-test");
    expect(server.seen("/get_server_capabilities")[0]!.headers["x-api-key"]).toBe(jwt);
    expect(await service.createRestClient().whoami()).toEqual({ userUrn: "user:1", email: "a@b.c" });
  });

  test("a token that is about to expire is renewed before a request; if that fails, the old one is used", async () => {
    const token = (name: string, seconds: number) =>
      `eyJ.${Buffer.from(JSON.stringify({ sub: name, exp: Date.now() / 1000 + seconds })).toString("base64url")}.x`;
    const [old, fresh] = [token("old", 30), token("fresh", 3600)];
    server.config = { pjwt_auth_enabled: true };
    server.script(
      "/auth/token",
      { json: { jwt: old } },
      { status: 403, json: { detail: "no" } },
      { json: { jwt: fresh } },
    );
    for (let count = 0; count < 2; count++)
      server.script("/get_server_capabilities", { json: { supported_models: [] } });
    const service = connect();
    await service.getServerCapabilities();
    await service.getServerCapabilities();
    expect(server.seen("/get_server_capabilities").map((request) => request.headers["x-api-key"])).toEqual([
      old,
      fresh,
    ]);
  });

  test("the session gets tags, metadata and project, and the server's warnings are passed on", async () => {
    const warnings: string[] = [];
    server.script("/create_session", { json: { session_id: "s9", warning_message: "old client" } });
    const service = connect({
      tags: ["a", "a", "b"],
      userMetadata: { who: "me" },
      projectId: "p",
      onWarning: (message) => warnings.push(message),
    });
    await service.createSamplingClient({ baseModel: "tiny" });
    expect(server.seen("/create_session")[0]!.json).toEqual({
      type: "create_session",
      tags: ["a", "b"],
      user_metadata: { who: "me" },
      sdk_version: "0.36.0",
      project_id: "p",
    });
    expect(warnings).toEqual(["The server says: old client"]);
  });

  test("heartbeats carry the session and the key", async () => {
    const service = connect({ timings: { heartbeatIntervalMs: 5 } });
    await service.createSamplingClient({ baseModel: "tiny" });
    while (server.seen("/session_heartbeat").length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
    const [beat] = server.seen("/session_heartbeat");
    expect(beat!.json).toEqual({ type: "session_heartbeat", session_id: "s1" });
    expect(beat!.headers["x-api-key"]).toBe("tml-test");
  });

  test("a session that the server forgot is told once", async () => {
    const warnings: string[] = [];
    const service = connect({ timings: { heartbeatIntervalMs: 5 }, onWarning: (message) => warnings.push(message) });
    server.script("/session_heartbeat", ...Array.from({ length: 1000 }, () => ({ status: 404, json: {} })));
    await service.createSamplingClient({ baseModel: "tiny" });
    const pause = () => new Promise((resolve) => setTimeout(resolve, 5));
    while (warnings.length === 0) await pause();
    // Later beats get the same answer.
    const seen = server.seen("/session_heartbeat").length;
    while (server.seen("/session_heartbeat").length < seen + 3) await pause();
    await service.close();
    expect(warnings).toEqual([expect.stringContaining("no longer knows this session")]);
  });

  test("heartbeats go on while the main thread is busy", async () => {
    const beats = new Int32Array(new SharedArrayBuffer(4));
    // A server in a thread of its own, which counts beats where a busy loop can see them.
    const thread = new Worker(
      `const { createServer } = require("node:http");
      const { parentPort, workerData } = require("node:worker_threads");
      const server = createServer((request, response) => {
        if (request.url.endsWith("/session_heartbeat")) Atomics.add(workerData, 0, 1);
        request.resume().on("end", () => response.end('{"session_id":"s1","sampling_session_id":"x"}'));
      }).listen(0, "127.0.0.1", () => parentPort.postMessage(server.address().port));`,
      { eval: true, workerData: beats },
    );
    const port = await new Promise<number>((resolve) => thread.once("message", resolve));
    const service = connect({ baseUrl: `http://127.0.0.1:${port}`, timings: { heartbeatIntervalMs: 5 } });
    await service.createSamplingClient({ baseModel: "tiny" });
    const target = Atomics.load(beats, 0) + 5;
    const giveUp = performance.now() + 60_000;
    while (Atomics.load(beats, 0) < target && performance.now() < giveUp);
    expect(Atomics.load(beats, 0)).toBeGreaterThanOrEqual(target);
    await thread.terminate();
  });

  test("a process that does not close its client ends by itself", async () => {
    const script = `
      const { ServiceClient } = await import(${JSON.stringify(new URL("./index.ts", import.meta.url).href)});
      const service = new ServiceClient({ apiKey: "tml-test", baseUrl: ${JSON.stringify(server.url)} });
      const sampling = await service.createSamplingClient({ baseModel: "tiny" });
      await sampling.sample({ prompt: [1] });
      console.log("done");`;
    const child = spawn(process.execPath, [...typescriptFlags, "--input-type=module", "--eval", script]);
    let output = "";
    child.stdout.on("data", (chunk: Buffer) => {
      output += chunk.toString();
    });
    child.stderr.on("data", (chunk: Buffer) => {
      output += chunk.toString();
    });
    const code = await new Promise((resolve) => child.once("exit", resolve));
    expect({ code, output }).toEqual({ code: 0, output: "done\n" });
  });

  test.each([
    [{ apiKey: "sk-123" }, "client/bad-api-key"],
    [{ apiKey: "tml-x", baseUrl: "localhost:1" }, "client/invalid-input"],
  ])("wrong options are refused when the client is made", (options, code) => {
    expect(() => new ServiceClient(options)).toThrow(expect.objectContaining({ code }));
  });

  test("without a key the message says where to put one", () => {
    const saved = process.env["TINKER_API_KEY"];
    delete process.env["TINKER_API_KEY"];
    try {
      expect(() => new ServiceClient()).toThrow(/TINKER_API_KEY/);
    } finally {
      if (saved !== undefined) process.env["TINKER_API_KEY"] = saved;
    }
  });
});
