// Broken bodies on every route of a server started as users start it: it answers 4xx with a reason, does not crash, does not grow.
import { readFileSync } from "node:fs";
import { Agent, request } from "undici";
import { afterAll, expect, test } from "vitest";
import { Random } from "../../src/core/random.ts";
import { encodeForwardBackwardRequest, tensor, textInput } from "../../src/protocol/index.ts";
import { routeTable } from "../../src/server/index.ts";
import { foldersInMemory } from "../support/folders.ts";
import { type Body, malformed } from "./malformed.ts";
import { type ServeProcess, startServe } from "./serve-process.ts";

const wanted = 6_000;
const newFolder = foldersInMemory();
const agent = new Agent({ connections: 16, pipelining: 1 });
let server: ServeProcess | undefined;
afterAll(async () => {
  await agent.close();
  await server?.close();
});

interface Target {
  method: "GET" | "POST" | "PUT" | "DELETE";
  path: string;
  body?: Body;
}

const json = (value: unknown): Body => ({ type: "json", bytes: Buffer.from(JSON.stringify(value)) });

async function send(target: Target, body: Buffer | undefined, suffix = "") {
  const { baseUrl, apiKey } = server!;
  const answer = await request(`${baseUrl}/api/v1${target.path}${suffix}`, {
    dispatcher: agent,
    method: target.method,
    headers: {
      "x-api-key": apiKey,
      ...(body && { "content-type": target.body?.type === "protobuf" ? "application/x-protobuf" : "application/json" }),
    },
    ...(body && { body }),
  });
  return { status: answer.statusCode, headers: answer.headers, text: await answer.body.text() };
}

async function good<T>(path: string, body: unknown): Promise<T> {
  const { status, text } = await send({ method: "POST", path }, Buffer.from(JSON.stringify(body)));
  expect(status, text).toBe(200);
  return JSON.parse(text) as T;
}

/** Good requests for every route; the broken ones are made of these. */
async function targetsOf(): Promise<Target[]> {
  const { session_id } = await good<{ session_id: string }>("/create_session", { sdk_version: "fuzz" });
  const base_model = "whetstone/simulated";
  const { model_id } = await good<{ model_id: string }>("/create_model", { session_id, model_seq_id: 0, base_model });
  const sampling = { session_id, sampling_session_seq_id: 0, base_model };
  const { sampling_session_id } = await good<{ sampling_session_id: string }>("/create_sampling_session", sampling);
  const list = (data: number[], dtype: string) => ({ data, dtype, shape: [data.length] });
  const input = {
    data: [
      {
        model_input: { chunks: [{ type: "encoded_text", tokens: [1, 2, 3] }] },
        loss_fn_inputs: { target_tokens: list([2, 3, 4], "int64"), weights: list([1, 1, 1], "float32") },
      },
    ],
    loss_fn: "cross_entropy",
  };
  const protobuf = encodeForwardBackwardRequest({
    modelId: model_id,
    seqId: 0,
    data: [
      {
        modelInput: textInput(Int32Array.of(1, 2, 3)),
        lossFnInputs: { target_tokens: tensor(Int32Array.of(2, 3, 4)), weights: tensor(Float32Array.of(1, 1, 1)) },
      },
    ],
    lossFn: "cross_entropy",
    lossFnConfig: {},
    forwardOnly: false,
  });
  const adam_params = { learning_rate: 0.1, beta1: 0.9, beta2: 0.95, eps: 1e-12, weight_decay: 0, grad_clip_norm: 0 };
  const checkpoint = `/training_runs/${model_id}/checkpoints/weights/none`;
  const post = (path: string, value: unknown): Target => ({ method: "POST", path, body: json(value) });
  const get = (path: string): Target => ({ method: "GET", path });
  return [
    post("/client/config", { sdk_version: "1" }),
    post("/client/dynamic_config", { sdk_version: "1" }),
    post("/auth/token", {}),
    post("/create_session", { type: "create_session", tags: ["a"], user_metadata: { a: "b" }, sdk_version: "1" }),
    post("/session_heartbeat", { session_id, type: "session_heartbeat" }),
    post("/telemetry", { events: [{ event: "SESSION_START" }], platform: "x", sdk_version: "1", session_id }),
    post("/create_model", { session_id, model_seq_id: 0, base_model, lora_config: { rank: 32 }, type: "create_model" }),
    post("/unload_model", { model_id: "unknown:train:0", type: "unload_model" }),
    post("/get_info", { model_id, type: "get_info" }),
    post("/forward_backward", { model_id, seq_id: 0, forward_backward_input: input }),
    { method: "POST", path: "/forward_backward", body: { type: "protobuf", bytes: Buffer.from(protobuf) } },
    post("/forward", { model_id, seq_id: 0, forward_input: input }),
    post("/optim_step", { type: "optim_step", model_id, seq_id: 0, adam_params }),
    post("/save_weights", { type: "save_weights", model_id, path: "no/name", seq_id: 0, overwrite: false }),
    post("/save_weights_for_sampler", { type: "save_weights_for_sampler", model_id, path: "no/name", seq_id: 0 }),
    post("/load_weights", { type: "load_weights", model_id, seq_id: 0, path: "tinker://a/weights/b", optimizer: true }),
    post("/create_sampling_session", { ...sampling, type: "create_sampling_session" }),
    post("/asample", {
      type: "sample",
      sampling_session_id,
      seq_id: 0,
      num_samples: 1,
      prompt: { chunks: [{ type: "encoded_text", tokens: [1, 2] }] },
      sampling_params: { max_tokens: 1, seed: 1, temperature: 1, top_k: -1, top_p: 1, stop: [3] },
      prompt_logprobs: false,
      topk_prompt_logprobs: 0,
    }),
    post("/join_sampling_session", { type: "join_sampling_session", sampling_session_id: "none" }),
    post("/retrieve_futures", {
      target: { type: "sampling_session", sampling_session_id: "none", cloned_sampler_id: 0 },
      prev_cursor: 0,
      retrieved_request_ids: [],
    }),
    post("/cancel_future", { request_id: "0123456789ab-1" }),
    post("/save_weights_external", { type: "save_weights_external", model_id, path: "no/name", seq_id: 0 }),
    post("/create_custom_loss", { session_id, custom_loss_seq_id: 0, name: "x", inputs: [], graph: {} }),
    post("/copy_weights", { destination_project_id: "p", source_path: "tinker://a/weights/b" }),
    post(`/sessions/${session_id}x/finish`, { reason: { type: "success" }, detail: null }),
    post("/sessions/search", { owner: { type: "own" }, user_metadata: {}, limit: 50 }),
    { method: "DELETE", path: "/auth/apikey/me" },
    get("/auth/apikey/me"),
    get("/billing/usage/checkpoints/current"),
    get(`${checkpoint}/external_weights_urls`),
    get(`${checkpoint}/files/x`),
    post("/retrieve_future", { request_id: "0123456789ab-1", allow_metadata_only: true }),
    post("/weights_info", { tinker_path: "tinker://a/weights/b" }),
    { method: "PUT", path: `${checkpoint}/ttl`, body: json({ ttl_seconds: 5 }) },
    { method: "PUT", path: `/sessions/${session_id}x/project`, body: json({ project_id: "p" }) },
    { method: "POST", path: `${checkpoint}/publish` },
    { method: "DELETE", path: `${checkpoint}/publish` },
    { method: "DELETE", path: checkpoint },
    get(`${checkpoint}/archive`),
    get(`${checkpoint}/download`),
    get("/samplers/none"),
    get("/training_runs"),
    get("/training_runs/none"),
    get("/training_runs/none/checkpoints"),
    get("/checkpoints"),
    get("/sessions"),
    get("/sessions/none"),
    get("/sessions/none/trace_export"),
    get("/audit"),
    get("/billing/usage/events"),
    get("/get_server_capabilities"),
    get("/healthz"),
  ];
}

