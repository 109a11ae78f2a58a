// Functions of somebody else's that come to no end, or fail when nobody waits for them: they hold no run, and what they fail with comes
// back to whoever gave them.
import { join } from "node:path";
import { expect, test } from "vitest";
import type { RunEvent } from "whetstone/rl";
import { ServiceClient } from "whetstone/tinker";
import type { GradeResult, Grader } from "../../src/grading/index.ts";
import { chooseRenderer } from "../../src/renderers/index.ts";
import { beginRun } from "../../src/rl/begin-run.ts";
import { presetConfig } from "../../src/rl/config.ts";
import { environment } from "../../src/rl/environment/environment.ts";
import { rollOutsOf } from "../../src/rl/environment/roll-outs.ts";
import { ownTaskSource } from "../../src/rl/own-problems.ts";
import { type TrainOutcome, type TrainParts, train } from "../../src/rl/train.ts";
import { Display } from "../../src/runs/display.ts";
import { Run } from "../../src/runs/run.ts";
import { RunView } from "../../src/runs/view.ts";
import { loadTokenizer } from "../../src/tokenizer/index.ts";
import { eventsOf, type LoopRig, loopRig, newFolder, parity, problems } from "../support/loop-rig.ts";

const never = () => new Promise<never>(() => {});
const killed = new Error("killed");

/** The three ways in which a run that waits for nothing is ended, and how it ends. */
const endings = ["stage_deadline", "signal", "cancel"] as const;
type Ending = (typeof endings)[number];
const ended = async (ending: Ending, run: Promise<{ interrupted: boolean }>) => {
  if (ending === "signal") expect(await run).toMatchObject({ interrupted: true });
  else if (ending === "cancel") await expect(run).rejects.toBe(killed);
  else await expect(run).rejects.toMatchObject({ code: "rl/stuck" });
};

/** Aborts what the ending calls for, once something waits for ever. */
function endedBy(ending: Ending) {
  const [signal, cancel] = [new AbortController(), new AbortController()];
  return {
    signal: signal.signal,
    cancel: cancel.signal,
    config: { stage_deadline: ending === "stage_deadline" ? 0.5 : 1800 },
    waits: () => {
      if (ending === "signal") signal.abort();
      if (ending === "cancel") cancel.abort(killed);
    },
  };
}

const testProblems = problems.slice(0, 3).map((problem) => ({ ...problem, id: `test-${problem.id}`, index: -1 }));

test.each(["training", "evaluation"] as const)("a reward function that never settles, in %s", async (where) => {
  const rig = await loopRig();
  await Promise.all(
    endings.map(async (ending) => {
      const path = join(newFolder(), ending);
      const { waits, ...by } = endedBy(ending);
      let judged = 0;
      const reward = ({ problem, tokens }: { problem: (typeof problems)[number]; tokens: Int32Array }) => {
        // From the second step on, or from the evaluation after it.
        if (where === "training" ? ++judged <= 20 : problem.index >= 0 || ++judged <= 3) return parity({ tokens });
        setTimeout(waits, 50);
        return never();
      };
      const config = { ...by.config, max_steps: where === "training" ? 6 : 2, eval_every: 2 };
      await ended(ending, rig.train(path, { ...by, testProblems, reward, config }));
      // What was written down is not lost: the same run goes on to its end.
      expect(await rig.train(path, { testProblems, config: { ...config, stage_deadline: 1800 } })).toMatchObject({
        step: config.max_steps,
        interrupted: false,
      });
    }),
  );
});

/** The loop itself, with a check of the grader. */
async function trainWithCheck(
  rig: LoopRig,
  path: string,
  { check, ...signals }: TrainParts["signals"] & { check: () => Promise<void> },
  stageDeadline: number,
): Promise<TrainOutcome> {
  const service = new ServiceClient({ baseUrl: rig.url, apiKey: "tml-test" });
  const { renderer } = chooseRenderer("nano-coder", await loadTokenizer("nano-coder"), { name: "", thinking: "" });
  const config = {
    ...presetConfig("nano"),
    stage_deadline: stageDeadline,
    canary_every: 1,
    max_steps: 3,
    prompts_per_step: 4,
    completions_per_prompt: 4,
    max_tokens: 12,
    eval_every: 0,
    tensorboard: false,
  };
  const run = await Run.open(path, new Display({ write: () => {} }));
  const trainTasks = ownTaskSource(problems, config, renderer);
  const facts = { renderer, engine: "server", tariff: undefined, sandbox: "own reward" };
  const train_ = { fingerprint: "f", size: problems.length };
  const begun = await beginRun(run, config, { ...facts, train: train_, test: undefined, testTasks: [] });
  try {
    return await train(config, {
      run,
      begun,
      server: { service, fixedSeeds: true },
      rollOuts: rollOutsOf(environment({ problems, reward: parity }), renderer, config, async () => undefined),
      grading: { by: "environment", check },
      tasks: { train: trainTasks, test: [] },
      signals,
    });
  } finally {
    await run.close("interrupted");
    await service.close();
  }
}

