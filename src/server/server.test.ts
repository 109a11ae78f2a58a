// The server over real HTTP, with the simulated engine behind it: what a client on the wire can rely on.
import { expect, test } from "vitest";
import {
  call,
  newFolder,
  newModel,
  numbers,
  poll,
  pollOnce,
  start,
  stepBody,
  trainBody,
} from "../../test/support/tinker-server.ts";
import { EngineError } from "../engine/errors.ts";
import { SimulatedEngine, simulatedModelName } from "../engine/simulated/engine.ts";
import {
  decodeForwardBackwardOutput,
  decodeSampleResponse,
  encodeForwardBackwardRequest,
  tensor,
  textInput,
} from "../protocol/index.ts";

test("a repeat of a training request is the same request, and is applied once", async () => {
  const server = await start();
  const { modelId } = await newModel(server);
  const train = await call(server, "/forward_backward", trainBody(modelId, 1));
  expect((await call(server, "/forward_backward", trainBody(modelId, 1))).body).toEqual(train.body);
  const steps = await Promise.all([2, 2, 2].map((seq) => call(server, "/optim_step", stepBody(modelId, seq))));
  expect(new Set(steps.map((reply) => reply.body.request_id)).size).toBe(1);
  expect((await poll(server, steps[0]!)).body.metrics.step).toBe(1);
  expect(server.app.registry.model(modelId).appliedSteps).toBe(1);
  const other = await call(server, "/optim_step", stepBody(modelId, 2, { learning_rate: 0.2 }));
  expect([other.status, other.body.code]).toEqual([400, "server/sequence-reused"]);
});

test("requests run in the order of their numbers: chunks 2 and 3 wait for chunk 1", async () => {
  const server = await start();
  const { modelId } = await newModel(server);
  const step = await call(server, "/optim_step", stepBody(modelId, 3));
  const second = await call(server, "/forward_backward", trainBody(modelId, 2));
  expect(server.app.operations.futures.pending).toBe(2);
  const first = await call(server, "/forward_backward", trainBody(modelId, 1));
  const before = (await poll(server, first)).body.loss_fn_outputs[0].logprobs.data;
  expect((await poll(server, second)).body.loss_fn_outputs[0].logprobs.data).toEqual(before);
  expect((await poll(server, step)).body.metrics.step).toBe(1);
});

test("a gap is passed over after its time, and a refused request leaves none", async () => {
  const server = await start({ gapLimitMs: 30 });
  const { modelId } = await newModel(server);
  const late = await call(server, "/optim_step", stepBody(modelId, 4));
  expect((await poll(server, late)).body.metrics.step).toBe(1);
  expect((await call(server, "/optim_step", stepBody(modelId, 2))).body.code).toBe("server/sequence-passed");

  const patient = await start({ gapLimitMs: 600_000 });
  const model = await newModel(patient);
  const bad = await call(patient, "/forward_backward", trainBody(model.modelId, 1, { loss_fn: "nope" }));
  expect([bad.status, bad.body.code]).toEqual([400, "server/unknown-loss"]);
  const next = await call(patient, "/optim_step", stepBody(model.modelId, 2));
  expect((await poll(patient, next)).body.metrics.step).toBe(1);
});

test("a refused number may also be used again by the next request", async () => {
  const server = await start({ gapLimitMs: 600_000 });
  const { modelId } = await newModel(server);
  expect((await call(server, "/optim_step", stepBody(modelId, 1, { beta1: 2 }))).body.code).toBe("server/adam");
  const good = await call(server, "/optim_step", stepBody(modelId, 1));
  expect((await poll(server, good)).body.metrics.step).toBe(1);
});

test("creating with the same numbers gives the same model and sampler", async () => {
  const server = await start();
  const { sessionId } = await newModel(server);
  const body = { session_id: sessionId, model_seq_id: 7, base_model: simulatedModelName };
  const [a, b] = [await call(server, "/create_model", body), await call(server, "/create_model", body)];
  expect(a.body).toEqual(b.body);
  expect((await poll(server, a)).body.model_id).toBe(`${sessionId}:train:7`);
  const sampler = { session_id: sessionId, sampling_session_seq_id: 2, base_model: simulatedModelName };
  const samplers = [
    await call(server, "/create_sampling_session", sampler),
    await call(server, "/create_sampling_session", sampler),
  ];
  expect(samplers.map((reply) => reply.body.sampling_session_id)).toEqual(Array(2).fill(`${sessionId}:sample:2`));
});

