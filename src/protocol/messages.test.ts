import fc from "fast-check";
import { describe, expect, test } from "vitest";
import * as protocol from "./index.ts";
import {
  checkpoint,
  clientConfig,
  decode,
  decodeForwardBackwardJson,
  encode,
  encodeForwardBackwardJson,
  encodeText,
  formatTinkerPath,
  modelInputLength,
  ProtocolError,
  parseJson,
  parseTinkerPath,
  routes,
  sampleRequest,
  sampleResponse,
  type Tensor,
  tensor,
  tensorProblem,
  tensorSchema,
  textTokens,
} from "./index.ts";

function codeOf(action: () => unknown): string {
  try {
    action();
  } catch (error) {
    if (error instanceof ProtocolError) return error.code;
    throw error;
  }
  return "none";
}

describe("JSON messages", () => {
  test("a training step as SDK 0.24.1 sends it", () => {
    const wire = {
      model_id: "run:train:0",
      seq_id: 1,
      forward_backward_input: {
        loss_fn: "cross_entropy",
        data: [
          {
            model_input: { chunks: [{ type: "encoded_text", tokens: [5, 6, 7] }] },
            loss_fn_inputs: {
              target_tokens: { data: [6, 7, 8], dtype: "int64", shape: [3] },
              weights: { data: [0, 1, 0.5], dtype: "float32" },
            },
          },
        ],
      },
    };
    const request = decodeForwardBackwardJson(wire, "forward_backward");
    expect(request).toEqual({
      modelId: "run:train:0",
      seqId: 1,
      lossFn: "cross_entropy",
      lossFnConfig: {},
      forwardOnly: false,
      data: [
        {
          modelInput: { chunks: [{ type: "encoded_text", tokens: Int32Array.of(5, 6, 7) }] },
          lossFnInputs: {
            target_tokens: tensor(Int32Array.of(6, 7, 8)),
            weights: tensor(Float32Array.of(0, 1, 0.5)),
          },
        },
      ],
    });
    expect(decodeForwardBackwardJson(encodeForwardBackwardJson(request), "forward_backward")).toEqual(request);
    const forward = { ...request, forwardOnly: true };
    expect(decodeForwardBackwardJson(encodeForwardBackwardJson(forward), "forward")).toEqual(forward);
  });

  test("absent and null give the same defaults", () => {
    const absent = decode(routes.saveWeights.request, { model_id: "m" });
    const nulls = { model_id: "m", path: null, seq_id: null, ttl_seconds: null, overwrite: null, type: null };
    expect(decode(routes.saveWeights.request, nulls)).toEqual(absent);
    expect(absent).toEqual({ modelId: "m", overwrite: false });
    expect(decode(clientConfig, {}).fwdbwdMaxChunkLen).toBe(1024);
    const { adamParams } = decode(routes.optimStep.request, { model_id: "m", adam_params: {} });
    expect(adamParams).toMatchObject({ learningRate: 1e-4, beta2: 0.95, eps: 1e-12 });
  });

  test("a null that carries meaning is kept", () => {
    expect(decode(routes.checkpointTtl.request, { ttl_seconds: null })).toEqual({ ttlSeconds: null });
    expect(encode(routes.checkpointTtl.request, { ttlSeconds: null })).toEqual({ ttl_seconds: null });
    expect(decode(routes.checkpointTtl.request, {})).toEqual({ ttlSeconds: null });
  });

  test("nested messages are written in wire spelling, without undefined fields", () => {
    const text = encodeText(routes.createModel.request, {
      sessionId: "s",
      modelSeqId: 0,
      baseModel: "tiny",
      userMetadata: undefined,
      loraConfig: { rank: 8, trainAttn: true, trainMlp: true, trainUnembed: false },
    });
    expect(JSON.parse(text)).toEqual({
      type: "create_model",
      session_id: "s",
      model_seq_id: 0,
      base_model: "tiny",
      lora_config: { rank: 8, train_attn: true, train_mlp: true, train_unembed: false },
    });
  });

  test("a sampling result: null and NaN stand for each other", () => {
    const wire = {
      type: "sample",
      sequences: [{ stop_reason: "stop", tokens: [5], logprobs: [-0.5] }],
      prompt_logprobs: [null, -1.5],
      topk_prompt_logprobs: [null, [[9, -0.25]]],
    };
    const response = decode(sampleResponse, wire);
    expect(response.promptLogprobs).toEqual(Float32Array.of(Number.NaN, -1.5));
    expect(response.promptCacheHitTokens).toBe(0);
    const { type: _, ...rest } = wire;
    expect(encode(sampleResponse, response)).toEqual({ ...rest, prompt_cache_hit_tokens: 0 });
  });

  test("times without a zone are read as UTC", () => {
    const wire = { checkpoint_id: "weights/a", checkpoint_type: "training", tinker_path: "tinker://r/weights/a" };
    const zoned = decode(checkpoint, { ...wire, time: "2026-01-02T03:04:05Z" });
    expect(decode(checkpoint, { ...wire, time: "2026-01-02T03:04:05" })).toEqual(zoned);
    expect(zoned.time.toISOString()).toBe("2026-01-02T03:04:05.000Z");
    expect(codeOf(() => decode(checkpoint, { ...wire, time: "yesterday" }))).toBe("protocol/invalid-message");
  });

  test("what is wrong is named by its place and the value seen", () => {
    const body = {
      prompt: { chunks: [{ type: "encoded_text", tokens: [1, 2.5] }] },
      sampling_params: { max_tokens: "many" },
    };
    try {
      decode(sampleRequest, body);
      expect.unreachable();
    } catch (error) {
      expect(error).toBeInstanceOf(ProtocolError);
      const places = (error as ProtocolError).issues.map((issue) => issue.loc.join("."));
      expect(places).toContain("sampling_params.max_tokens");
      expect(places.some((place) => place.startsWith("prompt.chunks.0"))).toBe(true);
    }
  });

  test.each([
    ["a fraction", { data: [1.5], dtype: "int64" }],
    ["a string", { data: ["1"], dtype: "float32" }],
    ["an unknown dtype", { data: [1], dtype: "float64" }],
    ["a nested list", { data: [[1]], dtype: "int64" }],
    ["a negative size", { data: [1], dtype: "int64", shape: [-1] }],
  ])("a tensor with %s is refused", (_, wire) => {
    expect(codeOf(() => decode(tensorSchema, wire))).toBe("protocol/invalid-message");
  });

  test("JSON that is none says so", () => {
    expect(codeOf(() => parseJson("{"))).toBe("protocol/malformed-json");
    expect(codeOf(() => parseJson(""))).toBe("protocol/malformed-json");
  });

  test("any JSON value, against any schema, gives a result or the documented error", () => {
    const schemas = [
      ...Object.values(protocol),
      ...Object.values(routes).flatMap((route) => Object.values(route)),
    ].filter((value): value is typeof sampleRequest => typeof value === "object" && value !== null && "_zod" in value);
    expect(schemas.length).toBeGreaterThan(60);
    fc.assert(
      fc.property(fc.constantFrom(...schemas), fc.jsonValue(), (schema, json) => {
        expect(["none", "protocol/invalid-message"]).toContain(codeOf(() => decode(schema, json)));
      }),
      { numRuns: 2000 },
    );
  });

  test("load_weights has two forms", () => {
    expect(
      decode(routes.loadWeights.request, { model_id: "m", seq_id: 1, path: "tinker://r/weights/a", optimizer: false }),
    ).toEqual({
      modelId: "m",
      seqId: 1,
      path: "tinker://r/weights/a",
      optimizer: false,
    });
    expect(decode(routes.loadWeights.request, { session_id: "s", model_seq_id: 2, path: "p" })).toMatchObject({
      sessionId: "s",
      modelSeqId: 2,
      optimizer: true,
    });
  });
});

