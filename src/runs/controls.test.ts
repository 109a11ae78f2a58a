import { chmodSync, mkdirSync, readdirSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { expect, test } from "vitest";
import { foldersInMemory } from "../../test/support/folders.ts";
import { Control, ControlInbox, requestControl } from "./controls.ts";
import { lockRunDirectory } from "./directory.ts";

const newFolder = foldersInMemory();

function liveRun() {
  const path = newFolder();
  const release = lockRunDirectory(path);
  const warnings: string[] = [];
  return { path, release, warnings, inbox: new ControlInbox(path, (message) => warnings.push(message)) };
}

test("what is asked arrives in order, in files that only this user can read, once", () => {
  const { path, release, inbox } = liveRun();
  const asked: Control[] = [{ kind: "pause" }, { kind: "learning-rate", value: 1e-5 }, { kind: "go-on" }];
  for (const control of asked) requestControl(path, control, "test");
  const folder = join(path, "controls");
  expect(statSync(folder).mode & 0o777).toBe(0o700);
  for (const name of readdirSync(folder)) expect(statSync(join(folder, name)).mode & 0o777).toBe(0o600);
  const waiting = inbox.waiting();
  expect(waiting.map(({ control }) => control)).toEqual(asked);
  for (const request of waiting) inbox.remove(request);
  expect(inbox.waiting()).toEqual([]);
  release();
});

test("a run that nobody trains refuses, as does one with too many requests", () => {
  const { path, release } = liveRun();
  for (let count = 0; count < 100; count++) requestControl(path, { kind: "save" });
  expect(() => requestControl(path, { kind: "save" })).toThrow(expect.objectContaining({ code: "runs/controls-full" }));
  release();
  expect(() => requestControl(path, { kind: "save" })).toThrow(expect.objectContaining({ code: "runs/not-live" }));
});

test("what is no request is removed and named; links and folders that others can write are not followed", () => {
  const { path, release, inbox, warnings } = liveRun();
  const folder = join(path, "controls");
  mkdirSync(folder, { mode: 0o700 });
  const name = (index: number) => `${String(index).padStart(14, "0")}-${"0".repeat(16)}.json`;
  writeFileSync(join(folder, name(1)), "{}");
  writeFileSync(join(folder, name(2)), JSON.stringify({ askedAt: 1, by: "x", control: { kind: "pause" }, more: 1 }));
  writeFileSync(join(folder, name(3)), "x".repeat(5000));
  symlinkSync("/etc/hostname", join(folder, name(4)));
  mkdirSync(join(folder, name(5)));
  writeFileSync(join(folder, "half-written.part"), "{");
  expect(inbox.waiting()).toEqual([]);
  expect(warnings.length).toBe(5);
  expect(readdirSync(folder)).toEqual(["half-written.part"]);
  requestControl(path, { kind: "pause" });
  chmodSync(folder, 0o777);
  expect(inbox.waiting()).toEqual([]);
  expect(warnings.at(-1)).toContain("only you can write");
  release();
});

test("no text makes the reader throw", () => {
  const { path, release, inbox } = liveRun();
  mkdirSync(join(path, "controls"), { mode: 0o700 });
  fc.assert(
    fc.property(fc.oneof(fc.string(), fc.json()), (text) => {
      writeFileSync(join(path, "controls", `${"1".repeat(14)}-${"a".repeat(16)}.json`), text);
      for (const request of inbox.waiting()) expect(Control.safeParse(request.control).success).toBe(true);
    }),
    { numRuns: 100 },
  );
  release();
});
