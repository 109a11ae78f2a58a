// A run by problem: what training made of each group of it, and how it went in every evaluation.
import type { ProblemOutcome } from "./events.ts";
import type { GroupEntry, RunView } from "./view.ts";

export interface Problem {
  id: string;
  /** Groups of training, in the order of steps. */
  attempts: ({ step: number } & GroupEntry)[];
  /** By the version that was measured, in order. */
  evaluations: ({ step: number; group: number } & ProblemOutcome)[];
}

/** Every problem that a run met, by its id: those of training first, in the order of its steps. */
export function problemsOf({ updates, evaluations }: RunView): Map<string, Problem> {
  const problems = new Map<string, Problem>();
  const of = (id: string): Problem => {
    const problem = problems.get(id) ?? { id, attempts: [], evaluations: [] };
    problems.set(id, problem);
    return problem;
  };
  // By the step whose batch a group is of: there its answers are found.
  for (const { groups } of updates.values())
    for (const entry of groups) of(entry.problem).attempts.push({ step: entry.batch, ...entry });
  for (const { step, outcomes } of [...evaluations.values()].sort((a, b) => a.step - b.step))
    for (const [group, outcome] of outcomes.entries()) of(outcome.id).evaluations.push({ step, group, ...outcome });
  return problems;
}
