// Findings as lines of text: whole for those who ask, short while a run trains.
import { entryOf } from "../core/maps.ts";
import type { Cause, Finding } from "../runs/findings.ts";
import type { RunFinding } from "./diagnosis.ts";

/** A cause with its evidence and what to do, and a line for each of its symptoms: their own advice would be for another cause. */
export function describeCause({ root, symptoms, level }: Cause<RunFinding>): string {
  const { since, step, rewound, finding } = root;
  const { id, message, steps, figures, samples = [], means } = finding;
  const byName = new Map<string, string[]>();
  for (const { name, step: at, value } of figures)
    entryOf(byName, name, () => []).push(`${short(value)}${at === undefined ? "" : ` (step ${at})`}`);
  return [
    `${level} ${id}, after step ${since}${step > since ? `, worse after step ${step}` : ""}${rewound ? " – these steps were run anew since" : ""}`,
    `  ${message}`,
    ...labelled("evidence", [
      ...(steps ? [`steps ${steps[0]} to ${steps[1]}`] : []),
      ...[...byName].map(([name, values]) => `${name}: ${values.join(", ")}`),
      ...samples.map(
        ({ step, group, sample, problem }) => `look at step ${step}, group ${group}, sample ${sample} (${problem})`,
      ),
    ]),
    ...labelled("means", [means]),
    ...labelled("do", advice(finding)),
    ...labelled(
      "so also",
      symptoms.map(
        ({ since: from, finding: { id: symptom, message: said } }) => `${symptom}, after step ${from}: ${said}`,
      ),
    ),
  ].join("\n");
}

/** A finding as it is said while a run trains; a note in one line. */
export function sayFinding(finding: Finding): string {
  const { id, level, message, means } = finding;
  const more = level === "note" ? [] : [...labelled("means", [means]), ...labelled("do", advice(finding))];
  return [`${id}: ${message}`, ...more].join("\n");
}

const advice = ({ remedy, command }: Finding) => (command === undefined ? [remedy] : [remedy, command]);

/** Lines under one another beside a label. */
const labelled = (label: string, lines: readonly string[]) =>
  lines.map((line, index) => `  ${(index === 0 ? label : "").padEnd(8)}  ${line}`);

const short = (value: number) => String(Number(value.toPrecision(4)));
