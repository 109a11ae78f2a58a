// What the diagnosis found in a run: src/diagnosis makes findings, the journal keeps them, everything else shows them.
import { z } from "zod";
import type { EventOf, RunEvent } from "./events.ts";
import { isStepUndone } from "./rewinds.ts";

/** JSON has no NaN or infinity: the journal writes those as text (core/jsonl.ts). Undefined for what is no figure. */
export function asFigure(value: unknown): number | undefined {
  if (typeof value === "number") return value;
  return value === "NaN" || value === "Infinity" || value === "-Infinity" ? Number(value) : undefined;
}

export const figure = z.preprocess(
  asFigure,
  z.custom<number>((value) => typeof value === "number"),
);

/** note: worth knowing. warning: look at it. error: the run is learning nothing, or the wrong thing. */
export const findingLevels = ["note", "warning", "error"] as const;
export type FindingLevel = (typeof findingLevels)[number];

export const Finding = z.object({
  /** Stable: docs/diagnosis.md lists all. */
  id: z.string(),
  level: z.enum(findingLevels),
  /** What was seen, in one sentence with its figures. */
  message: z.string(),
  /** The steps that are the evidence, first and last; none where it is not about steps. */
  steps: z.tuple([z.int().min(0), z.int().min(0)]).optional(),
  /** The figures that are the evidence, by metric name. */
  figures: z.array(z.object({ name: z.string(), step: z.int().min(0).optional(), value: figure })),
  /** Answers to look at. */
  samples: z
    .array(z.object({ step: z.int().min(0), group: z.int().min(0), sample: z.int().min(0), problem: z.string() }))
    .optional(),
  /** What it most likely means. */
  means: z.string(),
  /** What to do. */
  remedy: z.string(),
  /** A command to paste, where there is one. */
  command: z.string().optional(),
  /** Findings that bring this one about where they are there, the likeliest first: it is then shown beneath them. */
  symptomOf: z.array(z.string()).optional(),
});
/** A finding of the diagnosis. */
export type Finding = z.output<typeof Finding>;

/** A finding of a run, and the step after which it was first reported. */
export interface Found {
  since: number;
  finding: Finding;
}

/** One cause: its finding, and those that follow from it. */
export interface Cause<T extends Found = Found> {
  root: T;
  symptoms: T[];
  /** The worst of them all. */
  level: FindingLevel;
}

/** Rules look at up to ten steps: what a cause brings about may be reported this many steps before the cause itself shows. */
const headStart = 5;

const rank = (level: FindingLevel) => findingLevels.indexOf(level);

/**
 * Findings by cause, the worst first. A finding is a symptom of one that it names, unless it was there long before or that one is a mere
 * note; of two that name each other, the one that is named earlier is the cause.
 */
export function causesOf<T extends Found>(findings: readonly T[]): Cause<T>[] {
  const ordered = findings.toSorted((a, b) => a.since - b.since);
  const place = (a: T, b: T) => b.finding.symptomOf?.indexOf(a.finding.id) ?? -1;
  const explains = (a: T, b: T) =>
    a !== b &&
    place(a, b) >= 0 &&
    (a.finding.level !== "note" || b.finding.level === "note") &&
    (a.finding.steps?.[0] ?? a.since) - headStart <= b.since;
  const causeOf = (one: T) =>
    ordered.find((other) => explains(other, one) && !(explains(one, other) && place(one, other) < place(other, one)));
  const rootOf = (one: T): T => {
    const seen = [one];
    for (let cause = causeOf(one); cause; cause = causeOf(cause)) {
      const again = seen.indexOf(cause);
      // Each brought about the next, in a circle: the one that is named before the others.
      if (again >= 0) return seen.slice(again).sort((a, b) => place(a, b) - place(b, a))[0]!;
      seen.push(cause);
    }
    return seen.at(-1)!;
  };
  const causes = new Map<T, Cause<T>>();
  for (const one of ordered) {
    const root = rootOf(one);
    const cause = causes.get(root) ?? { root, symptoms: [], level: root.finding.level };
    if (one !== root) cause.symptoms.push(one);
    if (rank(one.finding.level) > rank(cause.level)) cause.level = one.finding.level;
    causes.set(root, cause);
  }
  return [...causes.values()].sort((a, b) => rank(b.level) - rank(a.level) || a.root.since - b.root.since);
}

/** A finding as a run's journal has it: the newest of its kind. */
export interface JournalledFinding extends Found {
  /** The step after which it was last reported: again where its level became worse. */
  step: number;
  action: EventOf<"finding">["action"];
}

/** The findings of a journal that no rewind took back. */
export class FoundFindings {
  readonly #byId = new Map<string, JournalledFinding>();

  take(event: RunEvent): void {
    if (event.type === "finding") {
      const { step, finding, action } = event;
      const since = this.#byId.get(finding.id)?.since ?? step;
      this.#byId.set(finding.id, { since, step, finding, action });
    }
    if (event.type === "rewound")
      for (const [id, { step }] of [...this.#byId]) if (isStepUndone(step, event.to)) this.#byId.delete(id);
  }

  get all(): JournalledFinding[] {
    return [...this.#byId.values()];
  }

  /** By cause, the worst first. */
  get causes(): Cause<JournalledFinding>[] {
    return causesOf(this.all);
  }
}
