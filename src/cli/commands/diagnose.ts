// `./whet diagnose RUN`: what is wrong with a run, live or finished, and what to do about it.
import { z } from "zod";
import { countOf } from "../../core/count.ts";
import { visible } from "../../core/visible.ts";
import { widthOf, wrap } from "../../core/wrap.ts";
import { diagnose, type RunFinding } from "../../diagnosis/diagnosis.ts";
import { describeCause } from "../../diagnosis/text.ts";
import { type Cause, causesOf, findingLevels } from "../../runs/findings.ts";
import { readJournal } from "../../runs/read-journal.ts";
import { commandOf } from "../command.ts";
import { runKey, runOf } from "../weights/find-run.ts";

const DiagnoseOptions = z.strictObject({
  run: runKey,
  json: z.boolean().default(false).describe("one JSON line per finding"),
});

export const command = commandOf(DiagnoseOptions, {
  usage: "diagnose [RUN] [key=value …]",
  about: [
    "Reads a run's journal, also of one that is training, and says what is wrong with it: each cause with its evidence, what it most likely",
    "means, what to do, and what followed from it. Exit code 0: nothing of level error; 1: something is.",
  ],
  words: "run",
  async run({ options }) {
    const run = runOf(options.run);
    const findings = diagnose(run, eventsOf(run), Date.now());
    // A cause in steps that were undone is shown without symptoms.
    const causes = [
      ...causesOf(findings.filter(({ rewound }) => !rewound)),
      ...findings.filter(({ rewound }) => rewound).map((root) => ({ root, symptoms: [], level: root.finding.level })),
    ];
    if (options.json)
      for (const { root, symptoms } of causes)
        for (const { finding, ...where } of [root, ...symptoms])
          console.log(
            JSON.stringify({ ...where, ...(finding === root.finding ? {} : { cause: root.finding.id }), ...finding }),
          );
    else console.log(wrap(visible(render(causes)), widthOf(process.stdout)));
    return findings.some(({ rewound, finding }) => finding.level === "error" && !rewound) ? 1 : 0;
  },
});

function* eventsOf(run: string) {
  for (const { event } of readJournal(run)) yield event;
}

function render(causes: readonly Cause<RunFinding>[]): string {
  if (causes.length === 0) return "healthy: nothing found";
  const count = (level: string) => causes.filter((cause) => cause.level === level).length;
  return [
    findingLevels
      .toReversed()
      .map((level) => countOf(count(level), level))
      .join(", "),
    ...causes.map(describeCause),
  ].join("\n\n");
}