describe("tensors", () => {
  test("JSON keeps every float32 and every 32-bit integer", () => {
    const anyTensor: fc.Arbitrary<Tensor> = fc.oneof(
      fc.float32Array({ noDefaultInfinity: true }).map((data) => tensor(data)),
      fc.int32Array().map((data) => tensor(data)),
    );
    fc.assert(
      fc.property(anyTensor, (value) => {
        const text = encodeText(tensorSchema, value);
        // JSON has no negative zero, so values are compared by ===.
        const { data, ...rest } = decode(tensorSchema, JSON.parse(text)) as Tensor;
        const { data: expected, ...expectedRest } = value;
        expect(rest).toEqual(expectedRest);
        expect(data.length).toBe(expected.length);
        for (const [index, seen] of data.entries()) {
          const wanted = expected[index]!;
          expect(seen === wanted || (Number.isNaN(seen) && Number.isNaN(wanted))).toBe(true);
        }
      }),
    );
  });

  test("integers beyond 32 bits are kept as 64-bit ones", () => {
    const value = decode(tensorSchema, { data: [1, 2 ** 40], dtype: "int64" }) as Tensor;
    expect(value.data).toEqual(BigInt64Array.of(1n, 2n ** 40n));
    expect(encode(tensorSchema, value)).toEqual({ data: [1, 2 ** 40], dtype: "int64", shape: [2] });
  });

  test("sparse and dense forms hold the same values", () => {
    const sparse: Tensor = {
      ...tensor(Int32Array.of(7, 9), [2, 3]),
      sparse: { crowIndices: Int32Array.of(0, 1, 2), colIndices: Int32Array.of(2, 0) },
    };
    expect(tensorProblem(sparse)).toBeUndefined();
    expect(protocol.densify(sparse)).toEqual(tensor(Int32Array.of(0, 0, 7, 9, 0, 0), [2, 3]));
    expect(decode(tensorSchema, encode(tensorSchema, sparse))).toEqual(sparse);
  });

  test.each<[string, Partial<Tensor>, RegExp]>([
    ["too few values", { shape: [3] }, /shape \[3\] has 3 values, but 2/],
    ["the wrong dtype", { dtype: "float32" }, /dtype float32/],
    [
      "a column outside",
      { shape: [1, 2], sparse: { crowIndices: Int32Array.of(0, 2), colIndices: Int32Array.of(0, 2) } },
      /column 2/,
    ],
    [
      "rows that overlap",
      { shape: [2, 2], sparse: { crowIndices: Int32Array.of(0, 3, 2), colIndices: Int32Array.of(0, 1) } },
      /decrease/,
    ],
    [
      "three dimensions",
      { shape: [1, 1, 2], sparse: { crowIndices: Int32Array.of(0, 2), colIndices: Int32Array.of(0, 1) } },
      /2 dimensions/,
    ],
  ])("%s is a problem", (_, change, reason) => {
    expect(tensorProblem({ ...tensor(Int32Array.of(1, 2)), ...change })).toMatch(reason);
  });
});

