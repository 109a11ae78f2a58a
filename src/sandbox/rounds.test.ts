import { expect, test } from "vitest";
import { endsRound, restOfRound } from "./rounds.ts";

test("rounds end after 16, 64, 256 … tests, and what is left of one reaches its end", () => {
  const ends = Array.from({ length: 2000 }, (_, index) => index + 1).filter(endsRound);
  expect(ends).toEqual([16, 64, 256, 1024]);
  for (let done = 0; done < 1500; done++) expect(endsRound(done + restOfRound(done))).toBe(true);
  expect([0, 1, 15, 16, 63, 64].map(restOfRound)).toEqual([16, 15, 1, 48, 1, 192]);
});
