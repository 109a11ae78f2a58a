// What SDK versions since 0.26 rely on, at the level of the wire: names, numbers of 64 bits, sessions that end, files to download.
import { expect, test } from "vitest";
import { call, datum, newModel, numbers, poll, start, stepBody, trainBody } from "../../test/support/tinker-server.ts";
import { simulatedModelName } from "../engine/simulated/engine.ts";
import { decodeSampleResponse, encode, sampleResponse } from "../protocol/index.ts";

type Server = Awaited<ReturnType<typeof start>>;

async function newSampler(server: Server) {
  const { sessionId, modelId } = await newModel(server);
  const made = await call(server, "/create_sampling_session", {
    session_id: sessionId,
    sampling_session_seq_id: 0,
    base_model: simulatedModelName,
  });
  const sampler = made.body.sampling_session_id as string;
  /** Written by hand: JSON.stringify would round. */
  const sample = (seqId: string, seed: string, tokens = "[1,2,3]", more = "") =>
    call(server, "/asample", undefined, {
      raw: `{"sampling_session_id":"${sampler}","seq_id":${seqId},"num_samples":2,"prompt":{"chunks":[{"type":"encoded_text","tokens":${tokens}}]},"sampling_params":{"max_tokens":6,"seed":${seed}}${more}}`,
    });
  return { sessionId, modelId, sampler, sample };
}

test("sequence ids beyond 2^53 are not rounded: neighbours are two requests, and a repeat is one", async () => {
  const server = await start();
  const { sample } = await newSampler(server);
  // Around here 65 neighbours are one double.
  const first = 889_999_999_000_000_000n;
  const replies = await Promise.all(Array.from({ length: 40 }, (_, i) => sample(`${first + BigInt(i)}`, `${i}`)));
  expect(replies.map(({ status }) => status)).toEqual(replies.map(() => 200));
  expect(new Set(replies.map(({ body }) => body.request_id)).size).toBe(40);
  const again = await sample(`${first + 7n}`, "7");
  expect(again.body).toEqual(replies[7]!.body);
  expect(again.body.sample_sequence_ids).toHaveLength(2);
  const ids = replies.flatMap(({ body }) => body.sample_sequence_ids as string[]);
  expect(new Set(ids).size).toBe(80);
  expect((await sample(`${first + 7n}`, "8")).body.code).toBe("server/sequence-reused");
  expect((await sample("9223372036854775808", "1")).body.code).toBe("server/sequence-number");
});

test("seeds beyond 2^53 are not rounded either", async () => {
  const server = await start();
  const { sample } = await newSampler(server);
  const tokens = async (seq: number, seed: string) =>
    (await poll(server, await sample(`${seq}`, seed))).body.sequences.map((one: { tokens: number[] }) => one.tokens);
  expect(await tokens(0, "18446744073709551615")).toEqual(await tokens(1, "18446744073709551615"));
  expect(await tokens(2, "18446744073709551614")).not.toEqual(await tokens(3, "18446744073709551615"));
});

test("text that looks like a long number of ours stays text", async () => {
  const server = await start();
  const stop = JSON.stringify(['"seq_id":12345678901234567890', "\\"]);
  const { sample } = await newSampler(server);
  const reply = await sample("4", "1", "[1,2]", `,"user":{"note":${stop}}`);
  expect(reply.status).toBe(200);
});

test("a repeat is known by its content: other data of the same size are another request", async () => {
  const server = await start();
  const { modelId } = await newModel(server);
  const changed = (inputs: object) => ({
    data: [{ ...datum, loss_fn_inputs: { ...datum.loss_fn_inputs, ...inputs } }],
  });
  const first = await call(server, "/forward_backward", trainBody(modelId, 1));
  expect(first.status).toBe(200);
  for (const other of [
    changed({ target_tokens: numbers([6, 7, 9], "int64") }),
    changed({ weights: numbers([1, 0, 1], "float32") }),
    { data: [{ ...datum, model_input: { chunks: [{ type: "encoded_text", tokens: [5, 6, 8] }] } }] },
  ]) {
    const reply = await call(server, "/forward_backward", trainBody(modelId, 1, other));
    expect([reply.status, reply.body.code]).toEqual([400, "server/sequence-reused"]);
  }
  // The order of a map's entries does not matter.
  const { target_tokens, weights } = datum.loss_fn_inputs;
  const reordered = { data: [{ ...datum, loss_fn_inputs: { weights, target_tokens } }] };
  expect((await call(server, "/forward_backward", trainBody(modelId, 1, reordered))).body).toEqual(first.body);
});

