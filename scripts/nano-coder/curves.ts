// Draws what several runs of examples/rl-loop.ts printed as one picture: each seed a line, Pass@1 before and after with intervals.
//
//   node --import ./src/core/ts-loader.mjs scripts/nano-coder/curves.ts LOG … > docs/nano-coder.svg
import { readFileSync } from "node:fs";
import { picture } from "../../src/runs/chart.ts";

const logs = process.argv.slice(2).map((file) => readFileSync(file, "utf8"));
const number = (text: string | undefined) => Number(text) / 100;

/** The share of each step, averaged over the runs. */
function mean(name: "correct" | "format"): number[] {
  const runs = logs.map((log) =>
    [...log.matchAll(new RegExp(`^step.* ${name} +(\\d+)%`, "gm"))].map(([, value]) => number(value)),
  );
  return runs[0]!.map((_, step) => runs.reduce((sum, run) => sum + run[step]!, 0) / runs.length);
}

const correct = mean("correct");
const steps = [...correct.keys(), correct.length];

/** Values before and after training, at the first and the last step. */
const ends = ([before, after]: readonly number[]) =>
  steps.map((_, step) => [before!, ...steps.slice(2).map(() => null), after!][step] ?? null);

/** Pass@1 of a part before and after training, of all runs together; the intervals are the widest of the runs. */
function passed(part: "seen" | "composition" | "unseen") {
  const shares = ["before", "after"].map((when) => {
    const pattern = new RegExp(`^${when} +starter-${part}: Pass@1 +(\\d+)% \\( *(\\d+)% to +(\\d+)%\\)`, "m");
    return logs.map((log) => pattern.exec(log)!.slice(1).map(number));
  });
  return {
    values: ends(shares.map((runs) => runs.reduce((sum, [share]) => sum + share!, 0) / runs.length)),
    low: ends(shares.map((runs) => Math.min(...runs.map(([, low]) => low!)))),
    high: ends(shares.map((runs) => Math.max(...runs.map(([, , high]) => high!)))),
  };
}

const lines = [
  { label: "correct", color: "blue", values: [...correct, null] },
  { label: "format", color: "gray", values: [...mean("format"), null] },
  { label: "Pass@1 seen", color: "green", ...passed("seen") },
  { label: "Pass@1 composition", color: "orange", ...passed("composition") },
  { label: "Pass@1 unseen families", color: "violet", ...passed("unseen") },
];
process.stdout.write(picture(`nano-coder, GRPO, mean of ${logs.length} seeds`, { steps, lines }));
