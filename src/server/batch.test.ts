// What a batch must be before an engine sees it: this is the only place that checks.
import { expect, test } from "vitest";
import { type Datum, type ForwardBackwardRequest, tensor, textInput } from "../protocol/index.ts";
import { toTrainingBatch } from "./batch.ts";

const model = { name: "tiny", maxContextLength: 512, vocabSize: 264 };
const floats = (...values: number[]) => tensor(Float32Array.of(...values));
const ints = (...values: number[]) => tensor(Int32Array.of(...values));
const inputs = { target_tokens: ints(2, 3, 4), logprobs: floats(-1, -1, -1), advantages: floats(0, 1, 1) };
const good = (change: Datum["lossFnInputs"] = {}): Datum => ({
  modelInput: textInput(Int32Array.of(1, 2, 3)),
  lossFnInputs: { ...inputs, ...change },
});
const request = (change: Partial<ForwardBackwardRequest>): ForwardBackwardRequest => ({
  modelId: "m",
  seqId: 1,
  data: [good()],
  lossFn: "importance_sampling",
  lossFnConfig: {},
  forwardOnly: false,
  ...change,
});
const { advantages: _, ...withoutAdvantages } = inputs;
const tokens = (...values: number[]): Datum => ({ ...good(), modelInput: textInput(Int32Array.from(values)) });

test.each<[string, Partial<ForwardBackwardRequest>, string, string]>([
  ["an unknown loss", { lossFn: "reinforce" }, "server/unknown-loss", "reinforce"],
  ["a loss that is not public", { lossFn: "stable_reinforce" }, "server/unknown-loss", "not public"],
  ["no data", { data: [] }, "server/no-data", "no data"],
  ["an unknown setting", { lossFnConfig: { beta: 1 } }, "server/loss-config", '"beta"'],
  ["a setting that is NaN", { lossFn: "dro", lossFnConfig: { beta: Number.NaN } }, "server/loss-config", "NaN"],
  ["a setting that is text", { lossFn: "dro", lossFnConfig: { beta: "x" } }, "server/loss-config", "beta=x"],
  ["a token out of range", { data: [tokens(1, -1, 3)] }, "server/token-range", "-1 at index 1"],
  ["a target out of range", { data: [good({ target_tokens: ints(1, 2, 264) })] }, "server/token-range", "264"],
  ["no tokens", { data: [tokens()] }, "server/no-tokens", "no tokens"],
  ["too many tokens", { data: [tokens(...new Array<number>(513).fill(1))] }, "server/context-length", "513 tokens"],
  [
    "missing advantages",
    { data: [{ ...good(), lossFnInputs: withoutAdvantages }] },
    "server/loss-inputs",
    '"advantages"',
  ],
  ["an input the loss does not take", { data: [good({ mask: floats(1, 1, 1) })] }, "server/loss-inputs", '"mask"'],
  ["a short input", { data: [good({ logprobs: floats(1, 2) })] }, "server/tensor", "[2]"],
  [
    "a lying shape",
    { data: [good({ logprobs: { ...floats(1, 2), shape: [3] } })] },
    "server/tensor",
    "3 values, but 2",
  ],
  ["a NaN advantage", { data: [good({ advantages: floats(0, Number.NaN, 1) })] }, "server/non-finite", "NaN"],
  [
    "an infinite logprob",
    { data: [good({ logprobs: floats(0, Number.NEGATIVE_INFINITY, 1) })] },
    "server/non-finite",
    "-Infinity",
  ],
  [
    "soft targets in reinforcement learning",
    { data: [good({ target_tokens: { ...ints(1, 2, 3, 4, 5, 6), shape: [3, 2] } })] },
    "server/tensor",
    "[3, 2]",
  ],
  [
    "a mask of nothing",
    { lossFn: "gspo", data: [good({ sequence_ratio_mask: floats(0, 0, 0) })] },
    "server/loss-inputs",
    "mean of nothing",
  ],
])("%s is refused", async (_name, change, code, part) => {
  const error = await toTrainingBatch(request(change), model).catch((caught: unknown) => caught);
  expect(error).toMatchObject({
    code,
    status: 400,
    message: expect.stringContaining(part.replace("[3, 2]", "[3,2]")) as string,
  });
});

test("weights that are left out are ones, also of soft targets", async () => {
  const soft = { ...ints(1, 2, 3, 4, 5, 6), shape: [3, 2] };
  for (const target_tokens of [inputs.target_tokens, soft]) {
    const data = [{ ...good(), lossFnInputs: { target_tokens } }];
    const batch = await toTrainingBatch(request({ lossFn: "cross_entropy", data }), model);
    const { weights } = batch.data[0]!.lossInputs;
    expect([...weights!.data]).toEqual(target_tokens.shape.length === 2 ? [1, 1, 1, 1, 1, 1] : [1, 1, 1]);
  }
});
