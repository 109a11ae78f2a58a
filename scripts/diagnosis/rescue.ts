// The picture of docs/diagnosis.md: the same run with and without on_error=rollback.
//   node --import ./src/core/ts-loader.mjs scripts/diagnosis/rescue.ts FOLDER [learning_rate] [steps]
// Trains both into FOLDER (runs that are there are used as they are), prints the curves and writes docs/rescue.svg.
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { readJournal } from "../../src/runs/read-journal.ts";
import { RunView } from "../../src/runs/view.ts";
import { root, train } from "./whet.ts";

const [folder, learningRate = "0.02", steps = "30"] = process.argv.slice(2);
if (folder === undefined) throw new Error("name a folder for the two runs");
const settings = {
  learning_rate: learningRate,
  max_steps: steps,
  eval_every: 20,
  eval_max_problems: 90,
  save_every: 5,
};
for (const on_error of ["warn", "rollback"])
  if (!existsSync(join(folder, on_error))) await train(join(folder, on_error), { ...settings, on_error });

interface Attempt {
  learningRate: number;
  points: [step: number, correct: number][];
}

/** The attempts of a run: a rollback ends one. */
function attemptsOf(path: string): Attempt[] {
  const attempts: Attempt[] = [{ learningRate: Number.NaN, points: [] }];
  for (const { event } of readJournal(path)) {
    if (event.type === "rewound") attempts.push({ learningRate: Number.NaN, points: [] });
    if (event.type !== "step-done") continue;
    attempts.at(-1)!.learningRate = event.metrics["optim/lr"]!;
    attempts.at(-1)!.points.push([event.step, event.metrics["mean_correct"] ?? 0]);
  }
  return attempts;
}

const width = 720;
const height = 260;
const x = (step: number) => (40 + (step / (Number(steps) - 1)) * (width - 60)).toFixed(1);
const y = (share: number) => (height - 30 - share * (height - 60)).toFixed(1);
const line = ({ points }: Attempt, colour: string, dashed: boolean) =>
  `<polyline fill="none" stroke="${colour}" stroke-width="2"${dashed ? ' stroke-dasharray="4 4" opacity="0.6"' : ""} points="${points
    .map(([step, correct]) => `${x(step)},${y(correct)}`)
    .join(" ")}"/>`;
const text = (left: number | string, top: number | string, words: string, more = "") =>
  `<text x="${left}" y="${top}" font-family="sans-serif" font-size="12" fill="#888" ${more}>${words}</text>`;

const shapes: string[] = [0, 0.5, 1].flatMap((share) => [
  `<line x1="40" x2="${width - 20}" y1="${y(share)}" y2="${y(share)}" stroke="#8884"/>`,
  text(8, y(share), `${100 * share}%`),
]);
for (const [name, colour] of [
  ["warn", "#d33"],
  ["rollback", "#2a7"],
] as const) {
  const path = join(folder, name);
  const attempts = attemptsOf(path);
  const { evaluations, records } = RunView.read(path);
  console.log(`\non_error=${name}`);
  for (const [index, attempt] of attempts.entries()) {
    shapes.push(line(attempt, colour, index < attempts.length - 1));
    const shown = attempt.points.map(([step, correct]) => `${step}:${Math.round(100 * correct)}`).join(" ");
    console.log(`  learning_rate=${attempt.learningRate}  ${shown}`);
  }
  const measured = [...evaluations.keys()].map((step) => {
    const rate = records.find((record) => record.step === step && record["eval/pass@1"] !== undefined)?.["eval/pass@1"];
    return `${step}: ${rate === undefined ? "–" : `${(100 * rate).toFixed(1)}%`}`;
  });
  console.log(`  Pass@1 after steps ${measured.join(", ")}`);
}
shapes.push(
  text(
    width - 20,
    16,
    "right answers while training; red: on_error=warn, green: on_error=rollback (dashed: undone)",
    'text-anchor="end"',
  ),
  text(width - 20, height - 8, `step, 0 to ${Number(steps) - 1}`, 'text-anchor="end"'),
);
writeFileSync(
  join(root, "docs/rescue.svg"),
  `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" role="img" aria-label="Right answers by step, without and with a rollback">\n${shapes.join("\n")}\n</svg>\n`,
);
