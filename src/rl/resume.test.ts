import fc from "fast-check";
import { expect, test } from "vitest";
import { describeStart, endOf } from "./resume.ts";

test.each<
  [first: number, frontier: number, max_steps: number, checkpoint: string | undefined, text: string | undefined]
>([
  [0, 0, 6, undefined, undefined],
  [
    0,
    1,
    6,
    undefined,
    "resuming at step 0 from the start; 1 later step of the journal is trained again, nothing is sampled again",
  ],
  [
    4,
    6,
    8,
    "000004",
    "resuming at step 4 from checkpoint 000004; 2 later steps of the journal are trained again, nothing is sampled again",
  ],
  [6, 6, 9, "final", "resuming at step 6 from checkpoint final"],
  [6, 6, 6, "final", "resuming at step 6 from checkpoint final; max_steps=6 leaves nothing to train"],
  [
    4,
    6,
    5,
    "000004",
    "resuming at step 4 from checkpoint 000004; 1 later step of the journal is trained again, nothing is sampled again; 1 later step of the journal is kept for a larger max_steps",
  ],
  [
    4,
    6,
    3,
    "000004",
    "resuming at step 4 from checkpoint 000004; max_steps=3 leaves nothing to train; 2 later steps of the journal are kept for a larger max_steps",
  ],
])("from step %i, trained up to %i, max_steps=%i", (first, frontier, max_steps, checkpoint, text) => {
  expect(describeStart(first, frontier, { max_steps }, checkpoint)).toBe(text);
});

test("every step of the journal is reported once, under any max_steps", () => {
  const counts = fc.record({ first: fc.nat(50), later: fc.nat(50), max_steps: fc.integer({ min: -1, max: 120 }) });
  fc.assert(
    fc.property(counts, ({ first, later, max_steps }) => {
      const text = describeStart(first, first + later, { max_steps }, "c")!;
      const stated = [...text.matchAll(/(\d+) later steps? of the journal (?:is|are) (trained|kept)/g)];
      expect(stated.reduce((sum, [, count]) => sum + Number(count), 0)).toBe(later);
      const again = Number(stated.find(([, , what]) => what === "trained")?.[1] ?? 0);
      expect(first + again).toBeLessThanOrEqual(endOf({ max_steps }, first));
      expect(text.includes("nothing to train")).toBe(endOf({ max_steps }, first) === first);
    }),
  );
});
