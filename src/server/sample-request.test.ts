import { expect, test } from "vitest";
import { toSeed } from "./sample-request.ts";

test("a seed becomes what it was for every recorded run", () => {
  expect([7, -1, 2 ** 52 - 1, 2 ** 52].map(toSeed)).toEqual([7, 2 ** 53 - 2, 2 ** 52 - 1, 2 ** 52 + 1]);
  expect([7n, -1n, 2n ** 52n, 2n ** 63n].map(toSeed)).toEqual([7, 2 ** 53 - 2, 2 ** 52, 1024]);
});
