// tail=carry: a step is trained on as soon as a share of its groups is there, the others with a later one. Which group went where is in
// the journal before anything is trained, so a killed run makes the same updates again and nothing twice.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import type { TrainConfig } from "whetstone/rl";
import { describeBatch } from "../../src/cli/text/show-batch.ts";
import { readJsonLines } from "../../src/core/jsonl.ts";
import { Random } from "../../src/core/random.ts";
import { replay } from "../../src/rl/replay.ts";
import { answerLogprobs, carriedInto, readableRun, readBatch, readTrained } from "../../src/runs/batch.ts";
import type { EventOf } from "../../src/runs/events.ts";
import { readJournal } from "../../src/runs/read-journal.ts";
import { stepFile } from "../../src/runs/rollouts.ts";
import { eventsOf, loopRig, newFolder, type Problem, parity } from "../support/loop-rig.ts";
import { expectAllTrained, expectNothingTwice, type Moment, momentOf } from "./killing.ts";

const steps = 6;
const config: Partial<TrainConfig> = {
  tail: "carry",
  max_steps: steps,
  prompts_per_step: 4,
  save_every: 0,
  loss_fn: "ppo",
};
const updatesOf = (path: string) =>
  eventsOf(path).filter((event): event is EventOf<"update-submitted"> => event.type === "update-submitted");

/** Judging one problem in five takes several steps' time. */
const slowly = async ({ problem, tokens }: { problem: Problem; tokens: Int32Array }) => {
  if (problem.index % 5 === 0) await sleep(60);
  return parity({ tokens });
};

test.each([
  [0, false],
  [1, false],
  [2, true],
])(
  "max_lag=%i carry_rounds=%s: all is trained on, and runs that are killed make the journal's updates again, bit for bit",
  async (lag, rounds) => {
    const settings = { ...config, max_lag: lag, carry_rounds: rounds };
    const rig = await loopRig();
    const audit = join(rig.stateDir, "audit.jsonl");
    const path = join(newFolder(), "run");
    const random = new Random("kills", lag);
    const moments: Moment[] = [];
    for (let kills = 0; kills < 6; kills++) {
      const cancel = new AbortController();
      let left = 5 + random.integer(100);
      const onEvent = () => --left < 0 && cancel.abort(new Error("killed"));
      const options = { reward: slowly, config: settings, cancel: cancel.signal, onEvent };
      if (await rig.train(path, options).catch(() => undefined)) break;
      if (existsSync(join(path, "journal"))) moments.push(momentOf(path, audit));
    }
    await rig.train(path, { reward: slowly, config: settings });
    expect(moments.length).toBeGreaterThan(0);
    expectAllTrained(path, lag, steps, rounds);
    // Without a checkpoint every process trained all of the journal's updates on a model of its own: of one history, each of them.
    expectNothingTwice(path, audit, moments);
    for (const { recorded, now } of replay(readJournal(path), {})) expect(now).toEqual(recorded);
    expectReadable(path);
  },
  60_000,
);

/** Groups that were carried over are found where they belong, with what both policies gave their tokens. */
function expectReadable(path: string): void {
  const run = readableRun(path);
  const earlierOf = (update: EventOf<"update-submitted">) => update.groups.filter(({ batch }) => batch < update.step);
  const { step } = updatesOf(path).find((update) => earlierOf(update).length > 0)!;
  const placesOf = (groups: readonly { batch: number; group: number }[]) =>
    groups.map(({ batch, group }) => ({ batch, group }));
  const carried = carriedInto(run, step).map(({ sampled }) => sampled);
  expect(placesOf(carried)).toEqual(placesOf(earlierOf(updatesOf(path)[step]!)));
  const trained = readTrained(run, step);
  expect(placesOf(trained.map(({ sampled }) => sampled))).toEqual(placesOf(updatesOf(path)[step]!.groups));
  for (const group of trained)
    for (const sample of group.judged!.trained) {
      const { tokens, sampler, trainer } = answerLogprobs(run, group, sample)!;
      expect(trainer).toHaveLength(tokens.length);
      // A few steps of training apart.
      for (const [at, logprob] of trainer!.entries()) expect(Math.abs(logprob - sampler[at]!)).toBeLessThan(1.5);
    }
  const shown = describeBatch(path, run.view, readBatch(run, "train", step));
  const records = readJsonLines(join(path, "rollouts", stepFile(step))) as { group: number; carried_from?: number }[];
  for (const batch of new Set(carried.map(({ batch }) => batch))) {
    const groups = carried.flatMap((entry) => (entry.batch === batch ? [entry.group] : []));
    expect(shown).toContain(`trained on with group ${groups.join(", ")} of step ${batch}`);
    expect(readBatch(run, "train", batch).groups).toHaveLength(4);
    expect(describeBatch(path, run.view, readBatch(run, "train", batch))).toContain(`, with step ${step}`);
    expect(records.filter((record) => record.carried_from === batch)).toHaveLength(4 * groups.length);
  }
}

test("going back to a step drops what was carried over into it; a checkpoint keeps it", async () => {
  const rig = await loopRig();
  const path = join(newFolder(), "run");
  const settings = { ...config, save_every: 1, keep_journal: "checkpoint" as const };
  await rig.train(path, { reward: slowly, config: { ...settings, max_steps: 3 } });
  // The run goes on from its end, where nothing is left over, and is stopped after a step that leaves something.
  const stop = new AbortController();
  let wanted = 0;
  const onEvent = (event: ReturnType<typeof eventsOf>[number]) => {
    if (event.type === "update-submitted" && event.step >= 3 && event.carried!.length > 0 && !stop.signal.aborted) {
      wanted = event.step;
      stop.abort(new Error("enough"));
    }
  };
  await rig.train(path, { reward: slowly, config: { ...settings, max_steps: 40 }, signal: stop.signal, onEvent });
  const left = updatesOf(path)[wanted]!.carried!.map(({ group }) => group);
  // The same settings: they go on with what was left.
  const cut = new AbortController();
  const once = (event: ReturnType<typeof eventsOf>[number]) =>
    event.type === "update-submitted" && event.step === wanted + 1 && cut.abort(new Error("killed"));
  await expect(
    rig.train(path, { reward: slowly, config: { ...settings, max_steps: 40 }, cancel: cut.signal, onEvent: once }),
  ).rejects.toThrow("killed");
  const next = updatesOf(path)[wanted + 1]!.groups;
  expect(next.filter(({ batch }) => batch === wanted).map(({ group }) => group)).toEqual(left);
  // Other settings: what was carried over from there is not used any more, and the run says where it goes back to.
  const before = updatesOf(path).length;
  await rig.train(path, { reward: slowly, config: { ...settings, max_steps: wanted + 4, temperature: 0.9 } });
  const first = updatesOf(path)[before]!;
  expect(first.groups.every(({ batch }) => batch === first.step)).toBe(true);
  expect(eventsOf(path).some((event) => event.type === "rewound" && event.to === first.step)).toBe(
    updatesOf(path)[before - 1]!.carried!.length > 0,
  );
}, 60_000);
