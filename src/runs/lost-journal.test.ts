// A journal that somebody took away, emptied, cut or mixed up with another: nothing of a run is begun anew over its files.
import { copyFileSync, readdirSync, readFileSync, renameSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { foldersInMemory } from "../../test/support/folders.ts";
import { log, rewarded, submitted } from "../../test/support/synthetic-run.ts";
import { readJsonLines } from "../core/jsonl.ts";
import { JournalCursor } from "./cursor.ts";
import { keepConfig } from "./directory.ts";
import type { NewEvent } from "./events.ts";
import { Journal } from "./journal.ts";
import { readJournal } from "./read-journal.ts";

const newFolder = foldersInMemory();
const segment = (folder: string, number = 0) => join(folder, "journal", `00000${number}.wj`);

async function write(folder: string, ...events: NewEvent[]): Promise<void> {
  const journal = await Journal.open(folder);
  await Promise.all(events.map((event) => journal.append(event)));
  await journal.close();
}
const events = (folder: string) => [...readJournal(folder)].map(({ event }) => event);
const messages = (folder: string) => events(folder).map((event) => (event.type === "log" ? event.message : event.type));
const stepsOf = (folder: string, name: string) =>
  readJsonLines(join(folder, name)).map((record) => (record as { step: number }).step);

test.each<[what: string, take: (folder: string) => void]>([
  ["taken away", (folder) => rmSync(join(folder, "journal"), { recursive: true })],
  ["without a segment", (folder) => rmSync(segment(folder))],
  ["emptied", (folder) => truncateSync(segment(folder))],
  ["overwritten", (folder) => writeFileSync(segment(folder), Buffer.alloc(500))],
  ["cut in its first record", (folder) => truncateSync(segment(folder), 20)],
])("a journal that was %s is not begun anew: the files made from it stay as they are", async (_, take) => {
  const folder = newFolder();
  await write(folder, log("one"), rewarded(0));
  const files = () =>
    readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((name) => !name.startsWith("journal"));
  const before = files().map((name) => [name, readFileSync(join(folder, name), "utf8")]);
  take(folder);
  await expect(Journal.open(folder)).rejects.toMatchObject({
    code: "runs/no-journal",
    message: expect.stringContaining("its journal is missing or has no start of a run"),
  });
  expect(files().map((name) => [name, readFileSync(join(folder, name), "utf8")])).toEqual(before);
});

test("a journal that lost a segment is damaged, for those who read it and those who would write", async () => {
  const folder = newFolder();
  await write(folder, log("one"));
  renameSync(segment(folder), segment(folder, 1));
  expect(() => events(folder)).toThrow(/000000\.wj is damaged at byte 0: the file is missing/);
  await expect(Journal.open(folder)).rejects.toMatchObject({ code: "runs/journal-damaged" });
  expect(readdirSync(join(folder, "journal"))).toEqual(["000001.wj"]);
});

test.each([1, 2])(
  "a journal with %i emptied segments before others is damaged, for every reader and writer",
  async (count) => {
    const folder = newFolder();
    await write(folder, log("one"));
    const [first, later] = [segment(folder), segment(folder, count)];
    renameSync(first, later);
    for (let number = 0; number < count; number++) writeFileSync(segment(folder, number), "");
    expect(() => events(folder)).toThrow(/000000\.wj is damaged at byte 0: the file is empty/);
    expect(() => new JournalCursor(folder).next()).toThrow(/the file is empty/);
    await expect(Journal.open(folder)).rejects.toMatchObject({ code: "runs/journal-damaged" });
    // A last one is what a crash leaves that came between two.
    for (let number = 0; number < count; number++) rmSync(segment(folder, number));
    renameSync(later, first);
    writeFileSync(segment(folder, 1), "");
    await write(folder, log("two"));
    expect(messages(folder)).toEqual(["one", "two"]);
  },
);

test("the journal of another run, or without a start, is not gone on with: every file stays as it is", async () => {
  const begun = async (id: string) => {
    const folder = newFolder();
    const config = { model_name: "m", wandb_run_id: id, started_at: `when ${id} began` };
    await write(folder, log("one"));
    const start = readFileSync(segment(folder)).length;
    await write(folder, { type: "started", session: 0, config, changes: [] }, log(id), rewarded(0));
    keepConfig(folder, config, 0);
    return { folder, start };
  };
  const [own, other] = [await begun("a"), await begun("b")];
  const contents = (folder: string) =>
    readdirSync(folder, { recursive: true, withFileTypes: true }).flatMap((entry) =>
      entry.isFile() ? [[entry.name, readFileSync(join(entry.parentPath, entry.name), "latin1")]] : [],
    );
  await write(own.folder, log("goes on"));
  copyFileSync(segment(other.folder), segment(own.folder));
  const before = contents(own.folder);
  await expect(Journal.open(own.folder)).rejects.toMatchObject({
    code: "runs/other-journal",
    message: expect.stringContaining("(begun when a began) and the journal of another (begun when b began)"),
  });
  expect(contents(own.folder)).toEqual(before);
  truncateSync(segment(other.folder), other.start);
  await expect(Journal.open(other.folder)).rejects.toMatchObject({ code: "runs/no-journal" });
  // Nothing but config.json is left of a run.
  for (const name of readdirSync(other.folder))
    if (name !== "config.json") rmSync(join(other.folder, name), { recursive: true });
  await expect(Journal.open(other.folder)).rejects.toMatchObject({ code: "runs/no-journal" });
});

test("a journal that was cut goes on from there: nothing of the steps behind passes for theirs, and lines are kept aside", async () => {
  const folder = newFolder();
  const step = (number: number) => [submitted(number), rewarded(number)];
  await write(folder, ...step(0));
  const { length } = readFileSync(segment(folder));
  await write(folder, ...step(1));
  expect(readdirSync(join(folder, "rollouts"))).toEqual(["step_000000.jsonl", "step_000001.jsonl"]);
  truncateSync(segment(folder), length);
  await write(folder, log("on"));
  expect(readdirSync(join(folder, "rollouts"))).toEqual(["step_000000.jsonl"]);
  expect(stepsOf(folder, "metrics.jsonl")).toEqual([0]);
  expect(stepsOf(folder, "metrics.jsonl.bak")).toEqual([1]);
});
