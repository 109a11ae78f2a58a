import fc from "fast-check";
import { expect, test } from "vitest";
import { SequenceQueue } from "./sequence.ts";

const settled = () => new Promise<void>((resolve) => setImmediate(resolve));

test("whatever the order of arrival, requests run in the order of their numbers, one at a time", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 1, max: 12 }).chain((count) =>
        fc.shuffledSubarray(
          Array.from({ length: count }, (_, index) => index + 1),
          { minLength: count },
        ),
      ),
      async (arrivals) => {
        const queue = new SequenceQueue(60_000);
        const ran: number[] = [];
        let active = 0;
        const done = new Promise<void>((resolve) => {
          for (const sequence of arrivals)
            queue.add(sequence, async () => {
              expect(++active).toBe(1);
              await Promise.resolve();
              ran.push(sequence);
              active--;
              if (ran.length === arrivals.length) resolve();
            });
        });
        await done;
        expect(ran).toEqual([...arrivals].sort((a, b) => a - b));
      },
    ),
  );
});

test("a number that never comes is passed over after the limit, and refused when it comes after all", async () => {
  const gaps: [number, number][] = [];
  const queue = new SequenceQueue(5, (from, to) => gaps.push([from, to]));
  await new Promise<void>((resolve) => queue.add(3, async () => resolve()));
  expect(gaps).toEqual([[1, 2]]);
  for (const late of [1, 2, 3])
    expect(() => queue.add(late, async () => {})).toThrow(expect.objectContaining({ code: "server/sequence-passed" }));
});

test("a refused request uses its number up, so the next one does not wait", async () => {
  const queue = new SequenceQueue(60_000);
  const ran: number[] = [];
  queue.add(2, async () => {
    ran.push(2);
  });
  await settled();
  expect(ran).toEqual([]);
  queue.refuse(1);
  await settled();
  expect(ran).toEqual([2]);
  queue.refuse(1);
  expect(queue.next).toBe(3);
});

test("requests without a number run in the order of arrival", async () => {
  const queue = new SequenceQueue(60_000);
  const ran: string[] = [];
  for (const name of ["a", "b", "c"])
    queue.add(undefined, async () => {
      ran.push(name);
    });
  await settled();
  expect(ran).toEqual(["a", "b", "c"]);
});

test("a refused number can be given to the next request, as long as nothing after it has begun", async () => {
  const queue = new SequenceQueue(60_000);
  const ran: string[] = [];
  queue.refuse(1);
  await settled();
  queue.add(1, async () => {
    ran.push("1 again");
  });
  queue.refuse(2);
  await settled();
  queue.add(3, async () => {
    ran.push("3");
  });
  await settled();
  expect(() => queue.add(2, async () => {})).toThrow(expect.objectContaining({ code: "server/sequence-passed" }));
  expect(ran).toEqual(["1 again", "3"]);
});

test("a refused number far ahead neither holds others up nor makes them late, and may be used when its turn comes", async () => {
  const gaps: [number, number][] = [];
  const queue = new SequenceQueue(1, (from, to) => gaps.push([from, to]));
  const ran: number[] = [];
  const add = (number: number) =>
    queue.add(number, async () => {
      ran.push(number);
    });
  for (const refused of [4, 1000, 3_000_000_000]) queue.refuse(refused);
  await new Promise((resolve) => setTimeout(resolve, 20));
  expect([gaps, queue.next]).toEqual([[], 1]);
  for (const number of [1, 3, 2, 5]) add(number);
  await settled();
  expect([ran, queue.next, gaps]).toEqual([[1, 2, 3, 5], 6, []]);
  queue.refuse(7);
  add(7);
  add(6);
  await settled();
  expect(ran.slice(4)).toEqual([6, 7]);
});
