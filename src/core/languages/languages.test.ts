// A language costs its file: the list and the table of docs follow from it, and it says of itself what everybody asks.
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { list, listSource, page, withLanguages } from "../../../scripts/languages/write.ts";
import { languageNamed, languageNames, languageOf } from "./languages.ts";

test("the list and the table are those that `npm run docs` makes", async () => {
  expect(readFileSync(list, "utf8")).toBe(listSource());
  const text = readFileSync(page, "utf8");
  expect(text).toBe(await withLanguages(text));
});

test.each(languageNames)("%s is found by its name and tags, which no other has", (name) => {
  for (const tag of [name, ...languageOf(name).tags]) expect(languageNamed(tag)).toBe(name);
});
