import { expect, test } from "vitest";
import { restOfRound } from "./rounds.ts";

test("rounds end after 16, 64, 256 … tests, and what is left of one reaches its end", () => {
  for (let done = 0; done < 1500; done++) expect([16, 64, 256, 1024, 4096]).toContain(done + restOfRound(done));
  expect([0, 1, 15, 16, 63, 64].map(restOfRound)).toEqual([16, 15, 1, 48, 1, 192]);
});
