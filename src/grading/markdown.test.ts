import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { type Fence, FenceReader } from "./markdown.ts";

interface Golden {
  cases: [text: string, blocks: [info: string, content: string][]][];
}

function fencesOf(text: string): Fence[] {
  const fences: Fence[] = [];
  const reader = new FenceReader((fence) => fences.push(fence));
  let position = 0;
  for (const line of text.split("\n")) {
    position += line.length + 1;
    reader.read(line, position);
  }
  reader.end();
  return fences;
}

test("fenced blocks are those that CommonMark's reference implementation finds", () => {
  const { cases } = JSON.parse(
    readFileSync(new URL("../../test/golden/fences.json", import.meta.url), "utf8"),
  ) as Golden;
  expect(cases.length).toBeGreaterThan(1000);
  for (const [text, blocks] of cases) {
    const found = fencesOf(text).map(({ info, lines }) => [info, lines.map((line) => `${line}\n`).join("")]);
    // Both drop nothing of a block; how the last of them ends is a matter of taste.
    const even = (all: readonly (readonly string[])[]) =>
      all.map(([info, content]) => [info, content!.replace(/\n+$/, "")]);
    expect(even(found), JSON.stringify(text)).toEqual(even(blocks));
  }
});

test("only spaces and tabs are blanks", () => {
  expect(fencesOf("a\n* \u00a0\n\t```\n\tb\n\t```").map(({ lines }) => lines)).toEqual([["b"]]);
  expect(fencesOf("~~~ \u2028\na").map(({ lines }) => lines)).toEqual([["a"]]);
});

test("a block says whether a fence of its own closed it", () => {
  const closed = (text: string) => fencesOf(text).map(({ isClosed }) => isClosed);
  expect(closed("```\na\n```")).toEqual([true]);
  expect(closed("```\na")).toEqual([false]);
  expect(closed("> ```\n> a\n\n```\nb\n````")).toEqual([false, true]);
  expect(closed("````\na\n```")).toEqual([false]);
  expect(closed("~~~\n```\n~~~")).toEqual([true]);
});
