// What the server refuses, over real HTTP: each with a status, a code, a length and a body.
import { connect } from "node:net";
import { expect, test } from "vitest";
import {
  call,
  datum,
  key,
  newModel,
  numbers,
  type Reply,
  start,
  stepBody,
  trainBody,
} from "../../test/support/tinker-server.ts";
import { simulatedModelName } from "../engine/simulated/engine.ts";

test("every refusal has a length, a body, a status and a code", async () => {
  const server = await start({ maxBodyBytes: 20_000 });
  const { sessionId, modelId } = await newModel(server);
  const proto = { "Content-Type": "application/x-protobuf" };
  const samplerReply = await call(server, "/create_sampling_session", {
    session_id: sessionId,
    sampling_session_seq_id: 0,
    base_model: simulatedModelName,
  });
  const sampler = samplerReply.body.sampling_session_id;
  const sample = (change: object, params: object = {}) => ({
    sampling_session_id: sampler,
    seq_id: 1,
    prompt: { chunks: [{ type: "encoded_text", tokens: [1] }] },
    sampling_params: { max_tokens: 4, ...params },
    ...change,
  });
  const inputs = (change: object) => ({ data: [{ ...datum, loss_fn_inputs: { ...datum.loss_fn_inputs, ...change } }] });
  let seq = 100;
  const train = (change: object) => call(server, "/forward_backward", trainBody(modelId, ++seq, change));
  const chunk = (chunks: unknown[]) => ({ data: [{ ...datum, model_input: { chunks } }] });
  const cases: [Promise<Reply>, number, string][] = [
    [call(server, "/client/config", {}, { headers: { "X-API-Key": "tml-wrong" } }), 401, "server/api-key"],
    [call(server, "/nothing", {}), 404, "server/unknown-route"],
    [call(server, "/optim_step"), 405, "server/method"],
    [call(server, "/optim_step", undefined, { raw: "{" }), 400, "server/malformed-body"],
    [call(server, "/optim_step", undefined, { raw: "[]" }), 400, "server/malformed-body"],
    [call(server, "/optim_step", undefined, { raw: `${"[".repeat(9000)}` }), 400, "server/malformed-body"],
    [call(server, "/create_session", { user_metadata: nested(90) }), 400, "server/malformed-body"],
    [call(server, "/optim_step", { model_id: 3 }), 422, "server/invalid-message"],
    [call(server, "/optim_step", {}, { headers: { "Content-Type": "text/plain" } }), 415, "server/content-type"],
    [call(server, "/optim_step", {}, { headers: { "Content-Encoding": "zstd" } }), 415, "server/content-encoding"],
    [call(server, "/forward_backward", undefined, { raw: "x".repeat(30_000) }), 413, "server/body-too-large"],
    [
      call(server, "/forward_backward", undefined, { raw: new Uint8Array([255, 1, 2]), headers: proto }),
      400,
      "server/malformed-body",
    ],
    [call(server, "/session_heartbeat", { session_id: "x" }), 404, "server/unknown-session"],
    [call(server, "/get_info", { model_id: "x" }), 404, "server/unknown-model"],
    [call(server, "/retrieve_future", { request_id: "x" }), 404, "server/unknown-request"],
    [call(server, "/samplers/x"), 404, "server/unknown-sampler"],
    [call(server, `/samplers/${sessionId}:sample:9`), 404, "server/sampler-gone"],
    [call(server, "/auth/token", {}), 400, "server/no-token-exchange"],
    [call(server, "/training_runs?limit=x"), 400, "server/query"],
    [call(server, "/training_runs/%ff"), 400, "server/bad-path"],
    [call(server, "/weights_info", { tinker_path: "nope" }), 400, "server/bad-path"],
    [
      call(server, "/create_model", { session_id: sessionId, model_seq_id: 5, base_model: "gpt" }),
      400,
      "server/unknown-base-model",
    ],
    [
      call(server, "/create_model", {
        session_id: sessionId,
        model_seq_id: 6,
        base_model: simulatedModelName,
        lora_config: { rank: 0 },
      }),
      400,
      "server/lora",
    ],
    [train({ data: [] }), 400, "server/no-data"],
    [train({ loss_fn: "reinforce" }), 400, "server/unknown-loss"],
    [train({ loss_fn: "stable_reinforce" }), 400, "server/unknown-loss"],
    [train({ loss_fn: "custom", loss_fn_config: { loss_id: "loss-0" } }), 400, "server/unknown-loss"],
    [train({ loss_fn: "gspo" }), 400, "server/loss-inputs"],
    [train({ loss_fn_config: { beta: 1 } }), 400, "server/loss-config"],
    [train({ loss_fn: "ppo" }), 400, "server/loss-inputs"],
    [train(inputs({ mask: numbers([1, 1, 1], "float32") })), 400, "server/loss-inputs"],
    [train(inputs({ weights: numbers([1, 1, 1], "int64") })), 400, "server/tensor"],
    [train(inputs({ weights: numbers([1, 1], "float32") })), 400, "server/tensor"],
    [train(inputs({ weights: { data: [1, 1, 1], dtype: "float32", shape: [3, 2] } })), 400, "server/tensor"],
    [train(inputs({ weights: { ...numbers([1, 1, 1], "float32"), shape: [3, 1] } })), 400, "server/tensor"],
    [train(inputs({ target_tokens: numbers([1, 2, 999], "int64") })), 400, "server/token-range"],
    [train(inputs({ target_tokens: numbers([1, 2, 2 ** 40], "int64") })), 400, "server/token-range"],
    [train(inputs({ weights: numbers([1, 1, 1e39], "float32") })), 400, "server/non-finite"],
    [
      train(
        inputs({
          weights: {
            data: [1],
            dtype: "float32",
            shape: [3, 2 ** 40],
            sparse_crow_indices: [0, 1, 1, 1],
            sparse_col_indices: [0],
          },
        }),
      ),
      400,
      "server/tensor",
    ],
    [train(chunk([{ type: "encoded_text", tokens: [] }])), 400, "server/no-tokens"],
    [train(chunk([{ type: "image", data: "aGk=", format: "png" }])), 400, "server/unsupported-input"],
    [train(chunk([{ type: "encoded_text", tokens: [1, -1, 2] }])), 400, "server/token-range"],
    [call(server, "/optim_step", stepBody(modelId, ++seq, { beta2: 1 })), 400, "server/adam"],
    [call(server, "/optim_step", stepBody(modelId, -3)), 400, "server/sequence-number"],
    [call(server, "/save_weights", { model_id: modelId, seq_id: ++seq, path: "a/b" }), 400, "server/checkpoint-name"],
    [call(server, "/save_weights", { model_id: modelId, seq_id: ++seq, path: "a", ttl_seconds: 0 }), 400, "server/ttl"],
    [call(server, "/save_weights_for_sampler", { model_id: modelId, seq_id: ++seq }), 400, "server/checkpoint-name"],
    [
      call(server, "/create_sampling_session", { session_id: sessionId, sampling_session_seq_id: 3 }),
      400,
      "server/sampler-source",
    ],
    [
      call(server, "/create_sampling_session", {
        session_id: sessionId,
        sampling_session_seq_id: 4,
        model_path: `tinker://${modelId}/weights/x`,
      }),
      400,
      "server/checkpoint-kind",
    ],
    [call(server, "/asample", sample({ num_samples: 0 })), 400, "server/sampling"],
    [call(server, "/asample", sample({}, { temperature: -1 })), 400, "server/sampling"],
    [call(server, "/asample", sample({}, { top_p: 0 })), 400, "server/sampling"],
    [call(server, "/asample", sample({}, { max_tokens: 40_000 })), 400, "server/context-length"],
    [call(server, "/asample", sample({}, { stop: ["x"] })), 400, "server/no-tokenizer"],
    [call(server, "/asample", sample({}, { stop: [512] })), 400, "server/token-range"],
    [call(server, "/asample", sample({ prompt: { chunks: [] } })), 400, "server/no-tokens"],
    [
      call(server, `/training_runs/${modelId}/checkpoints/weights/x`, undefined, { method: "DELETE" }),
      404,
      "server/checkpoint-not-found",
    ],
    [
      call(server, `/training_runs/${modelId}/checkpoints/weights/x/download?expires=1&signature=00`),
      403,
      "server/download-link",
    ],
  ];
  const seen = await Promise.all(
    cases.map(async ([reply, , wanted]) => {
      const { status, body, headers } = await reply;
      expect(Number(headers.get("content-length")), wanted).toBeGreaterThan(0);
      expect(body.detail, wanted).toContain(`[${body.code}]`);
      return [status, body.code];
    }),
  );
  expect(seen).toEqual(cases.map(([, status, code]) => [status, code]));
});

