import fc from "fast-check";
import { expect, test } from "vitest";
import { Random } from "../core/random.ts";
import { epochOrder } from "../data/order.ts";
import type { RunEvent } from "../runs/events.ts";
import { Curriculum, type CurriculumOptions, epochsBetween, SolveRates } from "./curriculum.ts";
import type { Task, TaskSource } from "./tasks.ts";

const size = 12;
const prompts = 4;
const source: TaskSource = {
  size,
  batch: async (offset, count) =>
    Array.from({ length: count }, (_, at) => {
      const index = offset + at;
      const problem = epochOrder(size, 0, Math.floor(index / size))[index % size]!;
      return { id: `p${problem}`, source: problem < 6 ? "a" : "b", datasetIndex: index } as Task;
    }),
};
/** Problems 0 to 2 are always solved, 3 to 5 never, the others in half of the tries. */
const passes = (id: string, random: Random) => {
  const problem = Number(id.slice(1));
  return problem < 3 ? 8 : problem < 6 ? 0 : 2 + random.integer(5);
};
const curriculumOf = (options: Partial<CurriculumOptions> = {}) =>
  new Curriculum({
    source,
    prompts,
    lag: 0,
    seed: 0,
    frontier: { step: 0, datasetOffset: 0 },
    entries: [],
    ...options,
  });

/** What the journal says of a trained batch. */
function trained(step: number, tasks: readonly Task[]): RunEvent[] {
  const random = new Random("outcomes", step);
  return [
    ...tasks.map(({ id, source, datasetIndex }, group) => {
      return {
        type: "group-sampled",
        phase: "train",
        batch: step,
        group,
        problem: id,
        source,
        datasetIndex,
      } as RunEvent;
    }),
    {
      type: "update-submitted",
      step,
      groups: tasks.map(({ id }) => ({ problem: id, graded: 8, passed: passes(id, random) })),
    } as RunEvent,
  ];
}

/** Trains `steps` batches at a lag, then reads what was chosen. */
async function run(steps: number, lag: number): Promise<{ chosen: Task[][]; events: RunEvent[] }> {
  const curriculum = curriculumOf({ lag });
  const events: RunEvent[] = [];
  const chosen: Task[][] = [];
  for (let step = 0; step < steps; step++) {
    // With lag, batches are asked for before those in front of them are trained.
    for (let batch = chosen.length; batch <= step + lag; batch++) chosen.push(await curriculum.tasks(batch));
    for (const event of trained(step, chosen[step]!)) {
      events.push(event);
      curriculum.take(event);
    }
  }
  return { chosen: chosen.slice(0, steps), events };
}

test("problems that teach nothing come more rarely, and every problem comes at least every fourth epoch", async () => {
  const { chosen } = await run(60, 0);
  const visits = new Map<string, number[]>();
  for (const { id, datasetIndex } of chosen.flat())
    visits.set(id, [...(visits.get(id) ?? []), Math.floor(datasetIndex / size)]);
  const last = Math.floor(chosen.at(-1)!.at(-1)!.datasetIndex / size);
  expect(visits.size).toBe(size);
  for (const epochs of visits.values())
    for (const [at, epoch] of [...epochs, last].entries())
      expect(epoch - (epochs[at - 1] ?? -1)).toBeLessThanOrEqual(epochsBetween);
  const count = (problem: number) => visits.get(`p${problem}`)!.length;
  for (const dull of [0, 1, 2, 3, 4, 5])
    for (const open of [6, 7, 8, 9]) expect(count(dull)).toBeLessThan(0.6 * count(open));
});

test("a run that goes on chooses what it would have chosen, at any lag, in whatever order batches are asked for", async () => {
  for (const lag of [0, 1, 2]) {
    const { chosen, events } = await run(30, lag);
    for (const cut of [7, 16, 25]) {
      const { datasetIndex } = chosen[cut - 1]!.at(-1)!;
      const entries = events
        .filter((event) =>
          event.type === "update-submitted" ? event.step < cut : (event as { batch: number }).batch <= cut + lag,
        )
        .map((event) => ({ event }));
      const again = curriculumOf({ lag, frontier: { step: cut, datasetOffset: datasetIndex + 1 }, entries });
      const batches = Array.from({ length: lag + 1 }, (_, ahead) => cut + ahead).reverse();
      for (const batch of batches) expect(await again.tasks(batch)).toEqual(chosen[batch]);
    }
  }
});

test("what was taken back by a rewind does not count", async () => {
  const { chosen, events } = await run(20, 0);
  const rewound = [...events, { type: "rewound", to: 10, reason: "" } as RunEvent].map((event) => ({ event }));
  const kept = events.filter((event) => ("step" in event ? event.step : (event as { batch: number }).batch) < 10);
  const frontier = { step: 10, datasetOffset: chosen[9]!.at(-1)!.datasetIndex + 1 };
  const after = curriculumOf({ frontier, entries: rewound });
  expect(await after.tasks(10)).toEqual(
    await curriculumOf({ frontier, entries: kept.map((event) => ({ event })) }).tasks(10),
  );
});

test("information is between 0 and 1, falls as one outcome repeats, and is shared within a source", () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.nat(5), fc.nat(8)), { maxLength: 30 }), (visits) => {
      const rates = new SolveRates();
      for (const [problem, passed] of visits)
        rates.take([{ problem: String(problem), stratum: "s", graded: 8, passed: Math.min(8, passed) }]);
      for (const problem of ["0", "unknown"]) {
        const information = rates.information(problem, "s");
        expect(information).toBeGreaterThan(0);
        expect(information).toBeLessThanOrEqual(1);
      }
    }),
  );
  const rates = new SolveRates();
  const before = rates.information("x", "s");
  rates.take([{ problem: "y", stratum: "s", graded: 16, passed: 16 }]);
  const shared = rates.information("x", "s");
  expect(shared).toBeLessThan(before);
  expect(rates.information("y", "s")).toBeLessThan(shared);
  expect(rates.information("x", "other")).toBe(before);
});
