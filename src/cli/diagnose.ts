// `./whet diagnose RUN`: what is wrong with a run, live or finished, and what to do about it.
import { z } from "zod";
import { ConfigError } from "../core/errors.ts";
import { whet } from "../core/program.ts";
import { diagnose, type RunFinding } from "../diagnosis/diagnosis.ts";
import { readJournal } from "../runs/read-journal.ts";
import type { Command } from "./command.ts";
import { describeOptions, parseArguments } from "./options.ts";
import { requireRun } from "./require-run.ts";

const DiagnoseOptions = z.strictObject({
  run: z.string().default("").describe("run directory; may stand without run="),
  json: z.boolean().default(false).describe("one JSON line per finding"),
});

export const command: Command = {
  help: () =>
    [
      `Usage: ${whet} diagnose RUN [key=value …]`,
      "",
      "Reads a run's journal, also of one that is training, and says what is wrong with it: each finding with its evidence, what it most likely",
      "means and what to do. Exit code 0: nothing of level error; 1: something is.",
      "",
      describeOptions(DiagnoseOptions),
    ].join("\n"),
  async run(args) {
    const { options, words } = parseArguments(DiagnoseOptions, args);
    const [word, ...more] = words;
    if (more.length > 0 || (word !== undefined && options.run !== ""))
      throw new ConfigError(
        "config/stray-word",
        `"${more[0] ?? word}" is one too many: ${whet} diagnose takes one run.`,
      );
    const run = options.run || (word ?? "");
    requireRun(run);
    const findings = diagnose(run, eventsOf(run), Date.now());
    if (options.json)
      for (const { finding, ...where } of findings) console.log(JSON.stringify({ ...where, ...finding }));
    else console.log(render(findings));
    return findings.some(({ rewound, finding }) => finding.level === "error" && !rewound) ? 1 : 0;
  },
};

function* eventsOf(run: string) {
  for (const { event } of readJournal(run)) yield event;
}

function render(findings: readonly RunFinding[]): string {
  if (findings.length === 0) return "healthy: nothing found";
  const count = (level: string) => findings.filter(({ finding }) => finding.level === level).length;
  return [
    `${count("error")} errors, ${count("warning")} warnings, ${count("note")} notes`,
    ...findings.map(describe),
  ].join("\n\n");
}

function describe({ since, step, rewound, finding }: RunFinding): string {
  const { level, id, message, steps, figures, samples = [], means, remedy, command } = finding;
  const value = (number: number) => String(Number(number.toPrecision(4)));
  const byName = new Map<string, string[]>();
  for (const { name, step: at, value: number } of figures)
    byName.set(name, [...(byName.get(name) ?? []), `${value(number)}${at === undefined ? "" : ` (step ${at})`}`]);
  return [
    `${level} ${id}, after step ${since}${step > since ? `, worse after step ${step}` : ""}${rewound ? " – these steps were run anew since" : ""}`,
    `  ${message}`,
    ...(steps ? [`  evidence  steps ${steps[0]} to ${steps[1]}`] : []),
    ...[...byName].map(([name, values]) => `            ${name}: ${values.join(", ")}`),
    ...samples.map(
      ({ step, group, sample, problem }) =>
        `            look at  step ${step}, group ${group}, sample ${sample} (${problem})`,
    ),
    `  means     ${means}`,
    `  do        ${remedy}`,
    ...(command === undefined ? [] : [`            ${command}`]),
  ].join("\n");
}
