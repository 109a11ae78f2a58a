// The diagnosis of a run: takes its events in order and says what is new. Live and afterwards it is the same fold, so what was said while
// training is what is said later.
import type { RunEvent } from "../runs/events.ts";
import { type Finding, type FindingLevel, type Found, findingLevels } from "../runs/findings.ts";
import { isStepUndone } from "../runs/rewinds.ts";
import { Evidence } from "./evidence.ts";
import { findingOf } from "./rule.ts";
import { rules } from "./rules.ts";

/** A finding, and the step after which it appeared. */
export interface Raised {
  step: number;
  finding: Finding;
}

const endIds = new Set(rules.filter(({ aboutEnd }) => aboutEnd).map(({ id }) => id));

const rank = (level: FindingLevel) => findingLevels.indexOf(level);

export class Diagnosis {
  readonly evidence = new Evidence();
  /** What was said already, at which level; said again only when it is worse, or after a rewind. */
  readonly #said = new Map<string, { level: FindingLevel; step: number }>();

  constructor(runPath: string) {
    this.evidence.runPath = runPath;
  }

  /** The findings that this event brings. */
  take(event: RunEvent): Raised[] {
    this.evidence.take(event);
    if (event.type === "rewound")
      for (const [id, { step }] of [...this.#said]) if (isStepUndone(step, event.to)) this.#said.delete(id);
    if (event.type === "opened") for (const id of endIds) this.#said.delete(id);
    return event.type === "step-done" || event.type === "evaluated" || event.type === "stopped" ? this.#look() : [];
  }

  /** The findings that the passing of time brings: what `now` is. */
  at(now: number): Raised[] {
    this.evidence.now = Math.max(this.evidence.now, now);
    return this.#look();
  }

  #look(): Raised[] {
    const step = Math.max(0, this.evidence.step);
    return rules.flatMap((rule) => {
      const sighting = rule.check(this.evidence);
      if (!sighting) return [];
      const said = this.#said.get(rule.id);
      if (said && rank(said.level) >= rank(sighting.level)) return [];
      this.#said.set(rule.id, { level: sighting.level, step });
      return [{ step, finding: findingOf(rule, sighting, this.evidence) }];
    });
  }
}

/** A finding of a whole run; `since`: the step after which it first appeared, perhaps at a lower level. */
export interface RunFinding extends Raised, Found {
  /** The steps it is about were run anew after it: it no longer counts. */
  rewound: boolean;
}

/**
 * Everything the diagnosis has to say of a run, oldest first; of a finding that grew worse, the worst. `now` in milliseconds since the
 * epoch: what expires does so meanwhile.
 */
export function diagnose(runPath: string, events: Iterable<RunEvent>, now: number): RunFinding[] {
  const diagnosis = new Diagnosis(runPath);
  const found: RunFinding[] = [];
  const add = (raised: readonly Raised[]) => {
    for (const one of raised) {
      const earlier = found.findIndex(({ finding, rewound }) => !rewound && finding.id === one.finding.id);
      const [milder] = earlier < 0 ? [] : found.splice(earlier, 1);
      found.push({ ...one, since: milder?.since ?? one.step, rewound: false });
    }
  };
  for (const event of events) {
    add(diagnosis.take(event));
    if (event.type === "rewound") for (const one of found) if (isStepUndone(one.step, event.to)) one.rewound = true;
    if (event.type === "opened")
      found.splice(0, found.length, ...found.filter(({ finding }) => !endIds.has(finding.id)));
  }
  add(diagnosis.at(now));
  return found;
}
