// What an update was made by is part of its record: a resume under other settings makes finished steps again as they were, and a replay
// computes them as they were. What a replay cannot compute it says.
import { join } from "node:path";
import fc from "fast-check";
import { expect, test } from "vitest";
import type { RunEvent, TrainConfig } from "whetstone/rl";
import { losses } from "../../src/engine/losses.ts";
import type { PolicyLossName } from "../../src/protocol/losses.ts";
import { answerLoss } from "../../src/rl/policy-losses.ts";
import { type ReplayChanges, replay } from "../../src/rl/replay.ts";
import { readJournal } from "../../src/runs/read-journal.ts";
import { runCommand } from "../support/command-process.ts";
import { eventsOf, lastWeights, loopRig, newFolder, whatHappened } from "../support/loop-rig.ts";

const steps = (path: string, changes: ReplayChanges = {}) =>
  [...replay(readJournal(path), changes)].filter(({ what }) => what === "step");

/** Stops a run at once when a step is done. */
function stoppedAfter(step: number) {
  const cancel = new AbortController();
  const killed = new Error("killed");
  const onEvent = (event: RunEvent) => {
    if (event.type === "step-done" && event.step === step) cancel.abort(killed);
  };
  return { killed, cancel: cancel.signal, onEvent };
}

test("finished steps are made again as they were, whatever has changed since", async () => {
  const rig = await loopRig();
  const config: Partial<TrainConfig> = { max_steps: 3, save_every: 0, eval_every: 0 };
  const calm = join(newFolder(), "calm");
  await rig.train(calm, { config });
  const changed: Partial<TrainConfig>[] = [
    { advantage: "rloo" },
    { loss_scale: "per_token" },
    { mask_truncated: true },
    { loss_fn: "ppo", beta1: 0.5, num_substeps: 2 },
  ];
  for (const change of changed) {
    const path = join(newFolder(), "changed");
    const { killed, ...stop } = stoppedAfter(2);
    await expect(rig.train(path, { config: { ...config, max_steps: 4 }, ...stop })).rejects.toBe(killed);
    await rig.train(path, { config: { ...config, ...change } });
    const what = JSON.stringify(change);
    expect(
      eventsOf(path).filter(({ type }) => type === "retrained"),
      what,
    ).toHaveLength(3);
    expect(lastWeights(rig, path), what).toEqual(lastWeights(rig, calm));
  }
});

test("a run of two settings is replayed exactly", async () => {
  const rig = await loopRig();
  const path = join(newFolder(), "run");
  const { killed, ...stop } = stoppedAfter(1);
  const config: Partial<TrainConfig> = { max_steps: 4, max_lag: 1, loss_scale: "per_datum" };
  await expect(rig.train(path, { config, ...stop })).rejects.toBe(killed);
  await rig.train(path, {
    config: { ...config, max_lag: 2, advantage: "grpo_std", loss_scale: "none", mask_truncated: true },
  });
  for (const { step, recorded, now, notComputed } of steps(path)) {
    expect(now, `step ${step}`).toEqual(recorded);
    expect(notComputed).toEqual([]);
  }
  expect(whatHappened(eventsOf(path)).filter((line) => line.includes('"grpo_std"'))).toHaveLength(2);
});

test("a run whose config is refused today is replayed all the same", async () => {
  const rig = await loopRig();
  const path = join(newFolder(), "run");
  await rig.train(path, { config: { max_steps: 1, save_every: 0, eval_every: 0 } });
  const entries = [...readJournal(path)].map((entry) => {
    const { event } = entry;
    if (event.type === "started")
      event.config = { ...event.config, loss_fn: "dro", comparator: "gone", temperature: -1 };
    if (event.type === "update-submitted") event.rule.lossFn = "dro";
    return entry;
  });
  const [same] = [...replay(entries, {})];
  expect(same!.now).toEqual(same!.recorded);
  // Its loss needs more than what is known of the answers: said, and not shown as changed.
  const [other] = [...replay(entries, { advantage: "none" })];
  expect(other!.notComputed).toEqual(expect.arrayContaining(["loss", "loss_sum"]));
  expect(other!.now).not.toHaveProperty("loss_sum");
});

