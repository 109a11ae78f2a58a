import { appendFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterEach, beforeEach, expect, test } from "vitest";
import { JsonLinesWriter, readJsonLines, toJsonLine } from "./jsonl.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "whet-jsonl-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

test("what was appended is read back, whatever the values", () => {
  const path = join(folder, "a.jsonl");
  const records = fc.sample(fc.dictionary(fc.string(), fc.jsonValue()), 100);
  const writer = new JsonLinesWriter(path);
  for (const record of records) writer.append(record);
  writer.close();
  expect(readJsonLines(path)).toEqual(records.map((record) => JSON.parse(JSON.stringify(record))));
});

test("a line torn at any byte is dropped on reading and cut off on reopening", () => {
  const path = join(folder, "a.jsonl");
  const line = toJsonLine({ step: 1, text: "ä" });
  for (let kept = 0; kept < Buffer.byteLength(line); kept++) {
    writeFileSync(path, toJsonLine({ step: 0 }));
    appendFileSync(path, Buffer.from(line).subarray(0, kept));
    expect(readJsonLines(path)).toEqual([{ step: 0 }]);
    const writer = new JsonLinesWriter(path);
    writer.append({ step: 2 });
    writer.close();
    expect(readJsonLines(path)).toEqual([{ step: 0 }, { step: 2 }]);
  }
});

test("numbers that JSON does not have stay visible and the line stays valid", () => {
  expect(JSON.parse(toJsonLine({ loss: Number.NaN, norm: Number.POSITIVE_INFINITY, n: 12n }))).toEqual({
    loss: "NaN",
    norm: "Infinity",
    n: "12",
  });
});

test("a broken line in the middle is named", () => {
  const path = join(folder, "a.jsonl");
  writeFileSync(path, '{"a":1}\n{broken\n{"b":2}\n');
  expect(() => readJsonLines(path)).toThrow(/line 2/);
  const bad: number[] = [];
  expect(readJsonLines(path, (_, number) => bad.push(number))).toEqual([{ a: 1 }, { b: 2 }]);
  expect(bad).toEqual([2]);
  expect(readFileSync(path, "utf8")).toContain("{broken");
});
