import { setTimeout as sleep } from "node:timers/promises";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { Random } from "../core/random.ts";
import { type Batches, Pipeline, type PipelineOptions, versionFor } from "./pipeline.ts";
import type { Policy } from "./policies.ts";
import type { Group, Place } from "./rollout.ts";
import type { Task } from "./tasks.ts";

const never = new AbortController().signal;
const policyOf = (version: number): Policy => ({ version, open: () => Promise.reject(new Error("not asked for")) });
const tasks = (count: number) =>
  new Map(Array.from({ length: count }, (_, group) => [group, { id: String(group) } as Task]));
const groupOf = ({ batch, group }: Place, policy: Policy) =>
  ({ batch, group, problem: `${batch} ${group}`, policy: policy.version, completions: [] }) as unknown as Group;

function pipelineOf(options: Partial<PipelineOptions & Batches>): Pipeline {
  return new Pipeline({
    plan: { first: 0, end: 5, tasksOf: async () => tasks(3), ...options },
    lag: 0,
    rollOut: async (place, _, policy) => groupOf(place, policy),
    drain: never,
    cancel: never,
    ...options,
  });
}

describe("the pipeline", () => {
  test("asks in place of each group what it is told to, from the same policy: the same groups whatever the timing", async () => {
    const scenario = fc.record({ teaching: fc.array(fc.boolean(), { minLength: 9, maxLength: 9 }), seed: fc.nat() });
    await fc.assert(
      fc.asyncProperty(scenario, async ({ teaching, seed }) => {
        const random = new Random("delays", seed);
        const pipeline = pipelineOf({
          lag: 1,
          end: 2,
          rollOut: async (place, { id }, policy) => {
            if (random.float() < 0.5) await sleep(random.float() * 3);
            return { ...groupOf(place, policy), source: id };
          },
          further: (_, { source }, next) =>
            teaching[Number(source)] || next >= teaching.length
              ? undefined
              : sleep(random.float(), { id: String(next) } as Task),
        });
        pipeline.use(policyOf(0));
        // The shortest stretch with three that teach, or all there are.
        const enough = teaching.findIndex((_, last) => teaching.slice(0, last + 1).filter(Boolean).length === 3);
        const expected = Array.from({ length: enough === -1 ? 9 : enough + 1 }, (_, group) => String(group));
        let given = 0;
        for await (const { groups } of pipeline.batches()) {
          expect(groups.map(({ source }) => source)).toEqual(expected);
          expect(groups.every(({ policy }) => policy === 0)).toBe(true);
          given++;
        }
        expect(given).toBe(2);
        await pipeline.close();
      }),
      { numRuns: 60 },
    );
  });

  test("samples batch n from version max(0, n − lag), or from where it was rewound to, whatever the timing, at most lag + 1 batches ahead", async () => {
    const scenario = fc.record({
      lag: fc.integer({ min: 0, max: 5 }),
      first: fc.integer({ min: 0, max: 7 }),
      floor: fc.integer({ min: 0, max: 9 }),
      steps: fc.integer({ min: 1, max: 8 }),
      seed: fc.nat(),
    });
    await fc.assert(
      fc.asyncProperty(scenario, async ({ lag, first, floor, steps, seed }) => {
        const random = new Random("delays", seed);
        const end = first + steps;
        const seen: [batch: number, version: number][] = [];
        const started = new Set<number>();
        let trained = first;
        const pipeline = pipelineOf({
          lag,
          floor,
          first,
          end,
          rollOut: async (place, _, policy) => {
            started.add(place.batch);
            expect(place.batch - trained).toBeLessThanOrEqual(lag);
            if (random.float() < 0.5) await sleep(random.float() * 3);
            return groupOf(place, policy);
          },
        });
        for (let version = versionFor(first, lag, floor); version <= first; version++) pipeline.use(policyOf(version));
        for await (const { batch, groups } of pipeline.batches()) {
          for (const group of groups) seen.push([batch, group.policy]);
          expect(groups.map(({ problem }) => problem)).toEqual([0, 1, 2].map((group) => `${batch} ${group}`));
          expect(pipeline.batchesInFlight).toBeLessThanOrEqual(lag);
          if (random.float() < 0.5) await sleep(random.float() * 3);
          trained = batch + 1;
          pipeline.use(policyOf(batch + 1));
        }
        const expected = Array.from({ length: steps }, (_, index) => first + index);
        expect(seen).toEqual(expected.flatMap((batch) => [0, 1, 2].map(() => [batch, versionFor(batch, lag, floor)])));
        expect([...started].sort((a, b) => a - b)).toEqual(expected);
        await pipeline.close();
        expect(pipeline.groupsInFlight).toBe(0);
      }),
      { numRuns: 60 },
    );
  });

  test("gives a batch when its share is there, carries the others over once, and leaves nothing out, whatever the timing", async () => {
    const scenario = fc.record({
      lag: fc.integer({ min: 0, max: 3 }),
      steps: fc.integer({ min: 1, max: 7 }),
      share: fc.constantFrom(0.25, 0.5, 0.75, 1),
      stopAt: fc.integer({ min: 0, max: 9 }),
      seed: fc.nat(),
    });
    let carriedInAll = 0;
    await fc.assert(
      fc.asyncProperty(scenario, async ({ lag, steps, share, stopAt, seed }) => {
        const random = new Random("delays", seed);
        const pipeline = pipelineOf({
          lag,
          share,
          end: steps,
          tasksOf: async () => tasks(4),
          rollOut: async (place, _, policy) => {
            if (random.float() < 0.5) await sleep(8 * random.float() ** 4);
            return groupOf(place, policy);
          },
        });
        pipeline.use(policyOf(0));
        const given: string[] = [];
        let due: string[] = [];
        let batches = 0;
        for await (const { batch, groups, carried } of pipeline.batches()) {
          const names = groups.map(({ problem }) => problem);
          // First what was carried over into it, all of it, then its own.
          expect(names.slice(0, due.length)).toEqual(due);
          const own = names.slice(due.length);
          expect(own.every((name) => name.startsWith(`${batch} `))).toBe(true);
          expect(own.length + carried.length).toBe(4);
          expect(own.length).toBeGreaterThanOrEqual(share * 4);
          for (const group of groups) {
            expect(group.policy).toBe(versionFor(group.batch, lag));
            expect(batch - group.policy).toBeLessThanOrEqual(lag + 1);
          }
          due = carried.map(({ group }) => `${batch} ${group}`);
          carriedInAll += carried.length;
          given.push(...names);
          batches++;
          if (batch === stopAt) pipeline.stop();
          await sleep(random.float() * 2);
          pipeline.use(policyOf(batch + 1));
        }
        // A run that is ended early leaves what it carried to the one that goes on.
        expect(batches === steps ? due : []).toEqual([]);
        expect(new Set(given).size).toBe(given.length);
        expect(given.length + due.length).toBe(4 * batches);
        await pipeline.close();
      }),
      { numRuns: 60 },
    );
    expect(carriedInAll).toBeGreaterThan(0);
  });

  test("what the journal says a batch was trained on is given again just so, and what it left is waited for", async () => {
    const at = (batch: number, group: number) => ({ batch, group });
    // Before the first batch two groups of batch 1 were left; batch 2 was trained on without its group 1.
    const before = new Map([[2, [at(1, 0), at(1, 2), at(2, 0), at(2, 2)]]]);
    const open = tasks(3);
    open.delete(1);
    const pipeline = pipelineOf({
      oldest: 1,
      first: 2,
      end: 4,
      share: 0.5,
      trainedPlaces: (batch) => before.get(batch),
      tasksOf: async (batch) => (batch === 1 ? open : tasks(3)),
      rollOut: async (place, _, policy) => {
        if (place.batch === 2 && place.group === 1) await sleep(20);
        return groupOf(place, policy);
      },
    });
    for (const version of [1, 2]) pipeline.use(policyOf(version));
    const given: string[][] = [];
    for await (const { batch, groups } of pipeline.batches()) {
      given.push(groups.map(({ problem }) => problem));
      pipeline.use(policyOf(batch + 1));
    }
    expect(given).toEqual([
      ["1 0", "1 2", "2 0", "2 2"],
      ["2 1", "3 0", "3 1", "3 2"],
    ]);
    await pipeline.close();
  });

  test("a slow group holds back its own batch, not the sampling of the next ones", async () => {
    let release: () => void = () => {};
    const slow = new Promise<void>((resolve) => {
      release = resolve;
    });
    const done: string[] = [];
    const pipeline = pipelineOf({
      lag: 2,
      rollOut: async (place, _, policy) => {
        if (place.batch === 0 && place.group === 1) await slow;
        done.push(`${place.batch} ${place.group}`);
        return groupOf(place, policy);
      },
    });
    pipeline.use(policyOf(0));
    await sleep(5);
    expect(done.sort()).toEqual(["0 0", "0 2", "1 0", "1 1", "1 2", "2 0", "2 1", "2 2"]);
    release();
    expect((await pipeline.batches().next()).value?.batch).toBe(0);
    await pipeline.close();
  });

  test.each(["while its batch is awaited", "while an earlier batch is trained on"])(
    "a group that fails stops the others, and its own error is what rises: %s",
    async (when) => {
      const stopped: string[] = [];
      const early = when.includes("earlier");
      const pipeline = pipelineOf({
        lag: 1,
        rollOut: async (place, _, policy, signal) => {
          if (early && place.batch === 0) return groupOf(place, policy);
          if (place.group === 1) throw new Error("the tests cannot be read");
          await sleep(60_000, undefined, { signal }).catch((error: unknown) => {
            stopped.push(`${place.batch} ${place.group}`);
            throw error;
          });
          return groupOf(place, policy);
        },
      });
      pipeline.use(policyOf(0));
      const batches = pipeline.batches();
      if (early) {
        expect((await batches.next()).value?.batch).toBe(0);
        await sleep(5);
      }
      await expect(batches.next()).rejects.toThrow("the tests cannot be read");
      await pipeline.close();
      expect(stopped.length).toBeGreaterThan(0);
    },
  );

  test("drained, it ends after the batch under way, and what is under way is stopped", async () => {
    const drain = new AbortController();
    let stopped = 0;
    const pipeline = pipelineOf({
      lag: 1,
      drain: drain.signal,
      rollOut: async (place, _, policy, signal) => {
        if (place.batch === 0) return groupOf(place, policy);
        return sleep(60_000, groupOf(place, policy), { signal }).finally(() => stopped++);
      },
    });
    pipeline.use(policyOf(0));
    const given: number[] = [];
    for await (const { batch } of pipeline.batches()) {
      given.push(batch);
      setTimeout(() => drain.abort(new Error("interrupted")), 5);
    }
    expect(given).toEqual([0]);
    await pipeline.close();
    expect(stopped).toBe(3);
  });

  test("cancelled, it ends with the reason", async () => {
    const cancel = new AbortController();
    const pipeline = pipelineOf({
      cancel: cancel.signal,
      rollOut: (place, _, policy, signal) => sleep(60_000, groupOf(place, policy), { signal }),
    });
    pipeline.use(policyOf(0));
    setTimeout(() => cancel.abort(new Error("the engine is gone")), 5);
    await expect(pipeline.batches().next()).rejects.toThrow("the engine is gone");
    await pipeline.close();
  });
});
