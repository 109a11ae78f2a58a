// The example at the start of docs/data.md, as pasted.
import { execFile } from "node:child_process";
import { readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { readJsonLines } from "../../src/core/jsonl.ts";
import { metricMeaning } from "../../src/runs/metric-names.ts";
import { foldersInMemory } from "../support/folders.ts";
import { cleanEnvironment, whetPath } from "../support/whet.ts";

const folders = foldersInMemory();
const page = readFileSync(new URL("../../docs/data.md", import.meta.url), "utf8");

test("the example of docs/data.md is certified and trained on as pasted, and every metric it writes is explained", async () => {
  const pasted = /```sh\n([\s\S]*?)```/.exec(page)![1]!;
  expect(pasted.match(/^\{/gm)).toHaveLength(3);
  // One step instead of twenty says the same.
  const script = pasted.replace("max_steps=20", "max_steps=1");
  expect(script).not.toBe(pasted);
  const folder = folders();
  symlinkSync(whetPath, join(folder, "whet"));
  const { stdout, stderr } = await promisify(execFile)("bash", ["-ec", script], {
    cwd: folder,
    env: cleanEnvironment({ HOME: folder, WHETSTONE_CACHE: join(folder, "cache") }),
  });
  expect(stdout.match(/ good$/gm)).toHaveLength(3);
  const bad = join(folder, "bad.jsonl");
  writeFileSync(bad, readFileSync(join(folder, "mine.jsonl"), "utf8").replace("len(input().split())", "len(input())"));
  const [, remedy] = /\| a solution fails in `certify` \|[^|]*\| `([^`]+)`/.exec(page)!;
  const shown = await promisify(execFile)("bash", ["-c", `${remedy!.replace("FILE", "bad.jsonl")} || true`], {
    cwd: folder,
    env: cleanEnvironment(),
  });
  expect(shown.stdout).toMatch(
    /^words .*bad: solution 1: wrong_answer on test 1\n {4}input +ant bee cat\n {4}expected +3\n {4}printed +11\n/m,
  );
  expect(stderr).toMatch(/3 good, 0 bad[\s\S]*train would use 3 problems; it would leave out none/);
  expect(stderr).toMatch(/train {4}3 problems \(3 mine\)\n/);
  expect(stderr).toMatch(/^step {3}0 .*groups \d\/3/m);
  expect(stderr).toMatch(/1 step in/);

  const runs = join(folder, "code-rl-logs");
  const [run] = readdirSync(runs);
  const records = readJsonLines(join(runs, run!, "metrics.jsonl")) as Record<string, number>[];
  const names = new Set(records.flatMap((record) => Object.keys(record)));
  expect(names.size).toBeGreaterThan(40);
  expect([...names].filter((name) => name !== "step" && metricMeaning(name) === undefined)).toEqual([]);
}, 300_000);
