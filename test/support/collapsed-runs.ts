// Figures of real runs that broke, as events: test/golden/collapsed-runs.json says what made them.
import { readFileSync } from "node:fs";
import type { NewEvent } from "../../src/runs/events.ts";
import { evaluated, type Figures, opened, stepDone } from "./synthetic-run.ts";

interface Recorded {
  settings: Record<string, number>;
  evaluations: Record<string, Figures>;
  /** By step. */
  figures: Record<string, (number | null)[]>;
}

const { runs } = JSON.parse(readFileSync(new URL("../golden/collapsed-runs.json", import.meta.url), "utf8")) as {
  runs: Record<string, Recorded>;
};

/** Name and events of each. */
export const collapsedRuns: [name: string, events: NewEvent[]][] = Object.entries(runs).map(([name, recorded]) => [
  name,
  eventsOf(recorded),
]);

function eventsOf({ settings, evaluations, figures }: Recorded): NewEvent[] {
  const steps = figures["mean_correct"]!.map((_, step) => {
    const known = Object.entries(figures).flatMap(([name, values]) =>
      values[step] == null ? [] : [[name, values[step]] as const],
    );
    return stepDone(step, Object.fromEntries(known));
  });
  return [
    opened[0]!,
    { type: "started", session: 0, config: settings, changes: [] },
    ...steps.flatMap((event, step) => [...(evaluations[step] ? [evaluated(step, evaluations[step])] : []), event]),
  ];
}
