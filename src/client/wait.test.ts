import { expect, test } from "vitest";
import { Budget, Pacer, sleep, untilAborted } from "./wait.ts";

test("a sleep ends with the reason of whichever signal is aborted first", async () => {
  const [first, second] = [new AbortController(), new AbortController()];
  const sleeping = sleep(60_000, undefined, first.signal, second.signal);
  second.abort(new Error("second"));
  await expect(sleeping).rejects.toThrow("second");
  await expect(sleep(60_000, second.signal)).rejects.toThrow("second");
  await sleep(1, first.signal);
});

test("a promise is followed until the abort, and its later failure goes nowhere", async () => {
  const controller = new AbortController();
  let fail: (error: Error) => void = () => undefined;
  const promise = new Promise<void>((_, reject) => {
    fail = reject;
  });
  const followed = untilAborted(promise, controller.signal);
  controller.abort(new Error("enough"));
  await expect(followed).rejects.toThrow("enough");
  fail(new Error("nobody listens"));
  await sleep(1);
});

test("a budget lets in whoever comes while it is not negative, in order, and forgets who left", async () => {
  const budget = new Budget(10);
  await budget.take(1000);
  const order: string[] = [];
  const controller = new AbortController();
  const waiting = [
    budget.take(5).then(() => order.push("first")),
    budget.take(5, controller.signal).then(
      () => order.push("left"),
      () => order.push("aborted"),
    ),
    budget.take(7).then(() => order.push("second")),
    budget.take(1).then(() => order.push("third")),
  ];
  controller.abort();
  await sleep(1);
  expect(order).toEqual(["aborted"]);
  budget.give(1000);
  await sleep(1);
  // 10 − 5 and then − 7 is below zero: the third waits.
  expect(order).toEqual(["aborted", "first", "second"]);
  budget.give(5);
  await Promise.all(waiting);
});

test("a burst is spread over turns of the event loop, in order", async () => {
  const pacer = new Pacer(3);
  const ran: number[] = [];
  let turn = 0;
  const turns: number[] = [];
  const count = () => {
    turn++;
    if (ran.length < 10) setImmediate(count);
  };
  setImmediate(count);
  for (let task = 0; task < 10; task++)
    pacer.run(() => {
      ran.push(task);
      turns.push(turn);
    });
  expect(ran).toEqual([0, 1, 2]);
  while (ran.length < 10) await sleep(1);
  expect(ran).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
  expect(new Set(turns).size).toBe(4);
});
