// Carrying over as a whole, played without a server: what the journal says, the plan that follows from it and the pipeline, over kills,
// checkpoints and rewinds. What must be true is said here once more, by the slow way: groups one by one, versions by counting.
import { setTimeout as sleep } from "node:timers/promises";
import fc from "fast-check";
import { expect, test } from "vitest";
import { Random } from "../core/random.ts";
import type { EventOf, NewEvent, RunEvent } from "../runs/events.ts";
import { RunView } from "../runs/view.ts";
import { BatchPlan } from "./batch-plan.ts";
import { batchesOf, Pipeline } from "./pipeline.ts";
import { Recovered, type TrainPlace } from "./recovery.ts";
import type { Start } from "./resume.ts";
import type { Group } from "./rollout.ts";
import type { Task, TaskSource } from "./tasks.ts";

const perBatch = 4;
const source: TaskSource = {
  size: 1000,
  batch: async (offset, count) =>
    Array.from({ length: count }, (_, at) => ({ id: `p${offset + at}`, datasetIndex: offset + at }) as Task),
};

interface Settings {
  lag: number;
  steps: number;
  share: number;
  rounds: boolean;
}
/** What ends a session before the run's end, after so many events: a kill, or that and going back. */
interface Trouble {
  after: number;
  afterwards: "go on" | "back to the frontier" | "back to the checkpoint" | "back to the start";
}

/** A run on one journal, each call a process. `stored`: policies that the server has. */
class Rig {
  readonly journal: RunEvent[] = [];
  readonly #stored = new Set<number>();
  readonly #random: Random;
  readonly #settings: Settings;

  constructor(settings: Settings, seed: number) {
    this.#settings = settings;
    this.#random = new Random("delays", seed);
  }

