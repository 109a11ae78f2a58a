// A resume under other settings of the judge: no group and no evaluation has verdicts of both.
import { join } from "node:path";
import { expect, test } from "vitest";
import type { TrainConfig } from "whetstone/rl";
import { epochOrder } from "../../src/data/index.ts";
import { eventsOf, type LoopRig, loopRig, newFolder, problems } from "../support/loop-rig.ts";

const config: Partial<TrainConfig> = { max_steps: 5, eval_every: 2, save_every: 2 };

const testProblems = problems.slice(0, 3).map((problem) => ({ ...problem, id: `test-${problem.id}`, index: -1 }));
/** The step that a problem comes in. */
const stepOf = new Map([...epochOrder(problems.length, 0, 0)].map((index, place) => [index, Math.floor(place / 4)]));

/** Stops a run in which some answers of batch 2 and of the evaluation of version 2 are judged, and others never are. */
async function halfJudged(rig: LoopRig, path: string, lag: number): Promise<void> {
  const cancel = new AbortController();
  const killed = new Error("killed");
  const calls = new Map<string, number>();
  const seen = { train: 0, eval: 0 };
  await expect(
    rig.train(path, {
      config: { ...config, max_lag: lag },
      testProblems,
      reward: ({ problem, tokens, signal }) => {
        const call = (calls.get(problem.id) ?? 0) + 1;
        calls.set(problem.id, call);
        // Every problem is evaluated once before, and has four answers in its step.
        const waits =
          problem.index < 0 ? call > 1 && problem !== testProblems[0] : stepOf.get(problem.index) === 2 && call > 1;
        if (!waits) return tokens[1]! % 2;
        return new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
      },
      onEvent: (event) => {
        if (event.type !== "graded" || event.batch !== 2) return;
        seen[event.phase]++;
        if (seen.train === 4 && seen.eval === 1) cancel.abort(killed);
      },
      cancel: cancel.signal,
    }),
  ).rejects.toBe(killed);
}

/** By batch and evaluation: the sessions whose verdicts count. */
function judges(path: string): Map<string, Set<number>> {
  const events = eventsOf(path);
  const found = new Map<string, Set<number>>();
  let session = -1;
  for (const event of events) {
    if (event.type === "started") session = event.session;
    const undone = (key: string) => found.delete(key);
    if (event.type === "rewound")
      for (const key of [...found.keys()])
        if (key.startsWith("train") && Number(key.split(" ")[1]) >= event.to) undone(key);
    if (event.type === "evaluation-started") undone(`eval ${event.step}`);
    if (event.type === "graded") {
      const key = `${event.phase} ${event.batch}`;
      found.set(key, (found.get(key) ?? new Set()).add(session));
    }
  }
  return found;
}

test.each([0, 1])("max_lag=%i: verdicts of one group and of one evaluation are of one setting", async (lag) => {
  const rig = await loopRig();
  const keys: Partial<TrainConfig>[] = [{ format_coef: 0.5 }, { comparator: "lcb" }];
  for (const change of keys.slice(0, lag + 1)) {
    const path = join(newFolder(), "run");
    await halfJudged(rig, path, lag);
    // A process that is killed as soon as it has begun changes nothing about it.
    const killed = new Error("killed");
    const changed = { config: { ...config, max_lag: lag, ...change }, testProblems };
    await expect(rig.train(path, { ...changed, cancel: AbortSignal.abort(killed) })).rejects.toBe(killed);
    await rig.train(path, changed);
    const sessions = judges(path);
    const what = JSON.stringify(change);
    for (const [place, by] of sessions) expect([...by], `${what} ${place}`).toHaveLength(1);
    expect([...sessions.get("train 2")!, ...sessions.get("eval 2")!], what).toEqual([2, 2]);
    expect(sessions.get("train 1"), what).toEqual(new Set([0]));
  }
});

test("without a change what was judged is not judged again", async () => {
  const rig = await loopRig();
  const path = join(newFolder(), "run");
  await halfJudged(rig, path, 1);
  await rig.train(path, { config: { ...config, max_lag: 1 }, testProblems });
  expect(eventsOf(path).some(({ type }) => type === "rewound")).toBe(false);
  expect([...judges(path).get("train 2")!]).toEqual([0, 1]);
});
