// on_error=rollback where sampling runs ahead: which policy answers which batch after going back follows from the journal alone, and no
// snapshot of a policy stays on the server that nothing will be sampled from.
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { expect, test, vi } from "vitest";
import type { RunEvent } from "whetstone/rl";
import { nextCommands } from "../../src/cli/text/train-report.ts";
import { findWeights } from "../../src/cli/weights/find-weights.ts";
import { RunIndex } from "../../src/dashboard/run-index.ts";
import { epochOrder } from "../../src/data/index.ts";
import { pathsOf, runCheckpoints } from "../../src/rl/prune.ts";
import { readCheckpoints } from "../../src/runs/checkpoints.ts";
import { Journal } from "../../src/runs/journal.ts";
import { readJournal } from "../../src/runs/read-journal.ts";
import { RunView } from "../../src/runs/view.ts";
import { type Held, holdingProxy, slowResults } from "../support/delaying-proxy.ts";
import {
  eventsOf,
  type LoopRig,
  lastWeights,
  loopRig,
  newFolder,
  parity,
  problems,
  whatHappened,
} from "../support/loop-rig.ts";

const config = {
  on_error: "rollback" as const,
  max_steps: 12,
  prompts_per_step: 8,
  completions_per_prompt: 6,
  eval_every: 100,
};

/** The step that a problem comes in. */
const stepOf = new Map([...epochOrder(problems.length, 0, 0)].map((index, place) => [index, Math.floor(place / 8)]));

/**
 * Trains a run whose answers to steps from 7 on are all wrong, until it has gone back. Stopped at once when `stopAt` holds; `by`: by way of a
 * proxy, with a save after every step.
 */
async function train(
  rig: LoopRig,
  path: string,
  lag: number,
  stopAt?: (event: RunEvent) => boolean,
  by?: string,
): Promise<boolean> {
  let wentBack = existsSync(path) && eventsOf(path).some(({ type }) => type === "rewound");
  const cancel = new AbortController();
  const killed = new Error("killed");
  try {
    await rig.train(path, {
      config: { ...config, max_lag: lag, ...(by && { save_every: 1 }) },
      url: by ?? rig.url,
      reward: ({ problem, tokens }) => (!wentBack && stepOf.get(problem.index)! >= 7 ? 0 : parity({ tokens })),
      onEvent: (event) => {
        if (event.type === "rewound") wentBack = true;
        if (stopAt?.(event)) cancel.abort(killed);
      },
      cancel: cancel.signal,
    });
    return true;
  } catch (error) {
    if (error !== killed) throw error;
    return false;
  }
}

/** What was sampled and trained since the run went back. */
function sinceRewind(path: string): string[] {
  const events = eventsOf(path);
  const at = events.findLastIndex(({ type }) => type === "rewound");
  return whatHappened(events.slice(at));
}

/** The versions of a run whose snapshots are on the server. */
const snapshots = ({ stateDir }: LoopRig, path: string): number[] =>
  eventsOf(path).flatMap((event) => {
    if (event.type !== "policy-published") return [];
    const [model, ...rest] = event.path!.replace("tinker://", "").split("/");
    return existsSync(join(stateDir, "checkpoints", encodeURIComponent(model!), ...rest)) ? [event.version] : [];
  });

const moments: Record<string, (event: RunEvent) => boolean> = {
  "before the checkpoint that is gone back to is followed by another": ({ type, ...event }) =>
    type === "saved" && "record" in event && event.record.step === 4,
  "after the last checkpoint before the collapse": ({ type, ...event }) =>
    type === "saved" && "record" in event && event.record.step === 8,
  "between the finding and going back": (event) => event.type === "finding" && event.action === "rollback",
  "as soon as it has gone back": ({ type }) => type === "rewound",
};

// All of them with WHET_KILLS set, as for test/system/resume.
const all = process.env["WHET_KILLS"] !== undefined;
const lags = all ? [0, 1, 2] : [2];

