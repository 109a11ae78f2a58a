// A resume under other settings. Of the judge: no group and no evaluation has verdicts of both. Of the end and the lag: what is said of
// steps and policies is what happens. With other problems: none.
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

/** What a run of `before` says and does when it goes on with `after`; `killedAfter` ends it without a checkpoint. */
async function goesOn(before: Partial<TrainConfig>, after: Partial<TrainConfig>, killedAfter?: number) {
  const rig = await loopRig();
  const path = join(newFolder(), "run");
  const killed = new Error("killed");
  const cancel = new AbortController();
  const first = rig.train(path, {
    config: before,
    cancel: cancel.signal,
    onEvent: (event) => event.type === "step-done" && event.step === killedAfter && cancel.abort(killed),
  });
  await (killedAfter === undefined ? first : expect(first).rejects.toBe(killed));
  const known = eventsOf(path).length;
  const lines: string[] = [];
  const { step } = await rig.train(path, { config: after, onMessage: (line) => lines.push(line) });
  const events = eventsOf(path).slice(known);
  const stepsOf = (type: "retrained" | "step-done") =>
    events.flatMap((event) => (event.type === type ? [event.step] : []));
  return { step, text: lines.join("\n"), retrained: stepsOf("retrained"), trained: stepsOf("step-done") };
}

test.each<[before: Partial<TrainConfig>, after: Partial<TrainConfig>]>([
  [{ max_lag: 2 }, { max_steps: 8, max_lag: 2 }],
  [{ max_lag: 0 }, { max_steps: 8, max_lag: 2 }],
  [{ max_lag: 2 }, { max_steps: 8, max_lag: 1 }],
])(
  "more steps after the end, %j then %j: no policy is missed that the run itself had no use for",
  async (before, after) => {
    const { step, text, retrained, trained } = await goesOn(before, after);
    expect({ step, retrained, trained }).toEqual({ step: 8, retrained: [], trained: [6, 7] });
    expect(text).toMatch(/resuming at step 6 from checkpoint final$/m);
    expect(text).not.toMatch(/gone|exactly/);
  },
);

test("fewer steps than the journal has: what is said to be trained again is", async () => {
  const killed = (max_steps: number) => goesOn({ max_steps: 8, save_every: 4 }, { max_steps, save_every: 4 }, 5);
  const [within, below] = await Promise.all([killed(5), killed(3)]);
  expect(within).toMatchObject({ step: 5, retrained: [4], trained: [] });
  expect(within.text).toMatch(
    /step 4 from .*; 1 later step of the journal is trained again.*; 1 later step .* is kept for a larger/,
  );
  expect(below).toMatchObject({ step: 4, retrained: [], trained: [] });
  expect(below.text).toMatch(
    /step 4 from .*; max_steps=3 leaves nothing to train; 2 later steps of the journal are kept/,
  );
});

test("a run does not go on with problems that have another answer, and evaluates test problems that do anew", async () => {
  const rig = await loopRig();
  const path = join(newFolder(), "run");
  const asked = (answer: number) => problems.map((problem) => ({ ...problem, answer }));
  await rig.train(path, { problems: asked(1), testProblems, config: { max_steps: 1 } });
  await expect(rig.train(path, { problems: asked(2), testProblems, config: { max_steps: 2 } })).rejects.toMatchObject({
    code: "config/resume-mismatch",
    message: expect.stringMatching(/the problems, or something in one of them, are others: data_fingerprint was/),
  });
  const lines: string[] = [];
  const others = testProblems.map((problem) => ({ ...problem, answer: 2 }));
  const options = { problems: asked(1), testProblems: others, config: { max_steps: 2 } };
  await rig.train(path, { ...options, onMessage: (line) => lines.push(line) });
  expect(lines.join("\n")).toMatch(/the test problems, or something in one of them, are others: test_fingerprint was/);
});
