import { expect, test } from "vitest";
import { Limiter } from "./limiter.ts";

/** A promise that the test settles by hand. */
function gate() {
  let open = () => {};
  const promise = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { promise, open };
}

test("never more than the limit at once, first come first served", async () => {
  const limiter = new Limiter(2);
  const started: number[] = [];
  const gates = Array.from({ length: 5 }, gate);
  let most = 0;
  const tasks = gates.map((door, index) =>
    limiter.run(async () => {
      started.push(index);
      most = Math.max(most, limiter.active);
      await door.promise;
    }),
  );
  await Promise.resolve();
  expect([limiter.active, limiter.waiting]).toEqual([2, 3]);
  for (const door of gates) {
    door.open();
    await new Promise((resolve) => setImmediate(resolve));
  }
  await Promise.all(tasks);
  expect(started).toEqual([0, 1, 2, 3, 4]);
  expect([most, limiter.active, limiter.waiting]).toEqual([2, 0, 0]);
});

test("a failing task gives its room back", async () => {
  const limiter = new Limiter(1);
  await expect(limiter.run(() => Promise.reject(new Error("no")))).rejects.toThrow("no");
  expect(await limiter.run(() => Promise.resolve(7))).toBe(7);
});

test("an abort takes a waiting task out of the queue and leaves the others", async () => {
  const limiter = new Limiter(1);
  const door = gate();
  const first = limiter.run(() => door.promise);
  const controller = new AbortController();
  const second = limiter.run(() => Promise.resolve("second"), { signal: controller.signal });
  const third = limiter.run(() => Promise.resolve("third"));
  controller.abort(new Error("stopped"));
  await expect(second).rejects.toThrow("stopped");
  door.open();
  await first;
  expect(await third).toBe("third");
});

test("what can wait begins when nothing else does", async () => {
  const limiter = new Limiter(1);
  const door = gate();
  const order: string[] = [];
  const note = (name: string) => async () => void order.push(name);
  const tasks = [
    limiter.run(() => door.promise),
    limiter.run(note("can wait 1"), { canWait: true }),
    limiter.run(note("first"), {}),
    limiter.run(note("can wait 2"), { canWait: true }),
    limiter.run(note("second"), {}),
  ];
  expect(limiter.waiting).toBe(4);
  door.open();
  await Promise.all(tasks);
  expect(order).toEqual(["first", "second", "can wait 1", "can wait 2"]);
  expect([limiter.active, limiter.waiting]).toEqual([0, 0]);
});
