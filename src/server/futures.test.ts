import { expect, test } from "vitest";
import { badRequest, ServerError } from "./errors.ts";
import { FutureStore } from "./futures.ts";

function store(options: { maxResultBytes?: number; now?: () => number } = {}) {
  return new FutureStore<string>(options.maxResultBytes ?? 1 << 20, options.now);
}
const signal = new AbortController().signal;
const codeOf = (call: () => unknown) => {
  try {
    call();
  } catch (error) {
    return error instanceof ServerError ? `${error.status} ${error.code}` : error;
  }
  return undefined;
};

test("a waiting poll wakes when the result comes, and every later one gets it at once", async () => {
  const futures = store();
  const future = futures.create();
  const poll = futures.wait(futures.get(future.id), 60_000, signal);
  futures.succeed(future, "done", 4);
  expect(await poll).toBe(true);
  expect(futures.get(future.id).outcome).toEqual({ ok: true, result: "done" });
  expect(await futures.wait(future, 0, signal)).toBe(true);
});

test("a poll that runs out of time or whose client left leaves no waiter behind", async () => {
  const futures = store();
  const future = futures.create();
  expect(await futures.wait(future, 1, signal)).toBe(false);
  const leaving = new AbortController();
  const poll = futures.wait(future, 60_000, leaving.signal);
  leaving.abort();
  expect(await poll).toBe(false);
  expect(future.waiters.size).toBe(0);
});

test("an id from before a restart, an expired one and an unknown one are three different answers", () => {
  let now = 0;
  const futures = store({ now: () => now });
  const other = store().create();
  const future = futures.create();
  futures.succeed(future, "x", 1);
  now = 2 * 60 * 60_000;
  futures.sweep();
  expect(codeOf(() => futures.get(future.id))).toBe("410 server/request-expired");
  expect(codeOf(() => futures.get(other.id))).toBe("410 server/request-lost");
  for (const id of ["", "29", future.id.replace(/\d+$/, "99"), "../../etc/passwd"])
    expect(codeOf(() => futures.get(id))).toBe("404 server/unknown-request");
});

test("memory stays under its limit; what was delivered goes first", () => {
  const futures = store({ maxResultBytes: 5000 });
  const [first, second, third] = [futures.create(), futures.create(), futures.create()];
  futures.succeed(first, "a", 1000);
  futures.succeed(second, "b", 1000);
  futures.delivered(second);
  futures.succeed(third, "c", 2500);
  expect(futures.resultBytes).toBeLessThanOrEqual(6000);
  expect(futures.get(first.id).outcome).toBeDefined();
  expect(codeOf(() => futures.get(second.id))).toBe("410 server/request-expired");
  expect(second.outcome).toMatchObject({ ok: false });
  expect(futures.get(third.id).outcome).toBeDefined();
});

test("a failure keeps its code and says whose fault it is", () => {
  const futures = store();
  const future = futures.create();
  futures.fail(future, badRequest("server/unknown-loss", "no such loss"));
  expect(future.outcome).toEqual({
    ok: false,
    failure: { message: "no such loss", category: "user", code: "server/unknown-loss" },
  });
});

test("idle resolves when the last operation has finished", async () => {
  const futures = store();
  const [a, b] = [futures.create(), futures.create()];
  let idle = false;
  const waiting = futures.idle().then(() => {
    idle = true;
  });
  futures.succeed(a, "", 0);
  await Promise.resolve();
  expect(idle).toBe(false);
  futures.fail(b, new Error("x"));
  await waiting;
  expect(futures.pending).toBe(0);
});
