// What the diagnosis found in a run: src/diagnosis makes findings, the journal keeps them, everything else shows them.
import { z } from "zod";

/** JSON has no NaN or infinity: the journal writes those as text (core/jsonl.ts). */
export const figure = z.preprocess(
  (value) => (value === "NaN" || value === "Infinity" || value === "-Infinity" ? Number(value) : value),
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
});
/** A finding of the diagnosis. */
export type Finding = z.output<typeof Finding>;