describe("model input", () => {
  test("the length of audio is its first dimension", () => {
    const constant = Uint8Array.of(254, 3, 2, 0x90, 0x01, 80);
    expect(modelInputLength({ chunks: [{ type: "dmel", dmel: constant }] })).toBe(144);
    expect(modelInputLength({ chunks: [{ type: "dmel", dmel: constant.subarray(1) }] })).toBe(144);
    expect(codeOf(() => modelInputLength({ chunks: [{ type: "dmel", dmel: Uint8Array.of(9) }] }))).toBe(
      "protocol/invalid-message",
    );
  });

  test("text of several chunks is one sequence; anything else has none", () => {
    const chunks = [1, 2, 3].map((token) => ({ type: "encoded_text" as const, tokens: Int32Array.of(token) }));
    expect(textTokens({ chunks })).toEqual(Int32Array.of(1, 2, 3));
    expect(textTokens({ chunks: [{ type: "dmel", dmel: new Uint8Array() }] })).toBeUndefined();
    expect(modelInputLength({ chunks: [{ type: "image", data: new Uint8Array(), format: "png" }] })).toBeUndefined();
  });
});

describe("checkpoint addresses", () => {
  test("both kinds, and SkyRL's short form", () => {
    expect(parseTinkerPath("tinker://s:train:0/weights/0001")).toEqual({
      trainingRunId: "s:train:0",
      kind: "training",
      name: "0001",
      checkpointId: "weights/0001",
    });
    expect(parseTinkerPath("tinker://model_1/final")).toMatchObject({ kind: "sampler", name: "final" });
    expect(formatTinkerPath("r", "sampler", "a")).toBe("tinker://r/sampler_weights/a");
  });

  test.each([
    "",
    "tinker://",
    "tinker://run",
    "http://run/weights/a",
    "tinker://run/other/a",
    "tinker://run/weights/a/b",
  ])("%j is refused", (path) => {
    expect(codeOf(() => parseTinkerPath(path))).toBe("protocol/bad-path");
  });
});