test("JSON and protobuf give the same numbers, in requests and in results", async () => {
  const server = await start();
  const { modelId } = await newModel(server);
  const json = await poll(server, await call(server, "/forward_backward", trainBody(modelId, 1)));
  const raw = encodeForwardBackwardRequest({
    modelId,
    seqId: 2,
    data: [
      {
        modelInput: textInput(Int32Array.of(5, 6, 7)),
        lossFnInputs: { target_tokens: tensor(Int32Array.of(6, 7, 8)), weights: tensor(Float32Array.of(0, 1, 1)) },
      },
    ],
    lossFn: "cross_entropy",
    lossFnConfig: {},
    forwardOnly: true,
  });
  const sent = await call(server, "/forward_backward", undefined, {
    raw: new Uint8Array(raw),
    headers: { "Content-Type": "application/x-protobuf" },
  });
  const proto = await poll(server, sent, { Accept: "application/x-protobuf" });
  expect(proto.headers.get("content-type")).toBe("application/x-protobuf");
  const output = decodeForwardBackwardOutput(proto.body);
  expect([...output.lossFnOutputs[0]!["logprobs"]!.data]).toEqual(json.body.loss_fn_outputs[0].logprobs.data);
  expect(output.metrics).toEqual(json.body.metrics);
  expect(Object.keys(output.metrics)).toContain("loss:sum");
});

test("the older /forward route computes without a gradient", async () => {
  const server = await start();
  const { modelId } = await newModel(server);
  const { forward_backward_input, ...rest } = trainBody(modelId, 1);
  const forward = await call(server, "/forward", { ...rest, forward_input: forward_backward_input });
  expect((await poll(server, forward)).body.metrics["loss:sum"]).toBeGreaterThan(0);
  const step = await poll(server, await call(server, "/optim_step", stepBody(modelId, 2)));
  expect(step.body.metrics.grad_norm).toBe(0);
});

test("large bodies are read in a worker, with the same checks", async () => {
  const server = await start();
  const { modelId } = await newModel(server);
  const length = 30_000;
  const long = (last: number) => ({
    model_input: { chunks: [{ type: "encoded_text", tokens: Array.from({ length }, (_, index) => index % 500) }] },
    loss_fn_inputs: {
      target_tokens: numbers(Array(length).fill(3), "int64"),
      weights: numbers([...Array(length - 1).fill(0.123456789), last], "float32"),
    },
  });
  const good = await call(server, "/forward_backward", trainBody(modelId, 1, { data: [long(1), long(1)] }));
  expect((await poll(server, good)).body.loss_fn_outputs[1].logprobs.data).toHaveLength(length);
  const text = JSON.stringify(trainBody(modelId, 2, { data: [long(1), long(2)] }));
  const bad = await call(server, "/forward_backward", undefined, { raw: text.replace(/2\]/g, "1e999]") });
  expect([bad.status, bad.body.code]).toEqual([400, "server/non-finite"]);
  const cut = await call(server, "/forward_backward", undefined, { raw: text.slice(0, -20) });
  expect([cut.status, cut.body.code]).toEqual([400, "server/malformed-body"]);
});

test("a poll is held, then told to try again; a result that comes meanwhile is answered at once", async () => {
  const server = await start({ pollHoldMs: 20, gapLimitMs: 600_000 });
  const { modelId } = await newModel(server);
  const waiting = await call(server, "/optim_step", stepBody(modelId, 2));
  const held = await pollOnce(server, waiting);
  expect([held.status, held.body.type, held.body.queue_state]).toEqual([408, "try_again", "active"]);
  const answered = poll(server, waiting);
  await call(server, "/optim_step", stepBody(modelId, 1));
  expect((await answered).status).toBe(200);
});

test("a failed operation is answered with status 200, its category and its code", async () => {
  const server = await start();
  const { modelId } = await newModel(server);
  const body = { model_id: modelId, seq_id: 1, path: `tinker://${modelId}/weights/never`, optimizer: false };
  const reply = await poll(server, await call(server, "/load_weights", body));
  expect(reply.status).toBe(200);
  expect(reply.body).toMatchObject({ category: "user", code: "server/checkpoint-not-found" });
  expect(reply.body.error).toContain("[server/checkpoint-not-found]");
});

test("large results are announced by their size first, to clients that ask for it", async () => {
  const server = await start({ announceBytes: 1 });
  const { modelId } = await newModel(server);
  const sent = await call(server, "/forward_backward", trainBody(modelId, 1));
  const ask = (allow: boolean) =>
    call(server, "/retrieve_future", { request_id: sent.body.request_id, allow_metadata_only: allow });
  expect((await ask(true)).body).toMatchObject({ status: "complete_metadata" });
  expect((await ask(false)).body.loss_fn_outputs).toHaveLength(1);
});

