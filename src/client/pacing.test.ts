import { expect, test } from "vitest";
import { sleep } from "../core/wait.ts";
import { Budget, Pacer } from "./pacing.ts";

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
