import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  type Datum,
  decodeForwardBackwardOutput,
  decodeForwardBackwardRequest,
  decodeSampleResponse,
  encodeForwardBackwardOutput,
  encodeForwardBackwardRequest,
  encodeSampleResponse,
  type ForwardBackwardOutput,
  type ForwardBackwardRequest,
  ProtocolError,
  type SampleResponse,
  type Tensor,
  tensor,
} from "../index.ts";

const hex = (text: string) => new Uint8Array(Buffer.from(text, "hex"));
const ints = (...values: number[]) => Int32Array.of(...values);
const floats = (...values: number[]) => Float32Array.of(...values);
const text = (...tokens: number[]) => ({ chunks: [{ type: "encoded_text" as const, tokens: ints(...tokens) }] });

const crossEntropy = {
  modelId: "m",
  seqId: 1,
  lossFn: "cross_entropy",
  lossFnConfig: {},
  forwardOnly: false,
};

// Bytes written by the message classes of the official Python SDK, tinker 0.25.0.
describe("bytes of the official SDK", () => {
  const requests: [name: string, bytes: string, request: ForwardBackwardRequest][] = [
    [
      "dense tensors",
      "0a016d10011a640a100a0e0a0c01000000020000000300000012300a0d7461726765745f746f6b656e73121f0a180200000000000000030000000000000004000000000000001802220103121e0a077765696768747312130a0c000000000000803f0000803f1801220103220d63726f73735f656e74726f7079",
      {
        ...crossEntropy,
        data: [
          {
            modelInput: text(1, 2, 3),
            lossFnInputs: { target_tokens: tensor(ints(2, 3, 4)), weights: tensor(floats(0, 1, 1)) },
          },
        ],
      },
    ],
    [
      "config and forward only",
      "0a016d10ac021a740a0c0a0a0a080100000002000000121d0a0a616476616e7461676573120f0a080000803f000080bf1801220102121b0a086c6f6770726f6273120f0a08000000bf000080bf180122010212280a0d7461726765745f746f6b656e7312170a10020000000000000003000000000000001802220102220370706f2a1e0a13636c69705f686967685f7468726573686f6c6411333333333333f33f2a1d0a12636c69705f6c6f775f7468726573686f6c64119a9999999999e93f3001",
      {
        modelId: "m",
        seqId: 300,
        lossFn: "ppo",
        lossFnConfig: { clip_high_threshold: 1.2, clip_low_threshold: 0.8 },
        forwardOnly: true,
        data: [
          {
            modelInput: text(1, 2),
            lossFnInputs: {
              advantages: tensor(floats(1, -1)),
              logprobs: tensor(floats(-0.5, -1)),
              target_tokens: tensor(ints(2, 3)),
            },
          },
        ],
      },
    ],
    [
      "a sparse tensor",
      "0a016d10011a670a0c0a0a0a08010000000200000012570a0d7461726765745f746f6b656e731246123e0a100700000000000000090000000000000012180000000000000000010000000000000002000000000000001a1002000000000000000000000000000000180222020203220d63726f73735f656e74726f7079",
      {
        ...crossEntropy,
        data: [
          {
            modelInput: text(1, 2),
            lossFnInputs: {
              target_tokens: {
                ...tensor(ints(7, 9), [2, 3]),
                sparse: { crowIndices: ints(0, 1, 2), colIndices: ints(2, 0) },
              },
            },
          },
        ],
      },
    ],
    [
      "an image",
      "0a016d10011a4d0a0f120d0a0489504e471203706e6718020a080a060a040500000012300a0d7461726765745f746f6b656e73121f0a180100000000000000020000000000000003000000000000001802220103220d63726f73735f656e74726f7079",
      {
        ...crossEntropy,
        data: [
          {
            modelInput: {
              chunks: [{ type: "image", data: hex("89504e47"), format: "png", expectedTokens: 2 }, ...text(5).chunks],
            },
            lossFnInputs: { target_tokens: tensor(ints(1, 2, 3)) },
          },
        ],
      },
    ],
  ];

  test.each(requests)("request with %s: read and written alike", (_, bytes, request) => {
    expect(decodeForwardBackwardRequest(hex(bytes))).toEqual(request);
    // The same fields, the sequence number last; settings are also written in the form that 0.26.2 brought.
    const seqId = request.seqId === 300 ? "10ac02" : "1001";
    const newer = Object.keys(request.lossFnConfig).length > 0 ? newerConfig : "";
    const moved = bytes.replace(`0a016d${seqId}`, "0a016d") + newer + seqId;
    expect(Buffer.from(encodeForwardBackwardRequest(request)).toString("hex")).toBe(moved);
  });

  // Bytes of tinker 0.36.0.
  const newerConfig =
    "3a200a13636c69705f686967685f7468726573686f6c64120909333333333333f33f3a1f0a12636c69705f6c6f775f7468726573686f6c641209099a9999999999e93f";

  test("settings come in two forms, and the newer one counts; spans are passed over", () => {
    const gspo = decodeForwardBackwardRequest(
      hex(
        "0a016d10011a84010a080a060a040100000012190a0a616476616e7461676573120b0a040000803f180122010112170a086c6f6770726f6273120b0a04000000bf180122010112220a1373657175656e63655f726174696f5f6d61736b120b0a040000803f180122010112200a0d7461726765745f746f6b656e73120f0a080200000000000000180222010122046773706f2a1d0a12636c69705f6c6f775f7468726573686f6c64119a9999999999e93f3a1f0a12636c69705f6c6f775f7468726573686f6c641209099a9999999999e93f",
      ),
    );
    expect(gspo).toMatchObject({ lossFn: "gspo", lossFnConfig: { clip_low_threshold: 0.8 }, seqId: 1 });
    expect(Object.keys(gspo.data[0]!.lossFnInputs)).toContain("sequence_ratio_mask");
    const mixed = "3a150a086b6c5f636f6566661209097b14ae47e17a843f3a0b0a046d6f64651203120178";
    expect(decodeForwardBackwardRequest(hex(mixed)).lossFnConfig).toEqual({ kl_coeff: 0.01, mode: "x" });
    const spans = "1a070a050a017118011a0712050a01711801220912070a017110011802";
    expect(decodeForwardBackwardRequest(hex(`1a${(spans.length / 2).toString(16)}${spans}`)).data).toEqual([
      { modelInput: { chunks: [] }, lossFnInputs: {} },
    ]);
    const custom = "2206637573746f6d3a130a076c6f73735f6964120812066c6f73732d30";
    expect(decodeForwardBackwardRequest(hex(custom))).toMatchObject({
      lossFn: "custom",
      lossFnConfig: { loss_id: "loss-0" },
    });
    const written = encodeForwardBackwardRequest({
      ...crossEntropy,
      data: [],
      lossFnConfig: { mode: "x", kl_coeff: 0.01 },
    });
    expect(decodeForwardBackwardRequest(written).lossFnConfig).toEqual({ mode: "x", kl_coeff: 0.01 });
  });

  test("plain lists are written as the arrays they stand for", () => {
    const list = (length: number, value: (index: number) => number) =>
      Array.from({ length }, (_, index) => value(index));
    // More than one block of the writer's.
    const [tokens, targets, weights] = [list(9001, (i) => i), list(9001, (i) => i - 4500), list(9001, (i) => i / 8)];
    const chunks = [{ type: "encoded_text" as const, tokens }];
    const shape = [9001];
    const lossFnInputs = {
      target_tokens: { dtype: "int64" as const, data: targets, shape },
      weights: { dtype: "float32" as const, data: weights, shape },
    };
    const written = encodeForwardBackwardRequest({ ...crossEntropy, data: [{ modelInput: { chunks }, lossFnInputs }] });
    expect(decodeForwardBackwardRequest(written).data).toEqual([
      {
        modelInput: text(...tokens),
        lossFnInputs: { target_tokens: tensor(ints(...targets)), weights: tensor(floats(...weights)) },
      },
    ]);
  });

  test.each([
    ["a fraction", "int64" as const, 1.5],
    ["an integer beyond 32 bits", "int64" as const, 2 ** 40],
    ["a string", "float32" as const, "1" as never],
    ["a list", "float32" as const, [1] as never],
  ])("%s in a plain list is refused", (_, dtype, value) => {
    const datum = { modelInput: text(1), lossFnInputs: { weights: { dtype, data: [0, value], shape: [2] } } };
    expect(() => encodeForwardBackwardRequest({ ...crossEntropy, data: [datum] })).toThrow(/weights\[1\] is .*, not a/);
  });

  test("result of two data", () => {
    const bytes =
      "0a0b41727261795265636f7264123a12360a086c6f6770726f6273122a0a0c000080bf000000c0000040c01218000000000000000008000000000000000c00000000000000180118021a130a086c6f73733a73756d110000000000000440";
    const output: ForwardBackwardOutput = {
      lossFnOutputType: "ArrayRecord",
      lossFnOutputs: [{ logprobs: tensor(floats(-1, -2)) }, { logprobs: tensor(floats(-3)) }],
      metrics: { "loss:sum": 2.5 },
    };
    expect(decodeForwardBackwardOutput(hex(bytes))).toEqual(output);
    expect(Buffer.from(encodeForwardBackwardOutput(output)).toString("hex")).toBe(bytes);
  });

  test("result with a qualified type, bfloat16 and a trailing shape", () => {
    const bytes =
      "0a0d706b672e6d6f643a5468696e67122612220a0178121d0a04803f00c012100000000000000000040000000000000018042201021801";
    expect(decodeForwardBackwardOutput(hex(bytes))).toEqual({
      lossFnOutputType: "Thing",
      lossFnOutputs: [{ x: tensor(floats(1, -2), [1, 2]) }],
      metrics: {},
    });
  });

  const sampled: [string, string, SampleResponse][] = [
    [
      "the likeliest tokens of a sample",
      "0a261204070000001a04000000bf22180a0807000000090000001208000000bf000080bf18022001",
      {
        sequences: [
          {
            stopReason: "stop",
            tokens: ints(7),
            logprobs: floats(-0.5),
            topkSampledLogprobs: [
              [
                [7, -0.5],
                [9, -1],
              ],
            ],
          },
        ],
        promptCacheHitTokens: 0,
      },
    ],
    [
      "scored and drawn prompt tokens",
      "0a061204070000002a180a1000000000000000c0000080bf0000000018012202020232240a100a08090000000400000018032202020112100a08000080be000000c0180122020201",
      {
        sequences: [{ stopReason: "stop", tokens: ints(7) }],
        targetPromptLogprobs: tensor(floats(0, -2, -1, 0), [2, 2]),
        promptAltTokens: { tokens: tensor(ints(9, 4), [2, 1]), logprobs: tensor(floats(-0.25, -2), [2, 1]) },
        promptCacheHitTokens: 0,
      },
    ],
  ];
  test.each(sampled)("sampling result with %s", (_, bytes, response) => {
    expect(decodeSampleResponse(hex(bytes))).toEqual(response);
    // What is written is read as the same; token ids are int64 here, which the protocol takes as well.
    expect(decodeSampleResponse(encodeSampleResponse(response))).toEqual(response);
  });

  test("sampling result with prompt logprobs and a top-k table", () => {
    const bytes =
      "0a160801120805000000060000001a08000000bf000080bf0a0612040700000012080000c07f0000c0bf1a180a0800000000090000001208804fc3c7000080be180120022001";
    const response: SampleResponse = {
      sequences: [
        { stopReason: "length", tokens: ints(5, 6), logprobs: floats(-0.5, -1) },
        { stopReason: "stop", tokens: ints(7) },
      ],
      promptLogprobs: floats(Number.NaN, -1.5),
      topkPromptLogprobs: [null, [[9, -0.25]]],
      promptCacheHitTokens: 1,
    };
    expect(decodeSampleResponse(hex(bytes))).toEqual(response);
    expect(Buffer.from(encodeSampleResponse(response)).toString("hex")).toBe(bytes);
  });
});