test("two prompts of one length are two requests", async () => {
  const server = await start();
  const { sample } = await newSampler(server);
  expect((await sample("1", "1", "[1,2,3]")).status).toBe(200);
  expect((await sample("1", "1", "[1,2,4]")).body.code).toBe("server/sequence-reused");
});

test.each<[string, string, (modelId: string) => object]>([
  ["/optim_step", "server/optimizer", (id) => ({ model_id: id, seq_id: 1, optimizer_params: { type: "dimuon" } })],
  ["/optim_step", "server/invalid-message", (id) => ({ model_id: id, seq_id: 1 })],
  ["/optim_step", "server/invalid-message", (id) => ({ model_id: id, seq_id: 1, adam_params: { eps: "no" } })],
  ["/forward_backward", "server/invalid-message", (id) => ({ model_id: id, seq_id: 1, forward_backward_input: {} })],
  ["/save_weights", "server/invalid-message", (id) => ({ model_id: id, seq_id: 1, path: 7 })],
  [
    "/save_weights_external",
    "server/age-recipient",
    (id) => ({ model_id: id, seq_id: 1, path: "a", age_encryption_recipients: ["age1x"] }),
  ],
])("%s refused as %s leaves no gap: the next request runs at once", async (route, code, body) => {
  const server = await start({ gapLimitMs: 600_000 });
  const { modelId } = await newModel(server);
  const refused = await call(server, route, body(modelId));
  expect([refused.status >= 400 && refused.status < 500, refused.body.code]).toEqual([true, code]);
  const next = await call(server, "/optim_step", stepBody(modelId, 2));
  expect((await poll(server, next)).body.metrics.step).toBe(1);
});

test("a finished session takes no more work, and the first word on how it ended counts", async () => {
  const server = await start();
  const { sessionId, modelId } = await newModel(server);
  const finish = (type: string) => call(server, `/sessions/${sessionId}/finish`, { reason: { type }, detail: null });
  expect([(await finish("errored")).status, (await finish("success")).status]).toEqual([204, 204]);
  expect(server.app.registry.session(sessionId).finished).toEqual({ reason: "errored" });
  expect((await call(server, "/session_heartbeat", { session_id: sessionId })).status).toBe(410);
  expect((await call(server, "/optim_step", stepBody(modelId, 1))).body.code).toBe("server/model-unloaded");
  const model = { session_id: sessionId, model_seq_id: 1, base_model: simulatedModelName };
  expect((await call(server, "/create_model", model)).body.code).toBe("server/session-finished");
  const search = (body: object) => call(server, "/sessions/search", body).then((reply) => reply.body.sessions.length);
  expect(await search({ statuses: [{ type: "active" }] })).toBe(0);
  expect(await search({ statuses: [{ type: "client_finished", reasons: ["errored"] }] })).toBe(1);
  await server.restart();
  expect(server.app.registry.session(sessionId).finished?.reason).toBe("errored");
});

test("a bare checkpoint name is enough where it names one checkpoint", async () => {
  const server = await start();
  const { modelId } = await newModel(server);
  const save = async (route: string, seq: number, path: string) =>
    poll(server, await call(server, route, { model_id: modelId, seq_id: seq, path }));
  await save("/save_weights", 1, "twice");
  await save("/save_weights_for_sampler", 2, "twice");
  const remove = (id: string) =>
    call(server, `/training_runs/${modelId}/checkpoints/${id}`, undefined, { method: "DELETE" });
  expect((await remove("twice")).body.code).toBe("server/checkpoint-ambiguous");
  expect((await remove("weights/twice")).status).toBe(204);
  expect((await remove("twice")).status).toBe(204);
  expect((await remove("twice")).body.code).toBe("server/checkpoint-not-found");
});

