// Whatever the server is slow with, a run writes down the same: saves, snapshots of policies and evaluations are held back until steps
// later, and every event that counts is that of a run that nothing held back.
import { join } from "node:path";
import { expect, test } from "vitest";
import type { RunEvent } from "whetstone/rl";
import { type Held, holdingProxy, slowResults } from "../support/delaying-proxy.ts";
import { eventsOf, lastWeights, loopRig, newFolder, whatHappened } from "../support/loop-rig.ts";

const slow: Record<string, (held: Held) => boolean> = {
  "the saves of checkpoints": ({ path, body }) => path.endsWith("/save_weights") || (isSave(path) && !isPolicy(body)),
  "the snapshots of policies": ({ path, body }) => isSave(path) && isPolicy(body),
  // Evaluations alone are greedy.
  "the answers of evaluations": ({ path, body }) => path.endsWith("/asample") && body.includes('"temperature":0,'),
};
const isSave = (path: string) => path.endsWith("/save_weights_for_sampler");
const isPolicy = (body: Buffer) => body.includes('"policy-');

test.each([0, 1, 2])("max_lag=%i: the same is written down whatever comes late", async (lag) => {
  const rig = await loopRig();
  const calm = join(newFolder(), "calm");
  const config = { max_lag: lag };
  await rig.train(calm, { config });
  const expected = whatHappened(eventsOf(calm));
  expect(expected.filter((line) => line.startsWith("saved"))).toEqual([
    "saved 000002 2 8",
    "saved 000004 4 16",
    "saved final 6 24",
  ]);
  const compare = async ([what, isSlow]: [string, (held: Held) => boolean]) => {
    const held: string[] = [];
    const hold = slowResults((request) => isSlow(request) && held.push(request.path) > 0, 150);
    const proxy = await holdingProxy(rig.url, hold);
    const path = join(newFolder(), "held");
    await rig.train(path, { config, url: proxy.url });
    await proxy.close();
    expect(held.length, what).toBeGreaterThan(2);
    expect(whatHappened(eventsOf(path)), what).toEqual(expected);
    expect(lastWeights(rig, path), what).toEqual(lastWeights(rig, calm));
  };
  await Promise.all(Object.entries(slow).map(compare));
  expect(eventsOf(calm).some((event) => event.type === "evaluated" && event.step === 3)).toBe(true);
});

test.each([1, 2])(
  "max_lag=%i: stopped as soon as a checkpoint counts, while snapshots come late, it goes on exactly",
  async (lag) => {
    const rig = await loopRig();
    const calm = join(newFolder(), "calm");
    const config = { max_lag: lag, save_every: 1 };
    await rig.train(calm, { config });
    const isSlow = slow["the snapshots of policies"]!;
    const proxy = await holdingProxy(rig.url, slowResults(isSlow, 100));
    const path = join(newFolder(), "stopped");
    const cancel = new AbortController();
    const killed = new Error("killed");
    const onEvent = (event: RunEvent) => {
      if (event.type === "saved" && event.record.step === 3) cancel.abort(killed);
    };
    await expect(rig.train(path, { config, url: proxy.url, cancel: cancel.signal, onEvent })).rejects.toBe(killed);
    await proxy.close();
    await rig.train(path, { config });
    expect(whatHappened(eventsOf(path))).toEqual(whatHappened(eventsOf(calm)));
    expect(lastWeights(rig, path)).toEqual(lastWeights(rig, calm));
  },
);