function nested(depth: number): object {
  let value: object = {};
  for (let level = 0; level < depth; level++) value = { value };
  return value;
}

test.each([
  ["not HTTP", "hello\r\n\r\n", 400],
  ["a bad length", "POST /api/v1/telemetry HTTP/1.1\r\nHost: x\r\nContent-Length: -4\r\n\r\n", 400],
  ["headers without end", `GET / HTTP/1.1\r\nX: ${"y".repeat(70_000)}\r\n\r\n`, 431],
])("%s is answered with a length and a body, and cut off", async (_name, text, status) => {
  const server = await start();
  const answer = await new Promise<string>((resolve) => {
    let received = "";
    const socket = connect(Number(new URL(server.url).port), "127.0.0.1", () => socket.write(text));
    socket.on("data", (chunk: Buffer) => {
      received += chunk.toString();
    });
    socket.on("error", () => {});
    socket.on("close", () => resolve(received));
  });
  const [head, body] = answer.split("\r\n\r\n");
  expect(head).toContain(`HTTP/1.1 ${status} `);
  expect(head).toContain(`Content-Length: ${body!.length}`);
  expect(JSON.parse(body!).code).toBe("server/malformed-http");
});

test("a client that leaves in the middle of its body does no harm", async () => {
  const server = await start();
  await new Promise<void>((resolve) => {
    const socket = connect(Number(new URL(server.url).port), "127.0.0.1", () => {
      socket.write(
        `POST /api/v1/create_session HTTP/1.1\r\nHost: x\r\nX-API-Key: ${key}\r\nContent-Length: 500\r\n\r\n{"a"`,
      );
      setTimeout(() => {
        socket.destroy();
        resolve();
      }, 20);
    });
  });
  expect((await call(server, "/healthz")).body).toEqual({ status: "ok" });
});