test("listings leave external weights out for SDK versions that refuse them", async () => {
  const server = await start();
  const { modelId } = await newModel(server);
  const body = { model_id: modelId, seq_id: 1, path: "files" };
  const saved = await poll(server, await call(server, "/save_weights_external", body));
  expect(saved.body).toMatchObject({ path: `tinker://${modelId}/external_weights/files` });
  const listed = (agent: string) =>
    call(server, `/training_runs/${modelId}/checkpoints`, undefined, { headers: { "User-Agent": agent } });
  expect((await listed("AsyncTinker/Python 0.27.2")).body.checkpoints).toHaveLength(0);
  expect((await listed("AsyncTinker/Python 0.28.0")).body.checkpoints).toHaveLength(1);
  expect((await listed("curl/8")).body.checkpoints).toHaveLength(1);
});

test("one poll tells which samples have finished, from where the client was; a cancelled one has failed", async () => {
  const server = await start({ pollHoldMs: 60 }, { samplingLatency: "constant:1000" });
  const { sample, sampler } = await newSampler(server);
  const ask = (cursor: number, retrieved: string[] = []) =>
    call(server, "/retrieve_futures", {
      target: { type: "sampling_session", sampling_session_id: sampler, cloned_sampler_id: 0 },
      prev_cursor: cursor,
      retrieved_request_ids: retrieved,
    }).then((reply) => reply.body);
  const ids = [(await sample("0", "1")).body.request_id, (await sample("1", "2")).body.request_id] as const;
  await call(server, "/cancel_future", { request_id: ids[1] });
  const seen: Record<string, string> = {};
  let cursor = 0;
  while (Object.keys(seen).length < 2) {
    const answer = await ask(cursor);
    for (const { request_id, state } of answer.completions) seen[request_id] = state;
    cursor = answer.cursor;
  }
  expect(seen).toEqual({ [ids[0]]: "finished", [ids[1]]: "failed" });
  expect((await ask(cursor, [ids[0]])).completions).toEqual([]);
  expect((await call(server, "/retrieve_future", { request_id: ids[0] })).body.code).toBe("server/request-expired");
  await server.restart();
  expect((await ask(cursor)).code).toBe("server/request-lost");
});

test("copying weights again with the same key is the same copy", async () => {
  const server = await start();
  const { modelId } = await newModel(server);
  await poll(server, await call(server, "/save_weights", { model_id: modelId, seq_id: 1, path: "a" }));
  const copy = (key: string) =>
    call(
      server,
      "/copy_weights",
      { destination_project_id: "p", source_path: `tinker://${modelId}/weights/a` },
      { headers: { "X-Idempotency-Key": key } },
    ).then((reply) => reply.body.tinker_path);
  const [first, again, other] = [await copy("k1"), await copy("k1"), await copy("k2")];
  expect(again).toBe(first);
  expect(other).not.toBe(first);
  expect((await call(server, "/training_runs?project_id=p")).body.training_runs).toHaveLength(2);
});