const int32s = fc
  .array(fc.integer({ min: -0x80000000, max: 0x7fffffff }), { maxLength: 20 })
  .map((a) => new Int32Array(a));
const float32s = fc.array(fc.float(), { maxLength: 20 }).map((values) => new Float32Array(values));
const int64s = fc
  .array(fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }), { minLength: 1, maxLength: 5 })
  .map((values) => new BigInt64Array([2n ** 40n, ...values]));
const sizes = fc.array(fc.nat({ max: 2 ** 40 }), { minLength: 1, maxLength: 4 });
const anyTensor: fc.Arbitrary<Tensor> = fc.oneof(
  fc.record({ dtype: fc.constant("float32" as const), data: float32s, shape: sizes }),
  fc.record({ dtype: fc.constant("int64" as const), data: fc.oneof(int32s, int64s), shape: sizes }),
  fc.record({
    dtype: fc.constant("int64" as const),
    data: int32s,
    shape: sizes,
    sparse: fc.record({ crowIndices: int32s, colIndices: int32s }),
  }),
);
const name = fc.oneof(fc.string({ unit: "grapheme" }), fc.constantFrom("target_tokens", "__proto__", "constructor"));
const datum: fc.Arbitrary<Datum> = fc.record({
  modelInput: fc.record({
    chunks: fc.array(
      fc.oneof(
        fc.record({ type: fc.constant("encoded_text" as const), tokens: int32s }),
        fc.record({ type: fc.constant("dmel" as const), dmel: fc.uint8Array() }),
        fc.record(
          {
            type: fc.constant("image" as const),
            data: fc.uint8Array(),
            format: fc.constantFrom("png" as const, "jpeg" as const),
            expectedTokens: fc.nat(),
          },
          { requiredKeys: ["type", "data", "format"] },
        ),
      ),
      { maxLength: 4 },
    ),
  }),
  lossFnInputs: fc.dictionary(name, anyTensor, { maxKeys: 4 }).map((record) => ({ ...record })),
});

