// What a finding tells to type can be pasted: a command that there is, with keys that it takes, and nothing left to fill in.
import { expect, test } from "vitest";
import { collapsedRuns } from "../../test/support/collapsed-runs.ts";
import { journal, run } from "../../test/support/synthetic-run.ts";
import { whet } from "../core/program.ts";
import { diagnose } from "../diagnosis/diagnosis.ts";
import type { NewEvent } from "../runs/events.ts";
import { commands } from "./commands.ts";

const failed = (code: string): NewEvent[] => [
  ...run(3),
  { type: "stopped", outcome: "failed", error: "It broke.", code } as NewEvent,
];
const codes = [
  ...["config/api-key", "sandbox/unavailable", "rl/ungraded", "renderer/unknown", "engine/out-of-memory"],
  ...["rl/checkpoints-gone", "engine/non-finite-loss", "client/connection", "runs/write-failed", "data/empty"],
  ...["export/anything"],
];
const changed = (figures: Record<string, number>) => run(24, (_, healthy) => ({ ...healthy, ...figures }));
const runs: [string, NewEvent[]][] = [
  ...collapsedRuns,
  ...codes.map((code): [string, NewEvent[]] => [code, failed(code)]),
  ["cut answers", changed({ "sample/truncated_rate": 0.9 })],
  [
    "equal groups",
    changed({ groups_mixed: 0, groups_all_fail: 8, groups_all_pass: 0, mean_correct: 0, mean_reward: 0 }),
  ],
  ["all right", changed({ groups_mixed: 0, groups_all_pass: 8, mean_correct: 1, mean_reward: 1 })],
  ["old policies", changed({ "pipeline/lag": 4, "optim/kl_sample_train_v2": 0.9, "optim/effective_sample_size": 0.1 })],
  ["a slow sandbox", changed({ "grade/ungraded_rate": 0.3, "time/grade_tail": 60, "time/total": 62 })],
  ["a full disk", changed({ "journal/disk_free": 2 ** 20 })],
];

const said = runs.flatMap(([name, events]) => {
  const all = journal(events);
  return diagnose("/my runs/first", all, all.at(-1)!.at).flatMap(({ finding: { id, command } }) =>
    command === undefined ? [] : [{ name, id, command }],
  );
});

test("there are commands of many rules", () => {
  expect(new Set(said.map(({ id }) => id)).size).toBeGreaterThan(12);
});

test.each(said)("$name, $id: $command", async ({ command }) => {
  expect(command).not.toMatch(/…|\b(NEW|FILE|DIR|RUN|X)\b/);
  expect(command.startsWith(`${whet} `)).toBe(true);
  const words = [...command.slice(whet.length + 1).matchAll(/'([^']*)'|(\S+)/g)].map(
    ([, quoted, bare]) => quoted ?? bare!,
  );
  const entry = commands[words[0]!];
  expect(entry, words[0]).toBeDefined();
  const { keys = {} } = (await entry!.load()).command;
  for (const word of words.slice(1)) {
    const key = /^([a-z_]+)=/.exec(word)?.[1];
    if (key !== undefined) expect(Object.keys(keys)).toContain(key);
  }
  // About this run, where it is about a run.
  if (/ train @| resume | run=/.test(command)) expect(command).toMatch(/'[^']*\/my runs\/first/);
});
