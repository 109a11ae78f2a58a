// `./whet runs`: the runs in a folder, each with its state, steps, Pass@1 before and after, cost and age.

import { existsSync } from "node:fs";
import { z } from "zod";
import { percent, spanOf } from "../../core/count.ts";
import { ConfigError } from "../../core/errors.ts";
import { whet } from "../../core/program.ts";
import { visible } from "../../core/visible.ts";
import { runsFolder } from "../../runs/directory.ts";
import { overviewOf, type RunOverview } from "../../runs/overview.ts";
import { commandOf } from "../command.ts";
import { textTable } from "../text/table.ts";
import { knownRuns } from "../weights/find-run.ts";

const RunsOptions = z.strictObject({
  json: z.boolean().default(false).describe("one JSON object per run"),
});

export const command = commandOf(RunsOptions, {
  usage: "runs [FOLDER] [key=value …]",
  about: [
    "Lists the runs in FOLDER and the folders in it, the last written first; without FOLDER, those in ~/code-rl-logs and in this folder. Every",
    "command takes a run by the name it has here. States: live, finished, stopped (told to), failed (with an error), crashed (killed), broken.",
    `All but the last go on with ${whet} resume NAME.`,
  ],
  words: 1,
  async run({ options, words: [folder] }) {
    if (folder !== undefined && !existsSync(folder))
      throw new ConfigError("config/no-run", `There is no folder ${folder}. Name one with runs in it.`);
    const runs = knownRuns(folder).map(({ name, path }) => ({ name, ...overviewOf(path) }));
    if (options.json) for (const run of runs) console.log(JSON.stringify(run));
    else
      console.log(
        runs.length === 0
          ? `no runs in ${folder ?? `${runsFolder()} or this folder`}. ${whet} train starts one.`
          : table(runs, Date.now()),
      );
    return 0;
  },
});

function table(runs: readonly (RunOverview & { name: string })[], now: number): string {
  const head = ["run", "state", "steps", "Pass@1", "cost", "written"];
  const rows = runs.map((run) => [
    visible(run.name),
    run.state,
    `${run.steps}${run.maxSteps === undefined || run.maxSteps < run.steps ? "" : `/${run.maxSteps}`}`,
    passText(run),
    run.cost === undefined ? "–" : `$${run.cost.toFixed(2)}`,
    `${spanOf((now - run.lastAt) / 1000)} ago`,
  ]);
  const [title, ...lines] = textTable(head, rows);
  const problemOf = ({ problem }: RunOverview) =>
    problem === undefined ? [] : [`  ${visible(problem).replaceAll(/\s+/g, " ").slice(0, 160)}`];
  return [title, ...lines.flatMap((line, index) => [line, ...problemOf(runs[index]!)])].join("\n");
}

function passText({ before, after }: RunOverview): string {
  if (before === undefined) return "–";
  return after === undefined ? percent(before) : `${percent(before)} → ${percent(after)}`;
}
