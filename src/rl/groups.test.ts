import fc from "fast-check";
import { expect, test } from "vitest";
import { firstSamples, furtherTasks, mostGroups, mostTimes } from "./groups.ts";
import type { Group } from "./rollout.ts";
import type { Task } from "./tasks.ts";

const groupOf = (rewards: readonly (number | null)[]) =>
  ({ completions: rewards.map((reward) => ({ grade: { reward } })) }) as unknown as Group;
const tasksOf = (count: number) => Array.from({ length: count }, (_, index) => ({ id: String(index) }) as Task);

test("further answers go to open problems alone, the same number to each, and a batch never has more than its size", () => {
  const scenario = fc
    .record({ prompts: fc.integer({ min: 1, max: 20 }), first: fc.integer({ min: 2, max: 6 }) })
    .chain(({ prompts, first }) =>
      fc.record({
        first: fc.constant(first),
        size: fc.integer({ min: prompts * first, max: prompts * first * 6 }),
        rewards: fc.array(fc.array(fc.constantFrom(0, 1, -0.1, null), { minLength: first, maxLength: first }), {
          minLength: prompts,
          maxLength: prompts,
        }),
      }),
    );
  fc.assert(
    fc.property(scenario, ({ first, size, rewards }) => {
      const config = {
        groups: "adaptive",
        batch_size: size,
        group_size: rewards.length,
        first_samples: first,
      } as const;
      const further = furtherTasks(tasksOf(rewards.length), rewards.map(groupOf), config);
      const open = rewards.flatMap((some, index) =>
        new Set(some.filter((reward) => reward !== null)).size > 1 ? [index] : [],
      );
      expect([[], open]).toContainEqual(further.map(({ continues }) => continues));
      expect(further.map(({ id, continues }) => id === String(continues))).toEqual(further.map(() => true));
      expect(new Set(further.map(({ samples }) => samples)).size).toBeLessThanOrEqual(1);
      const each = further[0]?.samples ?? 0;
      const left = size - first * rewards.length - each * further.length;
      expect(left).toBeGreaterThanOrEqual(0);
      expect(each + first).toBeLessThanOrEqual(mostTimes * first);
      // All is used that can be shared evenly, up to the limit of one problem.
      if (open.length > 0) expect(left < open.length || each === (mostTimes - 1) * first).toBe(true);
      expect(rewards.length + further.length).toBeLessThanOrEqual(mostGroups(config));
    }),
  );
});

test("uniform groups have one round of equal size", () => {
  const config = { groups: "uniform", batch_size: 8, group_size: 2, first_samples: 2 } as const;
  expect(firstSamples(config)).toBe(4);
  expect(furtherTasks(tasksOf(2), [groupOf([0, 1, 0, 0]), groupOf([1, 1, 1, 1])], config)).toEqual([]);
});

/**
 * What the expected update of a problem solved with probability p is worth, in units of the gradient of p: with rewards 0 and 1, the sum
 * of advantage × score is that multiple of the gradient (docs/decisions/0084-adaptive-groups.md).
 */
function weight(p: number, first: number, further: number): number {
  const choose = (n: number, k: number): number => (k === 0 ? 1 : (choose(n - 1, k - 1) * n) / k);
  const chance = (n: number, k: number) => choose(n, k) * p ** k * (1 - p) ** (n - k);
  let sum = 0;
  for (let right = 1; right < first; right++)
    for (let more = 0; more <= further; more++) {
      const count = first + further;
      const mean = (right + more) / count;
      sum += chance(first, right) * chance(further, more) * count * mean * (1 - mean);
    }
  return sum / (p * (1 - p));
}

test("going on with open problems only never turns an update around, and weighs every problem at least as its first answers would", () => {
  for (const further of [0, 2, 8, 28])
    for (let p = 0.01; p < 1; p += 0.01) expect(weight(p, 4, further)).toBeGreaterThanOrEqual(weight(p, 4, 0) - 1e-9);
  // Without a second round the mean of all answers is the baseline, and the weight is n − 1 whatever p.
  for (const p of [0.1, 0.5, 0.9]) expect(weight(p, 4, 0)).toBeCloseTo(3, 9);
});
