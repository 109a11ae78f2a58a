import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { tarOf } from "./archive.ts";
import { CheckpointStore, checkName } from "./checkpoints.ts";

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "whetstone-checkpoints-"));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

const fields = {
  runId: "s:train:0",
  kind: "training" as const,
  name: "first",
  baseModel: "m",
  lora: { rank: 8, trainAttn: true, trainMlp: true, trainUnembed: false },
};
const write = (text: string) => (folder: string) => writeFile(join(folder, "weights.bin"), text);
const path = { trainingRunId: "s:train:0", kind: "training" as const, name: "first" };

test("a saved checkpoint is there after a restart, with its metadata", async () => {
  const store = new CheckpointStore(dir);
  const saved = await store.save(fields, { overwrite: false }, write("abc"));
  store.setPublic(saved, true);
  const again = new CheckpointStore(dir);
  expect(again.get(path)).toEqual({ ...saved, public: true });
  expect(saved.sizeBytes).toBe(3);
  expect(readFileSync(join(again.filesDir(again.get(path)), "weights.bin"), "utf8")).toBe("abc");
});

test("a save that fails leaves nothing, and one cut off by a crash is removed at the next start", async () => {
  const store = new CheckpointStore(dir);
  await expect(
    store.save(fields, { overwrite: false }, async () => {
      throw new Error("disk full");
    }),
  ).rejects.toThrow("disk full");
  const full = Object.assign(new Error("no space left on device"), { code: "ENOSPC" });
  await expect(
    store.save(fields, { overwrite: false }, async () => {
      throw full;
    }),
  ).rejects.toMatchObject({ code: "server/disk", cause: full });
  expect(store.list()).toEqual([]);
  expect(readdirSync(join(dir, "incoming"))).toEqual([]);
  mkdirSync(join(dir, "incoming", "torn"), { recursive: true });
  writeFileSync(join(dir, "incoming", "torn", "half"), "x");
  expect(new CheckpointStore(dir).list()).toEqual([]);
  expect(readdirSync(join(dir, "incoming"))).toEqual([]);
});

test("a name is taken until it is overwritten on purpose; the old files then go", async () => {
  const store = new CheckpointStore(dir);
  const first = await store.save(fields, { overwrite: false }, write("one"));
  await expect(store.save(fields, { overwrite: false }, write("two"))).rejects.toMatchObject({
    code: "server/checkpoint-exists",
  });
  const second = await store.save(fields, { overwrite: true }, write("two"));
  expect(second.uid).not.toBe(first.uid);
  const folder = join(dir, "checkpoints", encodeURIComponent("s:train:0"), "weights", "first");
  expect(readdirSync(folder).sort()).toEqual([second.uid, "checkpoint.json"].sort());
  expect(new CheckpointStore(dir).get(path).uid).toBe(second.uid);
});

test("an expired checkpoint is gone at once, its name is free, and the sweep removes its files", async () => {
  let now = 1_000_000;
  const store = new CheckpointStore(dir, () => now);
  const record = await store.save(fields, { overwrite: false, ttlSeconds: 60 }, write("x"));
  now += 60_000;
  expect(() => store.get(path)).toThrow(expect.objectContaining({ code: "server/checkpoint-not-found" }));
  expect(store.list()).toEqual([]);
  await store.sweep();
  expect(() => readdirSync(store.filesDir(record))).toThrow();
  const next = await store.save(fields, { overwrite: false, ttlSeconds: 60 }, write("y"));
  store.setTtl(next, null);
  now += 10_000_000;
  expect(store.get(path).uid).toBe(next.uid);
});

test.each(["", ".", "..", "a/b", "../x", "-rf", "a b", "é", "x".repeat(201)])("%j cannot name a checkpoint", (name) => {
  expect(() => checkName(name)).toThrow(expect.objectContaining({ code: "server/checkpoint-name" }));
});

test("the archive is a tar that tar reads", async () => {
  const source = join(dir, "source");
  await mkdir(join(source, "nested"), { recursive: true });
  writeFileSync(join(source, "a.bin"), Buffer.alloc(1000, 7));
  writeFileSync(join(source, "nested", "b.txt"), "hello");
  writeFileSync(join(source, "empty"), "");
  const parts: Uint8Array[] = [];
  for await (const part of tarOf(source)) parts.push(part);
  writeFileSync(join(dir, "x.tar"), Buffer.concat(parts));
  mkdirSync(join(dir, "out"));
  execFileSync("tar", ["xf", join(dir, "x.tar"), "-C", join(dir, "out")]);
  expect(readFileSync(join(dir, "out", "a.bin"))).toEqual(Buffer.alloc(1000, 7));
  expect(readFileSync(join(dir, "out", "nested", "b.txt"), "utf8")).toBe("hello");
  expect(readFileSync(join(dir, "out", "empty"), "utf8")).toBe("");
});
