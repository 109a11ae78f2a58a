import fc from "fast-check";
import { expect, test } from "vitest";
import { type ForwardBackwardOutput, tensor } from "../protocol/index.ts";
import { combineOutputs } from "./metrics.ts";

const part = (metrics: Record<string, number>, count = 1): ForwardBackwardOutput => ({
  lossFnOutputType: "ArrayRecord",
  lossFnOutputs: Array.from({ length: count }, () => ({ logprobs: tensor(Float32Array.of(count)) })),
  metrics,
});

test("each metric is reduced as its name says, means by the number of data", () => {
  const values = { "a:sum": 1, "b:min": 1, "c:max": 1, "d:mean": 1, "e:slack": 1, "f:unique": 1, "g:last": 1 };
  const larger = { "a:sum": 5, "b:min": 5, "c:max": 5, "d:mean": 5, "e:slack": 5, "f:unique": 5, "g:last": 5 };
  const { metrics, lossFnOutputs } = combineOutputs([part(values, 3), part(larger, 1)]);
  expect(metrics).toEqual({
    "a:sum": 6,
    "b:min": 1,
    "c:max": 5,
    "d:mean": 2,
    "e:slack": 3,
    "f:unique": 1,
    "f:unique_1": 5,
    "g:last": 5,
  });
  expect(lossFnOutputs).toHaveLength(4);
});

test("names come from the first part; one that another part lacks is dropped, and so is an unknown reduction", () => {
  const { metrics } = combineOutputs([part({ "a:sum": 1, "b:sum": 2, plain: 3 }), part({ "a:sum": 1, plain: 3 })]);
  expect(metrics).toEqual({ "a:sum": 2 });
  expect(combineOutputs([part({ plain: 3, "odd:thing": 4 })]).metrics).toEqual({ plain: 3, "odd:thing": 4 });
});

test("a mean over no data at all is a plain mean, not a division by zero", () => {
  expect(combineOutputs([part({ "a:mean": 1 }, 0), part({ "a:mean": 3 }, 0)]).metrics).toEqual({ "a:mean": 2 });
});

test("an unordered hash does not depend on the order of the parts", () => {
  fc.assert(
    fc.property(fc.array(fc.integer(), { minLength: 1 }), (values) => {
      const hash = (list: number[]) => combineOutputs(list.map((value) => part({ "h:hash_unordered": value }))).metrics;
      expect(hash([...values].reverse())).toEqual(hash(values));
    }),
  );
});