test.each(lags)("max_lag=%i: the same run whenever it is killed on the way", { timeout: 600_000 }, async (lag) => {
  const rig = await loopRig();
  const calm = join(newFolder(), "calm");
  expect(await train(rig, calm, lag)).toBe(true);
  const [rewound, ...others] = eventsOf(calm).filter((event) => event.type === "rewound");
  expect(others).toEqual([]);
  const to = 4;
  expect(rewound).toMatchObject({ to, rollback: { finding: "collapse" } });
  const versions = new Map(
    sinceRewind(calm).flatMap((line) => {
      const [, batch, policy] = /^group-sampled train (\d+) \d+ \[(\d+),/.exec(line) ?? [];
      return batch === undefined ? [] : [[Number(batch), Number(policy)] as const];
    }),
  );
  expect(versions).toEqual(
    new Map(Array.from({ length: 12 - to }, (_, ahead) => [to + ahead, Math.max(to, to + ahead - lag)])),
  );
  expect(snapshots(rig, calm)).toEqual([12]);

  const compare = async ([moment, stopAt]: [string, (event: RunEvent) => boolean]) => {
    const path = join(newFolder(), "killed");
    expect(await train(rig, path, lag, stopAt), moment).toBe(false);
    expect(await train(rig, path, lag), moment).toBe(true);
    expect(sinceRewind(path), moment).toEqual(sinceRewind(calm));
    expect(lastWeights(rig, path), moment).toEqual(lastWeights(rig, calm));
    expect(snapshots(rig, path), moment).toEqual([12]);
  };
  await Promise.all(
    Object.entries(moments)
      .slice(all ? 0 : 2)
      .map(compare),
  );
});

test.each(lags)(
  "max_lag=%i: saves that come late do not decide where it goes back to",
  { timeout: 600_000 },
  async (lag) => {
    const rig = await loopRig();
    const calm = join(newFolder(), "calm");
    expect(await train(rig, calm, lag, undefined, rig.url)).toBe(true);
    const isSave = ({ path, body }: Held) => /\/save_weights/.test(path) && !body.includes('"policy-');
    const proxy = await holdingProxy(rig.url, slowResults(isSave, 1000));
    const path = join(newFolder(), "killed");
    const stopAt = (event: RunEvent) => event.type === "finding" && event.action === "rollback";
    expect(await train(rig, path, lag, stopAt, proxy.url)).toBe(false);
    await proxy.close();
    expect(await train(rig, path, lag, undefined, rig.url)).toBe(true);
    expect(sinceRewind(path)).toEqual(sinceRewind(calm));
    expect(lastWeights(rig, path)).toEqual(lastWeights(rig, calm));
  },
);

test("every reader takes the checkpoint that was gone back to, until there is a newer one", async () => {
  const rig = await loopRig();
  const path = join(newFolder(), "run");
  const stop = new AbortController();
  const result = await rig.train(path, {
    config: { ...config, max_lag: 1 },
    reward: ({ problem, tokens }) => (stepOf.get(problem.index)! >= 7 ? 0 : parity({ tokens })),
    onEvent: ({ type }) => type === "rewound" && stop.abort(),
    signal: stop.signal,
  });
  expect(result).toMatchObject({ step: 4, interrupted: true });
  expect(result.checkpoint).toEqual({
    sampler: expect.stringMatching(/sampler_weights\/000004$/),
    state: expect.stringMatching(/weights\/000004$/),
  });
  const view = RunView.read(path);
  expect(view.newest).toMatchObject({ name: "000004", step: 4 });
  // export, sample, eval
  expect(findWeights("", path, "nano-coder").record).toEqual(view.newest);
  expect(() => findWeights("000008", path, "nano-coder")).toThrow(/it has: 000002, 000004\./);
  expect(nextCommands(path, view, undefined, undefined)[0]!.command).toContain("checkpoint=base,000004");
  const index = new RunIndex(path);
  await index.catchUp();
  expect(index.view.checkpoints).toEqual(view.checkpoints);
  index.close();
  expect(readCheckpoints(path)).toEqual(view.checkpoints);
  const { names, needed } = runCheckpoints(readJournal(path));
  expect([...names.values()]).toEqual(expect.arrayContaining(["checkpoint 000004", "checkpoint 000008, discarded"]));
  expect([...needed].filter((name) => !name.includes("policy-"))).toEqual(pathsOf(view.newest!));
});

test("a snapshot that a killed process did not live to hear of is deleted by the next one, which reads the journal once", async () => {
  const rig = await loopRig();
  const onServer = () =>
    readdirSync(join(rig.stateDir, "checkpoints"), { recursive: true, encoding: "utf8" }).filter((name) =>
      /sampler_weights\/policy-\d+$/.test(name),
    );
  // The server makes it, and its answer does not come before the process is gone.
  const isFourth = ({ path, body }: Held) => path.endsWith("_for_sampler") && body.includes('"policy-000004"');
  const proxy = await holdingProxy(rig.url, slowResults(isFourth, 5000));
  const path = join(newFolder(), "run");
  const cancel = new AbortController();
  const killed = new Error("killed");
  const onEvent = (event: RunEvent) => {
    if (event.type === "step-done" && event.step === 3) cancel.abort(killed);
  };
  const by = { config: { max_lag: 1 } };
  await expect(rig.train(path, { ...by, url: proxy.url, onEvent, cancel: cancel.signal })).rejects.toBe(killed);
  await proxy.close();
  await expect.poll(onServer).toContainEqual(expect.stringMatching(/policy-000004$/));
  expect(snapshots(rig, path)).not.toContain(4);
  const reads = vi.spyOn(Journal.prototype, "entries");
  await rig.train(path, by);
  expect(reads).toHaveBeenCalledTimes(1);
  reads.mockRestore();
  expect(onServer()).toHaveLength(snapshots(rig, path).length);
  expect(snapshots(rig, path)).toEqual([6]);
});

test("a server that does not delete snapshots holds nothing up; the next process deletes them", async () => {
  const rig = await loopRig();
  const answers: Record<string, Promise<number>> = { "500": Promise.resolve(500), nothing: new Promise(() => {}) };
  await Promise.all(
    Object.entries(answers).map(async ([what, answer]) => {
      const deleted: string[] = [];
      const proxy = await holdingProxy(
        rig.url,
        async ({ method, path }) => {
          if (method !== "DELETE") return undefined;
          deleted.push(path);
          return answer;
        },
        { before: true },
      );
      const path = join(newFolder(), "run");
      expect(await rig.train(path, { url: proxy.url })).toMatchObject({ step: 6, interrupted: false });
      await proxy.close();
      expect(deleted.length, what).toBeGreaterThan(0);
      expect(snapshots(rig, path).length, what).toBeGreaterThan(3);
      await rig.train(path, { config: { max_steps: 7 } });
      expect(snapshots(rig, path), what).toEqual([7]);
    }),
  );
});
