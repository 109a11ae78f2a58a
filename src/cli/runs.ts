// `./whet runs`: the runs in a folder, each with its state, steps, Pass@1 before and after, cost and age.
import { existsSync } from "node:fs";
import { homedir } from "node:os";
import { join, relative, resolve } from "node:path";
import { z } from "zod";
import { ConfigError } from "../core/errors.ts";
import { whet } from "../core/program.ts";
import { visible } from "../core/visible.ts";
import { findRuns, overviewOf, type RunOverview } from "../runs/overview.ts";
import type { Command } from "./command.ts";
import { describeOptions, parseArguments, refuseWords } from "./options.ts";

const RunsOptions = z.strictObject({
  json: z.boolean().default(false).describe("one JSON object per run"),
});

const usual = () => join(homedir(), "code-rl-logs");

export const command: Command = {
  help: () =>
    [
      `Usage: ${whet} runs [FOLDER] [key=value …]`,
      "",
      "Lists the runs in FOLDER and the folders in it, the newest first; without FOLDER, those in ~/code-rl-logs. States: live, finished, stopped",
      "(told to), failed (with an error), crashed (killed), broken. All but the last go on with the same train command.",
      "",
      describeOptions(RunsOptions),
    ].join("\n"),
  async run(args) {
    const { options, words } = parseArguments(RunsOptions, args);
    refuseWords(words.slice(1), `${whet} runs`);
    const folder = resolve(words[0] ?? usual());
    if (words[0] !== undefined && !existsSync(folder))
      throw new ConfigError("config/no-run", `There is no folder ${words[0]}. Name one with runs in it.`);
    const runs = findRuns(folder)
      .map(overviewOf)
      .sort((a, b) => (b.startedAt ?? b.lastAt ?? 0) - (a.startedAt ?? a.lastAt ?? 0));
    if (options.json) for (const run of runs) console.log(JSON.stringify(run));
    else
      console.log(
        runs.length === 0 ? `no runs in ${folder}. ${whet} train starts one.` : table(folder, runs, Date.now()),
      );
    return 0;
  },
};

function table(folder: string, runs: readonly RunOverview[], now: number): string {
  const head = ["run", "state", "steps", "Pass@1", "cost", "age"];
  const rows = runs.map((run) => [
    visible(relative(folder, run.path) || run.path),
    run.state,
    `${run.steps}${run.maxSteps === undefined ? "" : `/${run.maxSteps}`}`,
    passText(run),
    run.cost === undefined ? "–" : `$${run.cost.toFixed(2)}`,
    ageText(now - (run.startedAt ?? run.lastAt ?? now)),
  ]);
  const widths = head.map((title, column) => Math.max(title.length, ...rows.map((row) => row[column]!.length)));
  const line = (cells: readonly string[]) =>
    cells
      .map((cell, column) => cell.padEnd(widths[column]!))
      .join("  ")
      .trimEnd();
  return [
    line(head),
    ...rows.flatMap((row, index) => {
      const { problem } = runs[index]!;
      return problem === undefined
        ? [line(row)]
        : [line(row), `  ${visible(problem).replaceAll(/\s+/g, " ").slice(0, 160)}`];
    }),
  ].join("\n");
}

function passText({ before, after }: RunOverview): string {
  const percent = (value: number) => `${(100 * value).toFixed(1)}%`;
  if (before === undefined) return "–";
  return after === undefined ? percent(before) : `${percent(before)} → ${percent(after)}`;
}

/** In its largest unit: 3h, 12d. */
function ageText(milliseconds: number): string {
  const seconds = Math.max(0, Math.round(milliseconds / 1000));
  const units: [number, string][] = [
    [86_400, "d"],
    [3600, "h"],
    [60, "m"],
  ];
  for (const [size, unit] of units) if (seconds >= size) return `${Math.floor(seconds / size)}${unit}`;
  return `${seconds}s`;
}
