import { expect, test } from "vitest";
import { sleep, untilAborted } from "./wait.ts";

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