describe("round trips", () => {
  test("every request", () => {
    const request: fc.Arbitrary<ForwardBackwardRequest> = fc.record({
      modelId: fc.string({ unit: "grapheme" }),
      seqId: fc.nat({ max: 0x7fffffff }),
      data: fc.array(datum, { maxLength: 4 }),
      lossFn: fc.string(),
      lossFnConfig: fc.dictionary(name, fc.double(), { maxKeys: 3 }).map((record) => ({ ...record })),
      forwardOnly: fc.boolean(),
    });
    fc.assert(
      fc.property(request, (value) => {
        expect(decodeForwardBackwardRequest(encodeForwardBackwardRequest(value))).toEqual(value);
      }),
    );
  });

  test("every output whose shapes fit its values, ragged ones included", () => {
    const row = fc.tuple(fc.nat({ max: 4 }), fc.constantFrom([], [2], [1, 3])).chain(([rows, trailing]) => {
      const count = trailing.reduce((product, size) => product * size, rows);
      const shape = [rows, ...trailing];
      const values = <T>(unit: fc.Arbitrary<T>) => fc.array(unit, { minLength: count, maxLength: count });
      return fc.oneof(
        values(fc.float()).map((data) => tensor(new Float32Array(data), shape)),
        values(fc.integer()).map((data) => tensor(new Int32Array(data), shape)),
      );
    });
    const output = fc.record({
      lossFnOutputType: fc.constantFrom("", "ArrayRecord", "scalar"),
      lossFnOutputs: fc.array(
        fc.dictionary(fc.constantFrom("logprobs", "loss", "__proto__"), row).map((record) => ({ ...record })),
        { maxLength: 6 },
      ),
      metrics: fc.dictionary(name, fc.double(), { maxKeys: 3 }).map((record) => ({ ...record })),
    });
    fc.assert(
      fc.property(output, (value) => {
        expect(decodeForwardBackwardOutput(encodeForwardBackwardOutput(value))).toEqual(value);
      }),
    );
  });

  test("every sampling result", () => {
    const logprobs = fc
      .array(fc.float({ min: -100, max: 0, noNaN: true }), { minLength: 1, maxLength: 9 })
      .map((values) => new Float32Array(values));
    // An answer without a row is as good as none, and is read as none.
    const table = fc.array(
      fc.option(
        fc.array(fc.tuple(fc.nat(), fc.float({ min: -50, max: 0, noNaN: true })), { minLength: 1, maxLength: 4 }),
      ),
      { minLength: 1 },
    );
    const scores = logprobs.map((values) => tensor(values, [values.length, 1]));
    const response = fc.record(
      {
        sequences: fc.array(
          fc.record(
            {
              stopReason: fc.constantFrom("stop" as const, "length" as const),
              tokens: int32s,
              logprobs,
              topkSampledLogprobs: table,
            },
            { requiredKeys: ["stopReason", "tokens"] },
          ),
        ),
        promptLogprobs: logprobs,
        topkPromptLogprobs: table,
        targetPromptLogprobs: scores,
        promptAltTokens: fc.record({ tokens: int32s.map((ids) => tensor(ids)), logprobs: scores }),
        promptCacheHitTokens: fc.nat(),
      },
      { requiredKeys: ["sequences", "promptCacheHitTokens"] },
    );
    fc.assert(
      fc.property(response, (value) => {
        expect(decodeSampleResponse(encodeSampleResponse(value))).toEqual(value);
      }),
    );
  });

  test("unknown fields are skipped", () => {
    const request = { ...crossEntropy, data: [] };
    const unknown = hex("7801a10600000000000000009a06020102a50600000000");
    expect(decodeForwardBackwardRequest(Buffer.concat([unknown, encodeForwardBackwardRequest(request)]))).toEqual(
      request,
    );
  });
});

