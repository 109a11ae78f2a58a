// Everything public has a doc comment, and the reference in docs/api/ is made from them.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import { type Entry, readEntries } from "../../scripts/api/read.ts";
import { apiFolder, apiPages, undocumented } from "../../scripts/api/write.ts";

let entries: Entry[];
beforeAll(() => {
  entries = readEntries();
});

test("everything public has a doc comment", () => {
  expect(entries.flatMap(({ names }) => names).length).toBeGreaterThan(150);
  expect(undocumented(entries)).toEqual([]);
});

test("a name or a member without one is found", () => {
  const member = { name: "size", signature: "size: number", doc: "" };
  const item = { name: "Thing", kind: "interface" as const, signature: "interface Thing", doc: "", members: [member] };
  const entry = { name: "whetstone/thing", about: "", names: [item, { ...item, doc: "A thing.", members: [] }] };
  expect(undocumented([entry])).toEqual(["whetstone/thing: Thing", "whetstone/thing: Thing.size"]);
});

test("docs/api/ is what the comments say; `npm run api` writes it", () => {
  const written = readdirSync(apiFolder).map((name) => [name, readFileSync(join(apiFolder, name), "utf8")]);
  expect(Object.fromEntries(written)).toEqual(apiPages(entries));
});
