// fill_batch: a batch takes the next problems of the data until enough groups teach, and no timing, lag, kill or replay makes it another.
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import type { TrainConfig } from "whetstone/rl";
import { Random } from "../../src/core/random.ts";
import { replay } from "../../src/rl/replay.ts";
import type { EventOf } from "../../src/runs/events.ts";
import { readJournal } from "../../src/runs/read-journal.ts";
import { delayingProxy } from "../support/delaying-proxy.ts";
import { eventsOf, lastWeights, loopRig, newFolder, type Problem, parity, whatHappened } from "../support/loop-rig.ts";

const prompts = 3;
const stretch = 4 * prompts;
const config: Partial<TrainConfig> = {
  fill_batch: true,
  prompts_per_step: prompts,
  max_steps: 5,
  // A rate that differs from step to step is part of what must come out the same.
  lr_schedule: "cosine",
  warmup_steps: 2,
  save_every: 2,
  eval_every: 0,
};
/** Of most problems every answer gets the same reward. In the first stretch of the data nearly all do. */
const reward = ({ problem, tokens }: { problem: Problem; tokens: Int32Array }) =>
  problem.index % 5 < 2 ? parity({ tokens }) : 0;
const updatesOf = (path: string) =>
  eventsOf(path).filter((event): event is EventOf<"update-submitted"> => event.type === "update-submitted");

test("a batch is the shortest stretch of the data with enough groups that teach, or ends at the bound", async () => {
  const rig = await loopRig();
  const path = join(newFolder(), "run");
  await rig.train(path, { reward, config: { ...config, max_steps: 8, max_lag: 1 } });
  const places = eventsOf(path).flatMap((event) =>
    event.type === "group-sampled" && event.phase === "train" ? [[event.batch, event.group, event.datasetIndex]] : [],
  );
  for (const [batch, group, index] of places) expect(index).toBe(batch! * stretch + group!);
  const rates = updatesOf(path).map(({ rule }) => rule.adam.learningRate / updatesOf(path)[1]!.rule.adam.learningRate);
  for (const [step, share] of [0.5, 1, 1, 0.933, 0.75, 0.5, 0.25, 0.067].entries())
    expect(rates[step]).toBeCloseTo(share, 3);
  let bounded = 0;
  for (const { step, groups, nextOffset } of updatesOf(path)) {
    expect(places.filter(([batch]) => batch === step)).toHaveLength(groups.length);
    expect(nextOffset).toBe((step + 1) * stretch);
    const teaching = groups.filter(({ skipped }) => !skipped).length;
    if (groups.length === stretch) bounded++;
    else expect([teaching, groups.at(-1)!.skipped]).toEqual([prompts, false]);
    expect(teaching).toBeLessThanOrEqual(prompts);
  }
  // Both ends were met.
  expect(bounded).toBeGreaterThan(0);
  expect(bounded).toBeLessThan(8);
  for (const { recorded, now } of replay(readJournal(path), {})) {
    expect(now).toEqual(recorded);
    const taught = recorded["groups_total"]! - recorded["groups_skipped"]!;
    expect(recorded["fill/groups"]).toBe(recorded["groups_total"]! - prompts);
    expect(recorded["fill/missing"]).toBe(prompts - taught);
    expect(recorded["fill/tokens_frac"]! > 0).toBe(recorded["fill/groups"]! > 0);
    expect(recorded["time/fill"]).toBeGreaterThanOrEqual(0);
  }
}, 60_000);

test.each([0, 1, 2])(
  "max_lag=%i: the same run under any timing, and when it is killed",
  async (lag) => {
    const rig = await loopRig();
    const settings = { ...config, max_lag: lag };
    const calm = join(newFolder(), "calm");
    await rig.train(calm, { reward, config: settings });
    const expected = { happened: whatHappened(eventsOf(calm)), weights: lastWeights(rig, calm) };

    const random = new Random("timing", lag);
    const slow = await delayingProxy(rig.url, 30, lag);
    const delayed = join(newFolder(), "delayed");
    await rig.train(delayed, {
      config: settings,
      url: slow.url,
      reward: (answer) => sleep(20 * random.float() ** 3, reward(answer)),
    });
    await slow.close();
    expect(whatHappened(eventsOf(delayed))).toEqual(expected.happened);
    expect(lastWeights(rig, delayed)).toEqual(expected.weights);

    const path = join(newFolder(), "killed");
    const killed = new Error("killed");
    const length = eventsOf(calm).length;
    for (let kills = 0; kills < 6; kills++) {
      const cancel = new AbortController();
      let left = random.integer(length);
      const onEvent = () => --left < 0 && cancel.abort(killed);
      const ended = await rig
        .train(path, { reward, config: settings, cancel: cancel.signal, onEvent })
        .catch((error) => {
          expect(error).toBe(killed);
        });
      if (ended) break;
    }
    await rig.train(path, { reward, config: settings });
    expect(whatHappened(eventsOf(path))).toEqual(expected.happened);
    expect(lastWeights(rig, path)).toEqual(expected.weights);
  },
  120_000,
);