const residentBytes = () =>
  Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${server!.child.pid}/status`, "utf8"))![1]) * 1024;

test(`${wanted} broken requests over every route get 4xx answers with a reason; the server neither crashes nor grows`, async () => {
  server = await startServe(["engine=simulated", `state_dir=${newFolder()}`]);
  const targets = await targetsOf();
  for (const { name, method, pattern } of routeTable)
    expect(
      targets.some((target) => target.method === method && pattern.test(target.path)),
      name,
    ).toBe(true);

  const random = new Random("fuzz", 1);
  const counts = { refused: 0, stillGood: 0, wrong: [] as string[] };
  const perTarget = new Map<Target, number>();
  // What belongs into a query or a path cannot be broken by a body; those get broken addresses.
  const suffixes = [
    "/%ff",
    "/..%2f..",
    "?limit=x",
    "?offset=-1",
    `/${"y".repeat(3000)}`,
    "?event_type=no&day=x",
    "%00",
    "/a/b/c",
  ];
  const one = async (index: number) => {
    const target = targets[index % targets.length]!;
    const body = target.body ? malformed(target.body, random) : undefined;
    const suffix = target.body ? "" : suffixes[random.integer(suffixes.length)]!;
    const { status, headers, text } = await send(target, body, suffix);
    if (status >= 200 && status < 300) {
      counts.stillGood++;
      return;
    }
    const parsed = JSON.parse(text) as { detail?: unknown; code?: unknown };
    const fine =
      status >= 400 &&
      status < 500 &&
      Number(headers["content-length"]) > 0 &&
      typeof parsed.detail === "string" &&
      /^server\//.test(String(parsed.code));
    if (fine) {
      counts.refused++;
      perTarget.set(target, (perTarget.get(target) ?? 0) + 1);
    } else counts.wrong.push(`${target.path} ${status} ${text.slice(0, 200)}`);
  };
  let next = 0;
  const until = async (refused: number) => {
    const worker = async () => {
      while (counts.refused < refused && counts.wrong.length === 0) await one(next++);
    };
    await Promise.all(Array.from({ length: 16 }, worker));
  };
  await until(wanted / 3);
  const before = residentBytes();
  await until(wanted);
  const after = residentBytes();

  expect(counts.wrong).toEqual([]);
  expect(counts.refused).toBeGreaterThanOrEqual(wanted);
  expect(perTarget.size).toBeGreaterThanOrEqual(targets.length - 1);
  // Two thirds of the requests later: less than what one large body takes.
  expect((after - before) / 2 ** 20).toBeLessThan(48);
  expect(server.child.exitCode).toBeNull();
  expect((await send({ method: "GET", path: "/healthz" }, undefined)).status).toBe(200);
  expect(server.errors()).toBe("");
  if (process.env["WHETSTONE_FIGURES"])
    console.log({ ...counts, requests: next, beforeMiB: before / 2 ** 20, afterMiB: after / 2 ** 20 });
}, 300_000);