test.each(endings)("a check of the grader that never settles is ended by %s", async (ending) => {
  const rig = await loopRig();
  const path = newFolder();
  const { waits, signal: drain, cancel, config } = endedBy(ending);
  const check = () => {
    setTimeout(waits, 50);
    return never();
  };
  await ended(ending, trainWithCheck(rig, path, { check, drain, cancel }, config.stage_deadline));
  // The batch that waited for the check was not trained on.
  expect(eventsOf(path).flatMap((event) => (event.type === "update-submitted" ? [event.step] : []))).toEqual([0]);
  if (ending === "signal") expect(RunView.read(path).newest).toMatchObject({ name: "interrupted-000001" });
});

test("what a listener throws, at once or in a promise, ends the run and comes back", async () => {
  const unhandled: unknown[] = [];
  const listen = (error: unknown) => void unhandled.push(error);
  process.on("unhandledRejection", listen);
  const rig = await loopRig();
  const oops = new Error("a bug of the caller's");
  const listeners: Record<string, (event: RunEvent) => unknown> = {
    "throws at a step": ({ type }) => {
      if (type === "step-done") throw oops;
    },
    "rejects at a step": async ({ type }) => {
      if (type === "step-done") throw oops;
    },
    "rejects at the last checkpoint": async (event) => {
      if (event.type === "saved" && event.record.final) throw oops;
    },
    "rejects at the very end": async ({ type }) => {
      if (type === "stopped") throw oops;
    },
  };
  await Promise.all(
    Object.entries(listeners).map(async ([what, onEvent]) => {
      const path = join(newFolder(), "run");
      await expect(rig.train(path, { onEvent, config: { max_steps: 2 } }), what).rejects.toBe(oops);
      expect(eventsOf(path).at(-1), what).toMatchObject({
        type: "stopped",
        outcome: what.endsWith("very end") ? "finished" : "failed",
      });
    }),
  );
  const messages: Record<string, (line: string) => void> = {
    "throws at any line": () => {
      throw oops;
    },
    "rejects at any line": (async () => {
      throw oops;
    }) as () => void,
    "rejects when the sandbox is waited for": (async (line: string) => {
      if (line.includes("has given no answer")) throw oops;
    }) as (line: string) => void,
  };
  const away = { status: "sandbox_error", verdict: "ungraded", reward: null, message: "away" } as GradeResult;
  const grader = { grade: async () => away } as unknown as Grader;
  const tested = problems.map((problem) => ({ ...problem, tests: { inputs: ["1\n"], outputs: ["2\n"] } }));
  await Promise.all(
    Object.entries(messages).map(async ([what, onMessage]) => {
      const by = what.endsWith("waited for") ? { reward: undefined, grader, problems: tested, testProblems: [] } : {};
      const run = rig.train(join(newFolder(), "run"), { onMessage, ...by, config: { max_steps: 200 } });
      await expect(run, what).rejects.toBe(oops);
    }),
  );
  process.off("unhandledRejection", listen);
  expect(unhandled).toEqual([]);
});

test("a listener that never settles holds nothing up, and hears of everything from the start on", async () => {
  const rig = await loopRig();
  const heard: string[] = [];
  const onEvent = ({ type }: RunEvent) => {
    heard.push(type);
    return never();
  };
  const path = join(newFolder(), "run");
  await expect(rig.train(path, { onEvent, config: { max_steps: 1 } })).resolves.toMatchObject({ step: 1 });
  expect(heard).toEqual(
    eventsOf(path)
      .map(({ type }) => type)
      .slice(1),
  );
});