  #start(): Start & { frontier: number } {
    const recovered = new Recovered();
    for (const event of this.journal) recovered.take(event, { hasArrays: true, arrays: () => ({}) });
    const [newest] = recovered.checkpoints;
    const position = { step: newest?.step ?? 0, datasetOffset: newest?.dataset_offset ?? 0 };
    return { recovered, position, frontier: recovered.frontier(position).step } as Start & { frontier: number };
  }

  goBack(afterwards: Trouble["afterwards"]): void {
    const { position, frontier } = this.#start();
    const to =
      afterwards === "back to the frontier" ? frontier : afterwards === "back to the checkpoint" ? position.step : 0;
    this.journal.push({ at: 0, type: "rewound", to, reason: "test" });
    for (const version of [...this.#stored]) if (version > to) this.#stored.delete(version);
  }

  /** Goes on from what the journal has until the end, or until so many events were written. */
  async session(most: number): Promise<boolean> {
    const { lag, share, rounds, steps } = this.#settings;
    const start = this.#start();
    const { recovered } = start;
    const config = { prompts_per_step: perBatch, fill_batch: false, max_lag: lag, max_steps: steps };
    const plan = new BatchPlan(start, { ...config, tail: "carry", carry_rounds: rounds }, source);
    const killed = new AbortController();
    let left = most;
    const write = (event: NewEvent) => {
      if (--left < 0) killed.abort(new Error("killed"));
      killed.signal.throwIfAborted();
      this.journal.push({ at: 0, ...event } as RunEvent);
    };
    const pipeline = new Pipeline({
      plan,
      lag,
      rounds,
      share,
      rollOut: async ({ batch, group }, task, policy) => {
        const known = recovered.group({ phase: "train", batch, group });
        if (!known) {
          expect(plan.isTrained({ batch, group })).toBe(false);
          if (this.#random.float() < 0.5) await sleep(12 * this.#random.float() ** 4);
          const { id: problem, datasetIndex } = task;
          const place = { phase: "train", batch, group, policy: policy.version, problem, datasetIndex } as const;
          write({ type: "group-sampled", ...place, samples: [] } as unknown as NewEvent);
        }
        return { batch, group, problem: task.id } as Group;
      },
      drain: new AbortController().signal,
      cancel: killed.signal,
    });
    const isNeeded = (version: number) =>
      batchesOf(version, lag, plan.floor, rounds).some(
        (batch) => batch >= plan.oldest && batch < plan.end && !plan.isComplete(batch),
      );
    const use = (version: number) => pipeline.use({ version, open: () => Promise.reject(new Error("not asked for")) });
    try {
      for (let version = plan.oldestVersion(plan.first); version < plan.first; version++) {
        // What anything is still to be sampled from was published and kept.
        if (isNeeded(version)) expect(this.#stored).toContain(version);
        use(version);
      }
      const publish = (version: number) => {
        if (isNeeded(version)) this.#stored.add(version);
        use(version);
      };
      publish(plan.first);
      for await (const { batch, groups, carried } of pipeline.batches()) {
        const before = batch < plan.frontier ? recovered.update(batch)?.groups : undefined;
        const places = groups.map(({ batch, group }) => ({ batch, group }));
        if (before) expect(places).toEqual(before);
        else {
          const entries = groups.map(({ batch, group, problem }) => ({ batch, group, problem }));
          const later = carried.map(({ batch, group, task }) => ({
            batch,
            group,
            problem: task!.id,
            datasetIndex: task!.datasetIndex,
          }));
          const nextOffset = plan.offsetOf(batch + 1);
          const update = { type: "update-submitted", step: batch, nextOffset, groups: entries, carried: later };
          write({ ...update, rule: { adam: {} } } as unknown as NewEvent);
        }
        if (this.#random.float() < 0.5) await sleep(2 * this.#random.float());
        publish(batch + 1);
        if (!before && this.#random.float() < 0.3) {
          const record = {
            name: "c",
            step: batch + 1,
            dataset_offset: plan.offsetOf(batch + 1),
            state_path: "tinker://c",
          };
          write({ type: "saved", record, start: 0, end: 0 });
          for (const version of [...this.#stored])
            if (version < plan.oldestVersion(batch + 1)) this.#stored.delete(version);
        }
      }
      return true;
    } catch (error) {
      if (!killed.signal.aborted) throw error;
      return false;
    } finally {
      await pipeline.close();
    }
  }
}

const nameOf = ({ batch, group }: TrainPlace) => `${batch} ${group}`;

/** The version that a batch has to be from, by counting. */
function versionOf(batch: number, floor: number, { lag, rounds }: Settings): number {
  let version = floor;
  if (rounds) while (version + lag + 1 <= batch) version += lag + 1;
  else while (version + lag < batch) version++;
  return version;
}

/** Follows the journal group by group. Returns how many groups were carried over more than once. */
function expectRight(journal: readonly RunEvent[], settings: Settings): number {
  const { lag, rounds, share, steps } = settings;
  const sampled = new Map<string, EventOf<"group-sampled">>();
  const trained = new Map<string, number>();
  const dropped = new Set<string>();
  let [floor, next, often] = [0, 0, 0];
  const places = (count: number) =>
    Array.from({ length: count * perBatch }, (_, at) =>
      nameOf({ batch: Math.floor(at / perBatch), group: at % perBatch }),
    );
  for (const event of journal) {
    if (event.type === "group-sampled") {
      expect(sampled).not.toContain(nameOf(event));
      expect(event.policy).toBe(versionOf(event.batch, floor, settings));
      sampled.set(nameOf(event), event);
    } else if (event.type === "update-submitted") {
      expect(event.step).toBe(next++);
      for (const place of event.groups) {
        const name = nameOf(place);
        expect(trained.has(name) || dropped.has(name)).toBe(false);
        expect(event.step - sampled.get(name)!.policy).toBeLessThanOrEqual(lag + 1);
        if (!rounds) expect(event.step - place.batch).toBeLessThanOrEqual(1);
        if (event.step - place.batch > 1) often++;
        trained.set(name, event.step);
      }
      const own = event.groups.filter(({ batch }) => batch === event.step);
      expect(own.length).toBeGreaterThanOrEqual(event.step === steps - 1 ? perBatch : share * perBatch);
      const open = places(next).filter((name) => !trained.has(name) && !dropped.has(name));
      expect(event.carried.map(nameOf)).toEqual(open);
    } else if (event.type === "rewound") {
      [floor, next] = [event.to, event.to];
      for (const [name, step] of trained) if (step >= event.to) trained.delete(name);
      for (const name of places(event.to)) if (!trained.has(name)) dropped.add(name);
      for (const [name, { batch }] of sampled) if (batch >= event.to) sampled.delete(name);
      for (const name of dropped) if (Number(name.split(" ")[0]) >= event.to) dropped.delete(name);
    }
  }
  expect(next).toBe(steps);
  for (const name of places(steps)) expect(trained.has(name)).toBe(!dropped.has(name));
  // Whoever reads the run finds each group in the update that it is in.
  const view = new RunView();
  for (const event of journal) view.take(event);
  for (const [name, step] of trained) {
    const [batch, group] = name.split(" ").map(Number);
    expect(view.lastUpdateOn(batch!, group)).toBe(step);
  }
  return often;
}

test("whatever the timing, kills and rewinds: every group is trained on once, from its own version, at most lag + 1 versions later", async () => {
  const trouble = fc.record({
    after: fc.integer({ min: 0, max: 40 }),
    afterwards: fc.constantFrom<Trouble["afterwards"][]>(
      "go on",
      "go on",
      "back to the frontier",
      "back to the checkpoint",
      "back to the start",
    ),
  });
  const scenario = fc.record({
    lag: fc.integer({ min: 1, max: 4 }),
    steps: fc.integer({ min: 1, max: 12 }),
    share: fc.constantFrom(0.25, 0.5, 0.75),
    rounds: fc.boolean(),
    troubles: fc.array(trouble, { maxLength: 5 }),
    seed: fc.nat(),
  });
  let often = 0;
  await fc.assert(
    fc.asyncProperty(scenario, async ({ troubles, seed, ...settings }) => {
      const rig = new Rig(settings, seed);
      for (const { after, afterwards } of troubles) {
        if (await rig.session(after)) break;
        if (afterwards !== "go on") rig.goBack(afterwards);
      }
      await rig.session(Number.POSITIVE_INFINITY);
      often += expectRight(rig.journal, settings);
    }),
    { numRuns: 80 },
  );
  expect(often).toBeGreaterThan(0);
});