test("a full queue answers 429 with Retry-After, but lets the request through that the others wait for", async () => {
  const server = await start({ maxQueue: 3, gapLimitMs: 600_000 });
  const { modelId } = await newModel(server);
  const waiting = [];
  for (const seq of [2, 3, 4]) waiting.push(await call(server, "/optim_step", stepBody(modelId, seq)));
  const full = await call(server, "/optim_step", stepBody(modelId, 5));
  expect([full.status, full.body.code, full.headers.get("retry-after")]).toEqual([429, "server/queue-full", "1"]);
  expect((await call(server, "/optim_step", stepBody(modelId, 1))).status).toBe(200);
  for (const reply of waiting) expect((await poll(server, reply)).status).toBe(200);
  expect((await call(server, "/optim_step", stepBody(modelId, 5))).status).toBe(200);
});

test("samples stop at strings, repeat by seed, and come in both encodings", async () => {
  const server = await start({
    text: () => ({
      decode: (tokens) => tokens.map((token) => (token % 2 === 0 ? "ab" : "c")).join(""),
      controlToken: (text) => (text === "<|end|>" ? 40 : undefined),
    }),
  });
  const { sessionId } = await newModel(server);
  const created = await call(server, "/create_sampling_session", {
    session_id: sessionId,
    sampling_session_seq_id: 0,
    base_model: simulatedModelName,
  });
  const body = (seqId: number, stop?: unknown) => ({
    sampling_session_id: created.body.sampling_session_id,
    seq_id: seqId,
    num_samples: 4,
    prompt: { chunks: [{ type: "encoded_text", tokens: [1, 2, 3] }] },
    sampling_params: { max_tokens: 50, seed: 4, ...(stop !== undefined && { stop }) },
    prompt_logprobs: true,
    topk_prompt_logprobs: 2,
  });
  const first = await call(server, "/asample", body(0, "bc"));
  expect((await call(server, "/asample", body(0, "bc"))).body).toEqual(first.body);
  const json = await poll(server, first);
  for (const { tokens, stop_reason } of json.body.sequences) {
    const text = tokens.map((token: number) => (token % 2 === 0 ? "ab" : "c")).join("");
    if (stop_reason === "stop" && tokens.at(-1) !== 511) expect(text.indexOf("bc")).toBe(text.length - 2);
  }
  expect(json.body.prompt_logprobs).toHaveLength(3);
  expect(json.body.prompt_logprobs[0]).toBeNull();
  // A control token written as text is that token.
  const control = await poll(server, await call(server, "/asample", body(2, ["<|end|>", "no such text"])));
  const byId = await poll(server, await call(server, "/asample", body(3, [40])));
  expect(control.body.sequences).toEqual(byId.body.sequences);
  const proto = await poll(server, await call(server, "/asample", body(1, "bc")), { Accept: "application/x-protobuf" });
  const decoded = decodeSampleResponse(proto.body);
  expect(decoded.sequences.map(({ tokens }) => [...tokens])).toEqual(
    json.body.sequences.map(({ tokens }: { tokens: number[] }) => tokens),
  );
  expect(decoded.topkPromptLogprobs![1]).toHaveLength(2);
});

test("after a restart checkpoints and samplers work, and a trained model says that it is lost", async () => {
  const server = await start();
  const { sessionId, modelId } = await newModel(server);
  await poll(server, await call(server, "/forward_backward", trainBody(modelId, 1)));
  await poll(server, await call(server, "/optim_step", stepBody(modelId, 2)));
  await poll(server, await call(server, "/save_weights", { model_id: modelId, seq_id: 3, path: "kept" }));
  const before = await call(server, "/optim_step", stepBody(modelId, 4));
  await poll(server, before);
  await server.restart();
  expect((await poll(server, before)).body.code).toBe("server/request-lost");
  const lost = await call(server, "/optim_step", stepBody(modelId, 5));
  expect([lost.status, lost.body.code]).toEqual([404, "server/model-lost"]);
  expect(lost.body.detail).toContain("2 optimizer steps, the last with seq_id 4");
  const again = { session_id: sessionId, model_seq_id: 0, base_model: simulatedModelName };
  expect((await call(server, "/create_model", again)).body.code).toBe("server/model-lost");
  const resumed = await call(server, "/load_weights", {
    session_id: sessionId,
    model_seq_id: 1,
    path: `tinker://${modelId}/weights/kept`,
    optimizer: true,
  });
  expect((await poll(server, resumed)).body.model_id).toBe(`${sessionId}:train:1`);
  const step = await call(server, "/optim_step", stepBody(`${sessionId}:train:1`, 1));
  expect((await poll(server, step)).body.metrics.step).toBe(2);
});

