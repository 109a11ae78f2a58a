// Every command finds a run the same way: by its name, its path, `latest`, or the newest where none is named.
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setImmediate } from "node:timers/promises";
import { afterEach, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { temporaryFolders } from "../../../test/support/folders.ts";
import { Journal } from "../../runs/journal.ts";
import { commands } from "../commands.ts";
import { findRun, knownRuns } from "./find-run.ts";

const folders = temporaryFolders();
const home = folders();
const here = folders();
const logs = join(home, "code-rl-logs");
const names = ["2026_10_01-08_00_00", "sweep/rate-1", "2026_10_02-09_30_00"];

/** A run with one checkpoint, written after the one before it. */
async function writeRun(path: string): Promise<void> {
  mkdirSync(path, { recursive: true });
  const config = { model_name: "nano-coder", preset: "nano", engine: "embedded", started_at: "2026-10-01" };
  writeFileSync(join(path, "config.json"), JSON.stringify(config));
  const journal = await Journal.open(path);
  const sampler = "tinker://nobody:train:0/sampler_weights/000010";
  const record = { name: "000010", step: 10, dataset_offset: 80, sampler_path: sampler };
  await journal.append({ type: "saved", record, start: 0, end: 1 });
  await journal.close();
  for (const now = Date.now(); Date.now() === now; ) await setImmediate(); // the next one is of another millisecond
}

beforeAll(async () => {
  for (const name of names) await writeRun(join(logs, name));
  // It ended before it began: never the one that is meant.
  mkdirSync(join(logs, "2026_10_03-10_00_00", "journal"), { recursive: true });
});
beforeEach(() => {
  vi.stubEnv("HOME", home);
  vi.spyOn(process, "cwd").mockReturnValue(here);
  for (const name of ["TINKER_API_KEY", "TINKER_BASE_URL"]) vi.stubEnv(name, "");
});

afterEach(() => {
  vi.restoreAllMocks();
});

test("a name that is listed, a path and `latest` are found; the last written is the newest", () => {
  const listed = knownRuns();
  for (const { name, path } of listed) expect(findRun(name)).toBe(path);
  expect(listed.map(({ name }) => name)).toEqual(names.toReversed());
  for (const name of names) expect(findRun(join(logs, name))).toBe(join(logs, name));
  expect(findRun("latest")).toBe(join(logs, names[2]!));
});

test("runs of this folder are listed too; of two with one name, the other is listed by its path", async () => {
  const [elsewhere, project] = [folders(), folders()];
  vi.stubEnv("HOME", elsewhere);
  vi.spyOn(process, "cwd").mockReturnValue(project);
  const usual = join(elsewhere, "code-rl-logs", "first");
  await writeRun(usual);
  mkdirSync(join(project, "first")); // a folder and no run
  expect(knownRuns()).toEqual([{ name: "first", path: usual }]);
  await writeRun(join(project, "runs", "first"));
  await writeRun(join(project, "first"));
  expect(knownRuns()).toEqual([
    { name: "first", path: join(project, "first") },
    { name: "runs/first", path: join(project, "runs", "first") },
    { name: usual, path: usual },
  ]);
});

test.each([
  ["2026_10_02-09_30_01", /Did you mean "2026_10_02-09_30_00"\? There are 2026_10_02-09_30_00, .*whet runs lists them/],
  ["sweep", /There is no run "sweep"\. There are sweep\/rate-1, /],
  ["/proc", /There is no run "\/proc": that folder holds none\./],
])("of %s, what is near is named", (word, message) => {
  expect(() => findRun(word)).toThrow(
    expect.objectContaining({ code: "config/no-run", message: expect.stringMatching(message) }),
  );
});

test("without any run, the command that starts one is named", () => {
  vi.stubEnv("HOME", folders());
  expect(() => findRun("latest")).toThrow(/There is no run "latest", and none in .*whet train starts one/);
});

/** What a command needs besides the run. */
const besides: Readonly<Record<string, string[]>> = {
  control: ["pause"],
  export: ["out=/nowhere/x"],
  sample: ["two words"],
};
const aboutRuns = await Promise.all(
  Object.entries(commands).map(async ([name, { load }]) => ({ name, command: (await load()).command })),
).then((all) => all.filter(({ command }) => /^ {2}run=/m.test(command.help([]))));

describe.each(aboutRuns)("$name", ({ name, command }) => {
  const more = besides[name] ?? [];

  test("names what is near a run that is not there", async () => {
    const forms = name === "doctor" ? [["run=latets"]] : [["run=2026_10_02-09_30_0"], ["2026_10_02-09_30_0"]];
    for (const form of forms)
      await expect(async () => command.run([...form, ...more]), form.join(" ")).rejects.toMatchObject({
        code: "config/no-run",
        message: expect.stringContaining("2026_10_02-09_30_00"),
      });
  });
});

test("commands about runs are these", () => {
  expect(aboutRuns.map(({ name }) => name).toSorted()).toEqual(
    "checkpoints collect control diagnose doctor eval export replay report resume sample show".split(" "),
  );
});

describe.each(["show", "diagnose", "replay", "report", "checkpoints"])("%s", (name) => {
  const { command } = aboutRuns.find((one) => one.name === name)!;

  /** What a command prints. */
  async function printed(...args: string[]): Promise<string> {
    let text = "";
    const write = (chunk: unknown) => {
      text += String(chunk);
      return true;
    };
    const spies = [
      vi.spyOn(console, "log").mockImplementation(write),
      vi.spyOn(process.stdout, "write").mockImplementation(write),
    ];
    try {
      await command.run(args);
    } finally {
      for (const spy of spies) spy.mockRestore();
    }
    return text;
  }

  test("takes a run in every form, and the newest where none is named", async () => {
    const said = vi.spyOn(console, "error").mockImplementation(() => {});
    const newest = names[2]!;
    const wanted = await printed(`run=${join(logs, newest)}`);
    expect(said).not.toHaveBeenCalled();
    for (const form of [[`run=${newest}`], [newest], [join(logs, newest)], ["run=latest"], ["latest"], []])
      expect(await printed(...form), form.join(" ")).toBe(wanted);
    expect(said.mock.calls).toEqual([[`whetstone: run ${join(logs, newest)}`]]);
  });
});

test("storing checkpoints of the embedded engine costs nothing, also where a key of the hosted service is set", async () => {
  vi.stubEnv("TINKER_API_KEY", "tml-secret");
  const lines: unknown[] = [];
  vi.spyOn(console, "log").mockImplementation((line) => lines.push(line));
  const { command } = aboutRuns.find(({ name }) => name === "checkpoints")!;
  await command.run([names[2]!]);
  expect(lines.join("\n")).toMatch(/0 checkpoints, 0 B$/);
});
