// What other models say of the answers: a teacher, the model that training started from, and the trainer itself where the sampler is
// another. Each figure is computed once more from what the journal has, and no kill makes it another.
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { TrainConfig } from "whetstone/rl";
import { ServiceClient } from "whetstone/tinker";
import { Random } from "../../src/core/random.ts";
import { replay } from "../../src/rl/replay.ts";
import { readJournal } from "../../src/runs/read-journal.ts";
import { eventsOf, lastWeights, loopRig, newFolder, whatHappened } from "../support/loop-rig.ts";

const steps: Partial<TrainConfig> = { max_steps: 4, eval_every: 0, save_every: 2 };

/** What the journal has of each update: the references' values, and the tokens and sampler's values that they are of. */
function* updatesOf(path: string) {
  const groups = new Map<number, Record<string, Float32Array | Int32Array>[]>();
  for (const { event, arrays } of readJournal(path))
    if (event.type === "group-sampled" && event.phase === "train") {
      const ofBatch = groups.get(event.batch) ?? [];
      groups.set(event.batch, ofBatch);
      ofBatch[event.group] = { ...arrays(), lengths: Int32Array.from(event.samples, ({ tokens }) => tokens) };
    } else if (event.type === "update-submitted")
      yield { event, arrays: arrays() as Record<string, Float32Array>, groups: groups.get(event.step)! };
}

describe("references", () => {
  test("say what the models themselves say of each trained token", async () => {
    const rig = await loopRig();
    const teacherPath = join(newFolder(), "teacher");
    const { checkpoint } = await rig.train(teacherPath, { config: { ...steps, learning_rate: 0.2 } });
    const teacher = checkpoint!.sampler!;
    const path = join(newFolder(), "taught");
    const config = { ...steps, teacher, teacher_coef: 0.5, kl_coef: 0.1 };
    await rig.train(path, { config });
    const service = new ServiceClient({ baseUrl: rig.url, apiKey: "tml-test" });
    const asked = {
      teacher: await service.createSamplingClient({ modelPath: teacher }),
      start: await service.createSamplingClient({ baseModel: "nano-coder" }),
    };
    for (const { event, arrays, groups } of updatesOf(path)) {
      expect(event.rule.references).toEqual([
        { name: "start", model: "", weight: 0.1 },
        { name: "teacher", model: teacher, weight: 0.5 },
      ]);
      expect(event.readTokens).toBe(2 * event.tokens);
      let place = 0;
      for (const [index, { trained }] of event.groups.entries()) {
        const { prompt, tokens, lengths } = groups[index]!;
        // Where rewards are equal the teacher teaches all the same.
        expect(trained).toHaveLength(lengths!.length);
        let offset = 0;
        for (const length of lengths!) {
          const whole = Int32Array.of(...prompt!, ...tokens!.subarray(offset, offset + length));
          for (const [name, sampler] of Object.entries(asked)) {
            const expected = (await sampler.computeLogprobs(whole)).slice(prompt!.length);
            const own = arrays[name]!.subarray(place, place + length);
            for (const [at, value] of own.entries()) expect(value).toBeCloseTo(expected[at]!, 5);
          }
          offset += length;
          place += length;
        }
      }
      expect(arrays["teacher"]).toHaveLength(place);
    }
    await service.close();
    for (const { recorded, now } of replay(readJournal(path), {})) expect(now).toEqual(recorded);
    // Both pull: the policy ends nearer to its teacher than one that only has rewards.
    const distance = eventsOf(path).flatMap((event) =>
      event.type === "step-done" ? [event.metrics["optim/kl_teacher"]!] : [],
    );
    expect(distance).toHaveLength(4);
    const alone = [...replay(readJournal(path), { advantage: "rloo" })].filter(({ what }) => what === "step");
    for (const { now } of alone) expect(now["loss"]).toBeDefined();
  }, 60_000);

  test.each([0, 1])(
    "max_lag=%i: killed, it ends with the same weights",
    async (lag) => {
      const rig = await loopRig();
      const settings: Partial<TrainConfig> = { ...steps, max_lag: lag, kl_coef: 0.3, mismatch: "token_cap" };
      const calm = join(newFolder(), "calm");
      await rig.train(calm, { config: settings });
      const path = join(newFolder(), "killed");
      const random = new Random("references", lag);
      const length = eventsOf(calm).length;
      for (let kills = 0; kills < 5; kills++) {
        const cancel = new AbortController();
        let left = random.integer(length);
        const onEvent = () => --left < 0 && cancel.abort(new Error("killed"));
        const ended = await rig
          .train(path, { config: settings, cancel: cancel.signal, onEvent })
          .catch(() => undefined);
        if (ended) break;
      }
      await rig.train(path, { config: settings });
      expect(whatHappened(eventsOf(path))).toEqual(whatHappened(eventsOf(calm)));
      expect(lastWeights(rig, path)).toEqual(lastWeights(rig, calm));
    },
    60_000,
  );

  test("a teacher alone teaches whatever the rewards are", async () => {
    const rig = await loopRig();
    const path = join(newFolder(), "alone");
    await rig.train(path, { reward: () => 0, config: { ...steps, teacher: "nano-coder", teacher_mode: "alone" } });
    const figures = eventsOf(path).flatMap((event) => (event.type === "step-done" ? [event.metrics] : []));
    for (const { n_datums, groups_skipped } of figures) expect([n_datums, groups_skipped]).toEqual([16, 0]);
    // The policy is its own teacher at first: nothing is to be learned from that.
    expect(Math.abs(figures[0]!["optim/kl_teacher"]!)).toBeLessThan(1e-6);
  }, 60_000);
});