test("every question about a sample is answered alike in both encodings, sparse ones in their own layout", async () => {
  const server = await start();
  const { sample } = await newSampler(server);
  const sparse =
    '{"dtype":"int64","data":[5,7,9],"shape":[2,2000000000],"sparse_crow_indices":[0,2,3],"sparse_col_indices":[0,1999999999,4]}';
  const asked = `,"prompt_logprobs":true,"topk_prompt_logprobs":2,"topk_sample_logprobs":3,"prompt_alt_tokens_k":2,"prompt_logprobs_last_n":1,"target_prompt_logprobs":${sparse}`;
  const submitted = await sample("0", "3", "[1,2,3]", asked);
  expect((await sample("0", "3", "[1,2,3]", asked)).body).toEqual(submitted.body);
  expect((await sample("0", "3", "[1,2,3]", asked.replace("[5,7,9]", "[5,7,8]"))).body.code).toBe(
    "server/sequence-reused",
  );
  const json = (await poll(server, submitted)).body;
  const proto = decodeSampleResponse((await poll(server, submitted, { Accept: "application/x-protobuf" })).body);
  expect(encode(sampleResponse, proto)).toEqual({ ...json, type: undefined });
  expect(json.prompt_logprobs.slice(0, 2)).toEqual([null, null]);
  expect(json.topk_prompt_logprobs.map((row: unknown[] | null) => row?.length)).toEqual([undefined, undefined, 2]);
  const { data, shape, sparse_crow_indices: rows } = json.target_prompt_logprobs;
  expect([data.length, data.every((value: number) => value < 0), shape, rows]).toEqual([3, true, [2, 2e9], [0, 2, 3]]);
  expect(json.prompt_alt_tokens.tokens.shape).toEqual([2, 2]);
  for (const { tokens, topk_sampled_logprobs } of json.sequences)
    expect(topk_sampled_logprobs).toHaveLength(tokens.length);
});

test.each([
  [`"topk_prompt_logprobs":257`, /^topk_prompt_logprobs=257 is out of range. Send 0 to 256/],
  [`"topk_sample_logprobs":-1`, /^topk_sample_logprobs=-1/],
  [`"prompt_alt_tokens_k":100000000`, /^prompt_alt_tokens_k/],
  [`"prompt_logprobs_last_n":1`, /not asked for/],
  [`"prompt_logprobs":true,"prompt_logprobs_last_n":3`, /Send 1 to 2/],
  [`"target_prompt_logprobs":{"dtype":"float32","data":[1,2],"shape":[2,1]}`, /dtype float32/],
  [`"target_prompt_logprobs":{"dtype":"int64","data":[1,2,3],"shape":[3,1]}`, /shape \[3,1\]/],
  [`"target_prompt_logprobs":{"dtype":"int64","data":[1],"shape":[2,1]}`, /does not fit together/],
  [`"target_prompt_logprobs":{"dtype":"int64","data":[-1,-1],"shape":[2,1]}`, /no token at all/],
  [`"target_prompt_logprobs":{"dtype":"int64","data":[-2,9],"shape":[2,1]}`, /token id -2/],
  [`"target_prompt_logprobs":{"dtype":"int64","data":[9,9007199254740991],"shape":[2,1]}`, /token id 9007199254740991/],
])("%s is refused with what is wrong", async (asked, message) => {
  const server = await start();
  const { sample } = await newSampler(server);
  const { status, body } = await sample("0", "1", "[1,2,3]", `,${asked}`);
  expect([status, body.code]).toEqual([400, "server/sampling"]);
  expect(body.detail).toMatch(message);
});

test.each(["-1", "1.5", '"one"', "true", "[1]", "2147483648", "9007199254740993", "1e300"])(
  "a training request with seq_id %s is refused, and nothing waits for it",
  async (seqId) => {
    const server = await start({ gapLimitMs: 600_000 });
    const { modelId } = await newModel(server);
    const refused = await call(server, "/optim_step", undefined, {
      raw: `{"model_id":"${modelId}","seq_id":${seqId},"adam_params":{}}`,
    });
    expect([400, 422]).toContain(refused.status);
    for (const seq of [1, 2])
      expect((await poll(server, await call(server, "/optim_step", stepBody(modelId, seq)))).body.metrics.step).toBe(
        seq,
      );
  },
);

test("a LoRA seed may have 64 bits", async () => {
  const server = await start();
  const { sessionId } = await newModel(server);
  const made = await call(server, "/create_model", undefined, {
    raw: `{"session_id":"${sessionId}","model_seq_id":1,"base_model":"${simulatedModelName}","lora_config":{"rank":8,"seed":18446744073709551615}}`,
  });
  expect((await poll(server, made)).body.model_id).toBe(`${sessionId}:train:1`);
});