describe("malformed bytes", () => {
  const decoders = [decodeForwardBackwardRequest, decodeForwardBackwardOutput, decodeSampleResponse];
  const valid: Uint8Array[] = [
    encodeForwardBackwardRequest({
      ...crossEntropy,
      data: [
        {
          modelInput: text(1, 2, 3),
          lossFnInputs: { target_tokens: tensor(ints(2, 3, 4)), weights: tensor(floats(0, 1, 1)) },
        },
      ],
    }),
    encodeForwardBackwardOutput({
      lossFnOutputType: "ArrayRecord",
      lossFnOutputs: [{ logprobs: tensor(floats(1, 2)) }, { logprobs: tensor(floats(3)) }],
      metrics: { "loss:sum": 1 },
    }),
    encodeSampleResponse({
      sequences: [{ stopReason: "length", tokens: ints(1, 2), logprobs: floats(-1, -2) }],
      topkPromptLogprobs: [null, [[1, -1]]],
      promptCacheHitTokens: 3,
    }),
  ];

  /** Decodes, letting only the documented error pass. */
  function attempt(bytes: Uint8Array): void {
    for (const decoder of decoders) {
      try {
        decoder(bytes);
      } catch (error) {
        if (!(error instanceof ProtocolError)) throw error;
        expect(error.code).toBe("protocol/malformed-protobuf");
      }
    }
  }

  test("random bytes give a result or the documented error", () => {
    fc.assert(fc.property(fc.uint8Array({ maxLength: 200 }), attempt), { numRuns: 3000 });
  });

  test("valid messages with bytes changed, cut out or cut off give a result or the documented error", () => {
    const damage = fc.record({
      source: fc.constantFrom(...valid),
      edits: fc.array(fc.tuple(fc.nat(), fc.nat({ max: 255 })), { maxLength: 4 }),
      from: fc.nat(),
      to: fc.nat(),
    });
    fc.assert(
      fc.property(damage, ({ source, edits, from, to }) => {
        const bytes = source.slice();
        for (const [index, value] of edits) bytes[index % bytes.length] = value;
        const [start, end] = [from % (bytes.length + 1), to % (bytes.length + 1)].sort((a, b) => a - b);
        attempt(bytes.subarray(start, end));
        attempt(Buffer.concat([bytes.subarray(0, start), bytes.subarray(end)]));
      }),
      { numRuns: 3000 },
    );
  });

  test.each([
    ["a length beyond the end", "0a05616263", /longer than what follows/],
    ["an endless number", "10ffffffffffffffffffff01", /longer than 10 bytes/],
    ["a group", "0b0c", /wire type 3/],
    ["text that is not UTF-8", "0a02c328", /not UTF-8/],
    ["half a token", "1a080a060a040a020100", /4-byte items has 2 bytes/],
    ["a chunk of no known kind", "1a020a00", /neither text, nor an image/],
    ["a tensor without dtype", "1a0d120b0a016112060a0401020304", /dtype 0 is unknown/],
  ])("%s is refused with a reason", (_, bytes, reason) => {
    expect(() => decodeForwardBackwardRequest(hex(bytes))).toThrow(reason);
  });
});
