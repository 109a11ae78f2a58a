// Folders that are full, read-only, files, or below one: every command that writes says so in one message and leaves nothing behind, and
// a run whose disk fills up goes on once there is room.
import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, statfsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { readJsonLines } from "../../src/core/jsonl.ts";
import { runCommand } from "../support/command-process.ts";
import { foldersInMemory } from "../support/folders.ts";
import { runWhet } from "../support/whet.ts";

const newFolder = foldersInMemory();
const mounts: string[] = [];
const isRoot = process.getuid?.() === 0;
if (!isRoot) console.warn("skipped: mounting small disks needs root");

function mount(megabytes: number): string {
  const disk = newFolder();
  execFileSync("mount", ["-t", "tmpfs", "-o", `size=${megabytes}m`, "tmpfs", disk]);
  mounts.push(disk);
  return disk;
}

/** Writes until nothing fits any more. */
function fill(disk: string): string {
  const file = join(disk, "fill");
  const free = () => statfsSync(disk).bavail;
  const page = Buffer.alloc(4096);
  try {
    for (;;) writeFileSync(file, free() > 256 ? Buffer.alloc(1 << 20) : page, { flag: "a" });
  } catch (error) {
    expect(error).toMatchObject({ code: "ENOSPC" });
  }
  return file;
}

const settings = [
  "max_steps=1",
  "eval_every=0",
  "prompts_per_step=2",
  "completions_per_prompt=4",
  "max_tokens=64",
  "dashboard=false",
];
const run = join(newFolder(), "run");
const places: Record<string, string> = {};
/** What the cache keeps may stay: it is found again. */
const filesOf = (place: string) =>
  readdirSync(place, { recursive: true, encoding: "utf8" })
    .filter((name) => !name.includes(".cache"))
    .toSorted();

beforeAll(async () => {
  if (!isRoot) return;
  expect((await runCommand(["train", `log_path=${run}`, ...settings, "tensorboard=false"])).code).toBe(0);
  for (const kind of ["full", "read-only"]) {
    const disk = mount(24);
    cpSync(run, join(disk, "run"), { recursive: true });
    mkdirSync(join(disk, "free"));
    if (kind === "full") fill(disk);
    else execFileSync("mount", ["-o", "remount,ro", disk]);
    places[kind] = disk;
  }
  const folder = newFolder();
  cpSync(run, join(folder, "run"), { recursive: true });
  writeFileSync(join(folder, "free"), "a file");
  places["a file"] = folder;
});
afterAll(() => {
  for (const disk of mounts) execFileSync("umount", [disk]);
});

type Case = [
  what: string,
  args: (place: string) => string[],
  code: number,
  env?: (place: string) => Record<string, string>,
];

const writers: Case[] = [
  ["train", (place) => ["train", `log_path=${place}/free/a/run`, ...settings], 1],
  ["train in the usual place", () => ["train", ...settings], 1, (place) => ({ HOME: `${place}/free` })],
  ["init", (place) => ["init", `${place}/free/a/project`], 2],
  ["serve", (place) => ["serve", "port=0", `state_dir=${place}/free/a/state`], 1],
  ["export", (place) => ["export", `run=${place}/run`, `out=${place}/free/adapter`], 1],
  ["train --dry-run", () => ["train", "--dry-run"], 1, (place) => ({ TMPDIR: `${place}/free` })],
  ["doctor", () => ["doctor"], 1, (place) => ({ TMPDIR: `${place}/free` })],
  ["eval", (place) => ["eval", `run=${place}/run`, "eval_max_problems=2"], 1, (place) => ({ TMPDIR: `${place}/free` })],
  ["grade", () => ["grade", "/dev/null"], 1, (place) => ({ TMPDIR: `${place}/free` })],
];
/** What writes into a run that is there; a file in its place is no run. */
const intoRun: Case[] = [
  ["resume", (place) => ["resume", `${place}/run`, "max_steps=2"], 1],
  ["train, which begins anew", (place) => ["train", `log_path=${place}/run`, "behavior_if_log_dir_exists=delete"], 1],
  ["report", (place) => ["report", `${place}/run`], 1],
];
const readers: Case[] = [
  ["show", (place) => ["show", `${place}/run`], 0],
  ["diagnose", (place) => ["diagnose", `${place}/run`], 0],
  ["checkpoints", (place) => ["checkpoints", `${place}/run`], 0],
];

describe.runIf(isRoot)("a folder that is", () => {
  const cases = ["full", "read-only", "a file"].flatMap((kind) =>
    [...writers, ...(kind === "a file" ? [] : [...intoRun, ...readers])].map((row) => ({ kind, what: row[0], row })),
  );
  test.each(cases)("$kind: $what", async ({ kind, row: [, args, code, env] }) => {
    const place = places[kind]!;
    const before = filesOf(place);
    const result = await runCommand(args(place), { env: env?.(place) ?? {} });
    expect(result.stderr).not.toMatch(/\n\s+at .*[.:]\d+/);
    expect(result.stderr + result.stdout).not.toContain("Unhandled");
    if (code !== 0)
      expect(result.stderr + result.stdout).toMatch(
        /ENOSPC|EROFS|ENOTDIR|EEXIST|KiB are free| [kMG]?B are free|is a file/,
      );
    if (code !== 0 && args(place)[0] !== "doctor")
      expect(result.stderr).toMatch(/^whetstone: [\s\S]+ \[[a-z]+\/[a-z-]+\]$/m);
    expect(result.code).toBe(code);
    expect(filesOf(place)).toEqual(before);
  });
});

test.runIf(isRoot)(
  "a disk that fills up in the middle ends the run with what to do, and the run goes on when there is room",
  async () => {
    const disk = mount(96);
    const path = join(disk, "run");
    let filler = "";
    const command = ["train", `log_path=${path}`, ...settings, "max_steps=4", "save_every=1", "tensorboard=false"];
    const full = await runWhet(command, {
      onStart: (child) =>
        child.stderr?.on("data", (chunk: Buffer) => {
          if (filler === "" && chunk.toString().includes("step   1")) filler = fill(disk);
        }),
    });
    expect(full.stderr).toMatch(/Free some space[\s\S]*To go on:\n {2}\S+ resume \S+/);
    expect(full.stderr).not.toMatch(/\n\s+at .*[.:]\d+/);
    expect(full.code).toBe(1);
    expect(readdirSync(path).filter((name) => /lock|\.part$/.test(name))).toEqual([]);

    rmSync(filler);
    const { code, stderr } = await runCommand(["resume", path]);
    expect(stderr).toContain("4 steps in");
    expect(code).toBe(0);
    expect(readJsonLines(join(path, "metrics.jsonl"))).toHaveLength(4);
    expect(readFileSync(join(path, "logs.log"), "utf8")).toContain("step 3");
  },
);
