import fc from "fast-check";
import { expect, test } from "vitest";
import { BoundedQueue } from "./queue.ts";

async function collect<Item>(queue: BoundedQueue<Item>): Promise<Item[]> {
  const items: Item[] = [];
  for await (const item of queue) items.push(item);
  return items;
}

test("every item arrives once, in order, and the queue never holds more than its capacity", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.integer(), { maxLength: 50 }),
      fc.integer({ min: 1, max: 5 }),
      async (items, capacity) => {
        const queue = new BoundedQueue<number>(capacity);
        let largest = 0;
        const produce = async () => {
          for (const item of items) {
            await queue.push(item);
            largest = Math.max(largest, queue.size);
          }
          queue.close();
        };
        const [received] = await Promise.all([collect(queue), produce()]);
        expect(received).toEqual(items);
        expect(largest).toBeLessThanOrEqual(capacity);
      },
    ),
  );
});

test("a failure reaches a waiting producer and the consumer", async () => {
  const queue = new BoundedQueue<number>(1);
  await queue.push(1);
  const waiting = queue.push(2);
  queue.fail(new Error("gone"));
  await expect(waiting).rejects.toThrow("gone");
  await expect(collect(queue)).rejects.toThrow("gone");
});

test("pushing after close is an error", async () => {
  const queue = new BoundedQueue<number>(1);
  queue.close();
  await expect(queue.push(1)).rejects.toThrow("closed");
  expect(await collect(queue)).toEqual([]);
});