test("a model that was never trained survives a restart", async () => {
  const server = await start();
  const { modelId } = await newModel(server);
  await server.restart();
  const reply = await call(server, "/forward_backward", trainBody(modelId, 1));
  expect((await poll(server, reply)).body.metrics["loss:sum"]).toBeGreaterThan(0);
});

test("a silent session ends, and its models are freed", async () => {
  const server = await start({ sessionTimeoutMs: 0 });
  const { sessionId, modelId } = await newModel(server);
  await call(server, "/session_heartbeat", { session_id: sessionId });
  await new Promise((resolve) => setTimeout(resolve, 2));
  await server.app.sweep();
  expect((await call(server, "/optim_step", stepBody(modelId, 1))).body.code).toBe("server/model-unloaded");
});

test("closing answers what is in flight and refuses what comes after", async () => {
  const server = await start({ drainMs: 5000 }, { trainingLatency: "constant:1000" });
  const { modelId } = await newModel(server);
  const sent = await call(server, "/optim_step", stepBody(modelId, 1));
  const answer = poll(server, sent);
  // The poll must have arrived before the doors close: then someone waits for the result.
  const { waiters } = server.app.operations.futures.get(sent.body.request_id);
  const idle = waiters.size;
  while (waiters.size === idle) await new Promise((resolve) => setTimeout(resolve, 1));
  const closed = server.close();
  expect((await answer).body.metrics.step).toBe(1);
  await closed;
  await expect(call(server, "/healthz")).rejects.toThrow();
});

test("an engine that is gone for good is reported, and the requests that met it fail", async () => {
  class DyingEngine extends SimulatedEngine {
    override async optimStep(): Promise<never> {
      throw new EngineError("engine/worker-died", "The engine is gone.", { fault: "server" });
    }
  }
  let lost: Error | undefined;
  const server = await start({
    createEngine: async () => new DyingEngine(),
    onEngineLost: (error) => {
      lost = error;
    },
  });
  const { modelId } = await newModel(server);
  const reply = await poll(server, await call(server, "/optim_step", stepBody(modelId, 1)));
  expect(reply.body).toMatchObject({ category: "server", code: "engine/worker-died" });
  expect(lost?.message).toBe("The engine is gone.");
});

test("a second server on the same state folder is refused", async () => {
  const stateDir = newFolder();
  const first = await start({ stateDir });
  await expect(start({ stateDir })).rejects.toMatchObject({ code: "server/state-locked" });
  await first.close();
  await start({ stateDir });
});

test("a server that is on its way out is waited for", async () => {
  const stateDir = newFolder();
  const first = await start({ stateDir });
  const second = start({ stateDir, lockWaitMs: 60_000 });
  await new Promise((resolve) => setTimeout(resolve, 200));
  await first.close();
  expect((await second).url).not.toBe(first.url);
});

test("samplers past the limit are closed and opened again; an unnamed snapshot is then gone, and says so", async () => {
  const server = await start({ maxSamplers: 2 });
  const { sessionId, modelId } = await newModel(server);
  const snapshot = await poll(
    server,
    await call(server, "/save_weights_for_sampler", { model_id: modelId, seq_id: 1, sampling_session_seq_id: 99 }),
  );
  const ids = [snapshot.body.sampling_session_id as string];
  for (const sequence of [0, 1, 2]) {
    const created = await call(server, "/create_sampling_session", {
      session_id: sessionId,
      sampling_session_seq_id: sequence,
      base_model: simulatedModelName,
    });
    ids.push(created.body.sampling_session_id);
  }
  const sample = async (id: string, seqId: number) => {
    const prompt = { chunks: [{ type: "encoded_text", tokens: [1] }] };
    const body = { sampling_session_id: id, seq_id: seqId, prompt, sampling_params: { max_tokens: 1, seed: 3 } };
    const sent = await call(server, "/asample", body);
    return sent.status === 200 ? (await poll(server, sent)).body.sequences[0].tokens : sent.body.code;
  };
  const [first, ...named] = ids as [string, string, string, string];
  const tokens = await sample(first, 0);
  const rounds = await Promise.all([1, 2, 3].flatMap((round) => named.map((id) => sample(id, round))));
  for (const result of rounds) expect(result).toEqual(tokens);
  expect(await sample(first, 1)).toBe("server/sampler-gone");
});

test("only so many models are held at once; an unloaded one makes room", async () => {
  const server = await start({ maxModels: 1 });
  const { sessionId, modelId } = await newModel(server);
  const body = { session_id: sessionId, model_seq_id: 1, base_model: simulatedModelName };
  expect((await call(server, "/create_model", body)).body.code).toBe("server/model-limit");
  await poll(server, await call(server, "/unload_model", { model_id: modelId }));
  expect((await poll(server, await call(server, "/create_model", body))).body.model_id).toBe(`${sessionId}:train:1`);
});
