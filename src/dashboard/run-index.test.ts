// The index of a journal against the view that decodes every event: whole, growing, torn, rewound, thinned, damaged.
import { appendFileSync, mkdirSync, readFileSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { writeRun } from "../../bench/dashboard-run.ts";
import { foldersInMemory } from "../../test/support/folders.ts";
import { answerLogprobs, readBatch } from "../runs/batch.ts";
import { encodeFrame } from "../runs/frames.ts";
import { Journal } from "../runs/journal.ts";
import { readJournal } from "../runs/read-journal.ts";
import { journalSegments } from "../runs/segments.ts";
import { RunView } from "../runs/view.ts";
import { detailsOf, readGroups } from "./details.ts";
import { infoOf } from "./info.ts";
import { listProblems, problemOf } from "./problems.ts";
import { RunIndex } from "./run-index.ts";

const folder = foldersInMemory();

async function indexed(path: string): Promise<RunIndex> {
  const index = new RunIndex(path);
  await index.catchUp();
  return index;
}

/** The same figures in the same order, as far as both have them. */
function expectSameFigures(index: RunIndex, view: RunView): void {
  expect(index.view.steps).toEqual(view.steps);
}

test("figures, groups, answers and tokens are those of the journal", async () => {
  const path = folder();
  await writeRun(path, 12);
  const index = await indexed(path);
  expectSameFigures(index, RunView.read(path));
  expect(index.problem).toBeUndefined();
  for (const { event, arrays } of readJournal(path)) {
    if (event.type !== "group-sampled") continue;
    const batch = readBatch(index, "train", event.batch);
    const found = batch.groups[event.group]!;
    const group = detailsOf(found);
    expect(group.samples.map(({ text }) => text)).toEqual(event.samples.map(({ text }) => text));
    expect(group.problem).toBe(event.problem);
    const { tokens, logprobs } = arrays() as { tokens: Int32Array; logprobs: Float32Array };
    const read = event.samples.map((_, sample) => answerLogprobs(index, found, sample)!);
    expect(read.flatMap((sample) => [...sample.tokens])).toEqual([...tokens]);
    expect(read.flatMap((sample) => [...sample.sampler])).toEqual([...logprobs]);
  }
  const graded = [...readJournal(path)].flatMap(({ event }) =>
    event.type === "graded" && event.batch === 7 ? [event] : [],
  );
  const shown = readGroups(index, "train", 7).flatMap(({ group, samples }) =>
    samples.map(({ sample, verdict, status, reward }) => ({ group, sample, verdict, status, reward })),
  );
  expect(shown).toEqual(
    graded
      .map(({ group, sample, grade: { verdict, status, reward } }) => ({ group, sample, verdict, status, reward }))
      .sort((a, b) => a.group - b.group || a.sample - b.sample),
  );
  const problems = listProblems(index.view);
  expect(problems.filter(({ attempts }) => attempts > 0)).toHaveLength(96);
  expect(problems.reduce((sum, { passed }) => sum + passed, 0)).toBe(
    [...readJournal(path)].filter(({ event }) => event.type === "graded" && event.grade.verdict === "pass").length,
  );
  expect(problemOf(index.view, "starter-train-0009").attempts).toMatchObject([{ step: 1, group: 1, graded: 16 }]);
});

test("the run's seconds are those of all its processes, as the view counts them", async () => {
  const path = folder();
  await writeRun(path, 2);
  const { at } = [...readJournal(path)].at(-1)!.event;
  const hour = 3_600_000;
  const later = [
    { type: "opened", at: at + hour, pid: 2 }, // found nothing to do
    { type: "opened", at: at + 2 * hour, pid: 3 },
    { type: "started", at: at + 2 * hour + 1000, session: 1, config: {}, changes: [] },
  ];
  for (const event of later)
    appendFileSync(join(path, "journal/000000.wj"), Buffer.concat(encodeFrame(JSON.stringify(event), {})));
  const index = await indexed(path);
  expect(infoOf(index).seconds).toBe(RunView.read(path).seconds);
});

test("what is written is seen when it is whole, and a torn end waits", async () => {
  const [source, path] = [folder(), folder()];
  await writeRun(source, 4);
  const bytes = readFileSync(journalSegments(source)[0]!);
  mkdirSync(join(path, "journal"));
  const file = join(path, "journal/000000.wj");
  writeFileSync(file, "");
  const index = await indexed(path);
  const seen = [index.view.steps.length];
  for (let from = 0; from < bytes.length; from += 40_000) {
    appendFileSync(file, bytes.subarray(from, from + 40_000));
    await index.catchUp();
    seen.push(index.view.steps.length);
  }
  expect(index.problem).toBeUndefined();
  expect(seen).toEqual([...seen].sort((a, b) => a - b));
  expect(seen.at(-1)).toBe(4);
  expect(new Set(seen).size).toBeGreaterThan(3);
  expectSameFigures(index, RunView.read(source));
  // A crash tore the end, and the next process cut it off and went on.
  appendFileSync(file, bytes.subarray(0, 500));
  await index.catchUp();
  truncateSync(file, bytes.length);
  appendFileSync(file, Buffer.concat(encodeFrame(JSON.stringify({ type: "opened", at: 5, pid: 77 }), {})));
  await index.catchUp();
  expect(index.view.sessions.at(-1)?.pid).toBe(77);
});

test("steps that were rewound are gone, with their groups", async () => {
  const path = folder();
  await writeRun(path, 6);
  const index = await indexed(path);
  const before = index.generation;
  const journal = await Journal.open(path);
  await journal.append({ type: "rewound", to: 3, reason: "a checkpoint is gone" });
  await index.catchUp();
  expect(index.view.steps.length).toBe(3);
  expect(index.generation).toBeGreaterThan(before);
  expect(await index.read(() => readGroups(index, "train", 4))).toEqual([]);
  expect(await index.read(() => readGroups(index, "train", 2))).toHaveLength(8);
  expectSameFigures(index, RunView.read(path));
  await journal.close();
});

test("a journal that was rewritten is walked anew", async () => {
  const [path, other] = [folder(), folder()];
  await writeRun(path, 5);
  await writeRun(other, 2);
  const index = await indexed(path);
  const file = journalSegments(path)[0]!;
  const { rmSync } = await import("node:fs");
  rmSync(file);
  writeFileSync(file, readFileSync(journalSegments(other)[0]!));
  expect(await index.read(() => readGroups(index, "train", 1))).toHaveLength(8);
  await index.catchUp();
  expect(index.view.steps.length).toBe(2);
});

test("damage in the middle is named, and what stands before it is shown", async () => {
  const path = folder();
  await writeRun(path, 5);
  const file = journalSegments(path)[0]!;
  const bytes = readFileSync(file);
  const middle = Math.floor(bytes.length / 2);
  bytes.fill(0, middle, middle + 3000);
  writeFileSync(file, bytes);
  const index = await indexed(path);
  expect(index.problem).toMatch(/is damaged at byte \d+/);
  expect(index.view.steps.length).toBeGreaterThan(0);
  expect(index.view.steps.length).toBeLessThan(5);
});
