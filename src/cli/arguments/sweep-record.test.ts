// What a sweep's folder says of it: enough to go on, without what must not be written down.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { foldersInMemory } from "../../../test/support/folders.ts";
import { sweepFile } from "../../runs/overview.ts";
import { askedAgain, findSweep, readSweep, writeSweep } from "./sweep-record.ts";

const folders = foldersInMemory();
const entry = (name: string, shown: string) => ({ name, shown });
const asked = { files: ["run.json"], typed: [entry("seed", "0,1"), entry("base_url", "http://me:hunter2@host/")] };

test("a password is not written down, and asked for by the command that goes on", () => {
  const folder = folders();
  writeSweep(folder, asked, 12);
  expect(readFileSync(join(folder, sweepFile), "utf8")).not.toContain("hunter2");
  const record = readSweep(findSweep(folder)!)!;
  expect(record).toMatchObject({ cwd: process.cwd(), agreed: 12 });
  expect(() => askedAgain(folder, record, { files: [], typed: [] })).toThrow(
    /base_url of .* had a password.*sweep \S+ base_url=…/,
  );
  const given = entry("base_url", "http://me:hunter3@host/");
  expect(askedAgain(folder, record, { files: [], typed: [given, entry("seed", "2")] })).toEqual({
    files: ["run.json"],
    typed: [given, entry("seed", "2")],
  });
});

test("without a price nothing was agreed to; a record that cannot be read is said, with the way on", () => {
  const folder = folders();
  expect(readSweep(folder)).toBeUndefined();
  writeSweep(folder, asked, Number.POSITIVE_INFINITY);
  expect(readSweep(folder)).not.toHaveProperty("agreed");
  writeFileSync(join(folder, sweepFile), '{"cwd":');
  expect(() => readSweep(folder)).toThrow(expect.objectContaining({ code: "config/sweep-record" }));
});
