// docs/errors.md is made from the source, and every code in it says something.
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { areas, readErrorCodes } from "../scripts/errors/read.ts";
import { errorsDocs, errorsPage } from "../scripts/errors/write.ts";

const codes = readErrorCodes();

test("docs/errors.md is what the source says; `npm run errors` writes it", () => {
  expect(codes.length).toBeGreaterThan(150);
  expect(readFileSync(errorsPage, "utf8")).toBe(errorsDocs(codes));
});

test("every folder that raises errors has its own kind of code", () => {
  expect(new Set(codes.map(({ code }) => code.split("/")[0]))).toEqual(new Set(Object.keys(areas)));
});