test("the losses that a replay computes are those of the engine", () => {
  const token = fc.record({
    trained: fc.double({ min: -8, max: 0, noNaN: true }),
    sampled: fc.double({ min: -8, max: 0, noNaN: true }),
    advantage: fc.double({ min: -2, max: 2, noNaN: true }),
  });
  const names: PolicyLossName[] = ["importance_sampling", "ppo", "cispo", "gspo"];
  fc.assert(
    fc.property(
      fc.constantFrom(...names),
      fc.array(token, { minLength: 1, maxLength: 6 }),
      fc.constantFrom({}, { clip_low_threshold: 0.5, clip_high_threshold: 1.5 }),
      (name, tokens, given) => {
        const config = name === "importance_sampling" ? {} : given;
        const arrays = (key: keyof (typeof tokens)[number]) => Float32Array.from(tokens, (token) => token[key]);
        const [trained, sampled, advantages] = [arrays("trained"), arrays("sampled"), arrays("advantage")];
        const loss = losses[name];
        const mask = new Float32Array(tokens.length).fill(1);
        const derived = loss.sequence?.derive(trained, { logprobs: sampled, sequence_ratio_mask: mask });
        const expected = tokens.reduce((sum, _, index) => {
          const inputs = [sampled[index]!, advantages[index]!, ...(derived ? [derived[index]!] : [])];
          return sum + loss.term(trained[index]!, inputs, { ...loss.config, ...config }).value;
        }, 0);
        const now = answerLoss(name, config, { trained, sampled, advantages })!;
        expect(Math.abs(now - expected)).toBeLessThanOrEqual(1e-4 * Math.max(1, Math.abs(expected)));
      },
    ),
  );
});

test.each(["importance_sampling", "ppo", "cispo", "gspo"] as const)(
  "under another advantage the figures of %s are those of a run that had it",
  async (loss) => {
    const rig = await loopRig();
    const config: Partial<TrainConfig> = { max_steps: 1, loss_fn: loss, save_every: 0, eval_every: 0 };
    const [was, would] = [join(newFolder(), "was"), join(newFolder(), "would")];
    await rig.train(was, { config });
    await rig.train(would, { config: { ...config, advantage: "none" } });
    const [replayed] = steps(was, { advantage: "none" });
    const [real] = steps(would);
    expect(replayed!.now["loss_sum"]).not.toBeCloseTo(replayed!.recorded["loss_sum"]!, 3);
    expect(replayed!.now["loss_sum"]).toBeCloseTo(real!.recorded["loss_sum"]!, 4);
    // What the server says of its update is not known, and is not shown as changed.
    expect(replayed!.notComputed).toEqual(
      Object.keys(eventsOf(was).find((event) => event.type === "update-done")!.server).filter(
        (name) => replayed!.recorded[name] !== undefined,
      ),
    );
    for (const name of replayed!.notComputed) expect(replayed!.now).not.toHaveProperty(name);
  },
);

test("own rewards stay, and what cannot be computed is said", async () => {
  const rig = await loopRig();
  const path = join(newFolder(), "run");
  const config: Partial<TrainConfig> = { max_steps: 2, num_substeps: 2, loss_fn: "ppo", save_every: 0, eval_every: 0 };
  await rig.train(path, {
    config,
    reward: ({ tokens }) => ({ reward: tokens[0]! % 5, wellFormed: tokens[0]! % 2 === 0 }),
  });
  for (const { recorded, now } of steps(path, { format_coef: 3 })) expect(now).toEqual(recorded);
  const own = await runCommand(["replay", `run=${path}`, "format_coef=3"]);
  expect(own.stdout).toContain("nothing would have differed");
  expect(own.stdout).toContain("format_coef changes nothing: the rewards were given by an own reward");
  const other = await runCommand(["replay", `run=${path}`, "loss_scale=per_token"]);
  expect(other.stdout).toMatch(/not computed, since only the server that trains can: loss, loss_sum, optim\//);
  expect(other.stdout).not.toMatch(/^(loss|optim\/grad_norm) /m);
});
