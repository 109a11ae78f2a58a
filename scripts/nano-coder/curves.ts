// Draws what several runs of examples/rl-loop.ts printed as one picture: each seed a line, Pass@1 before and after with intervals.
//
//   node --import ./src/core/ts-loader.mjs scripts/nano-coder/curves.ts LOG … > docs/nano-coder.svg
import { readFileSync } from "node:fs";
import { type Line, renderChart } from "../../src/runs/chart.ts";

const colors = { correct: "#2563eb", format: "#9ca3af", seen: "#16a34a", composition: "#d97706", unseen: "#a855f7" };
const logs = process.argv.slice(2).map((file) => readFileSync(file, "utf8"));
const number = (text: string | undefined) => Number(text) / 100;

/** The share of each step, averaged over the runs. */
function mean(name: "correct" | "format"): Line["points"] {
  const runs = logs.map((log) =>
    [...log.matchAll(new RegExp(`^step.* ${name} +(\\d+)%`, "gm"))].map(([, value]) => number(value)),
  );
  return runs[0]!.map((_, step) => [step, runs.reduce((sum, run) => sum + run[step]!, 0) / runs.length]);
}

/** Pass@1 of a part before and after training, of all runs together; the intervals are the widest of the runs. */
function passed(part: "seen" | "composition" | "unseen"): Pick<Line, "points" | "intervals"> {
  const steps = mean("correct").length;
  const ends = ["before", "after"].map((when) => {
    const pattern = new RegExp(`^${when} +starter-${part}: Pass@1 +(\\d+)% \\( *(\\d+)% to +(\\d+)%\\)`, "m");
    return logs.map((log) => pattern.exec(log)!.slice(1).map(number));
  });
  return {
    points: ends.map((runs, end) => [end * steps, runs.reduce((sum, [share]) => sum + share!, 0) / runs.length]),
    intervals: ends.map((runs) => [
      Math.min(...runs.map(([, low]) => low!)),
      Math.max(...runs.map(([, , high]) => high!)),
    ]),
  };
}

const lines: Line[] = [
  { label: "correct", color: colors.correct, points: mean("correct") },
  { label: "format", color: colors.format, points: mean("format") },
  { label: "Pass@1 seen", color: colors.seen, ...passed("seen") },
  { label: "Pass@1 composition", color: colors.composition, ...passed("composition") },
  { label: "Pass@1 unseen families", color: colors.unseen, ...passed("unseen") },
];
process.stdout.write(renderChart({ title: `nano-coder, GRPO, mean of ${logs.length} seeds`, lines }));
