// `whetstone/rl` on a server of the test's own: a program's problems and reward, interrupted, resumed, and with its mistakes.
import { existsSync, mkdirSync, readFileSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { type RunEvent, runTraining, type TrainingOptions } from "whetstone/rl";
import { ServiceClient } from "whetstone/tinker";
import { createGrader, openSandbox } from "../../src/grading/index.ts";
import { startServe } from "../contract/serve-process.ts";
import { foldersInMemory } from "../support/folders.ts";

const folder = foldersInMemory();
const problems = Array.from({ length: 6 }, (_, index) => ({ id: `p${index}`, prompt: `problem ${index}`, index }));

/** A run of three small steps on the simulated engine, whose completions have text. */
async function withServer<T>(
  use: (
    start: (options?: Partial<TrainingOptions<(typeof problems)[number]>>) => ReturnType<typeof runTraining>,
  ) => Promise<T>,
): Promise<T> {
  const server = await startServe([
    "engine=simulated",
    "tokenizer=nano-coder",
    "model_name=nano-coder",
    `state_dir=${folder()}`,
  ]);
  const service = new ServiceClient({ baseUrl: server.baseUrl, apiKey: server.apiKey });
  const path = join(folder(), "run");
  const config = {
    preset: "nano" as const,
    max_steps: 3,
    prompts_per_step: 2,
    completions_per_prompt: 4,
    log_path: path,
    tensorboard: false,
  };
  const reward = ({ text }: { text: string }) => text.length % 7;
  try {
    return await use((options = {}) =>
      runTraining({ service, problems, reward, ...options, config: { ...config, ...options.config } }),
    );
  } finally {
    await service.close();
    await server.close();
  }
}

test("trains, tells what happens, and leaves a run behind", async () => {
  const events: RunEvent[] = [];
  const seen = new Set<number>();
  await withServer(async (start) => {
    const result = await start({
      testProblems: problems.slice(0, 2).map((problem) => ({ ...problem, id: `test-${problem.id}` })),
      reward: ({ problem, text }) => {
        seen.add(problem.index);
        return text.length % 7;
      },
      onEvent: (event) => void events.push(event),
      config: { eval_every: 3 },
    });
    expect(result).toMatchObject({ step: 3, interrupted: false });
    expect(result.checkpoint?.sampler).toMatch(/^tinker:\/\//);
    const types = events.map(({ type }) => type);
    expect(types.filter((type) => type === "step-done").length).toBe(3);
    expect(types).toContain("evaluated");
    expect(seen.size).toBeGreaterThan(2);
    const metrics = readFileSync(join(result.path, "metrics.jsonl"), "utf8").trim().split("\n");
    expect(metrics.length).toBeGreaterThanOrEqual(3);
  });
});

test("a signal ends it after the step under way; the same call goes on, and other problems are refused", async () => {
  await withServer(async (start) => {
    const stop = new AbortController();
    const steps: number[] = [];
    const onEvent = (event: RunEvent) => {
      if (event.type !== "step-done") return;
      steps.push(event.step);
      if (event.step === 0) stop.abort();
    };
    const first = await start({ signal: stop.signal, onEvent });
    expect(first.interrupted).toBe(true);
    expect(first.step).toBeLessThan(3);
    const others = start({ problems: problems.slice(1) });
    await expect(others).rejects.toMatchObject({ code: "config/resume-mismatch" });
    const second = await start({ onEvent });
    expect(second).toMatchObject({ step: 3, interrupted: false, path: first.path });
    expect(steps).toEqual([0, 1, 2]);
  });
});

test("one folder is trained by one call at a time, whatever path leads to it", async () => {
  await withServer(async (start) => {
    const real = join(folder(), "run");
    mkdirSync(real);
    const link = join(folder(), "link");
    symlinkSync(real, link);
    const first = start({ config: { log_path: real } });
    await expect(start({ config: { log_path: link } })).rejects.toMatchObject({ code: "runs/locked" });
    expect(await first).toMatchObject({ step: 3 });
  });
});

test("mistakes of the caller come back to them", async () => {
  await withServer(async (start) => {
    const oops = new Error("a bug in the listener");
    const onEvent = ({ type }: RunEvent) => {
      if (type === "step-done") throw oops;
    };
    await expect(start({ onEvent, config: { log_path: join(folder(), "a") } })).rejects.toBe(oops);
    const reward = () => Number.NaN;
    await expect(start({ reward, config: { log_path: join(folder(), "b") } })).rejects.toMatchObject({
      code: "rl/bad-reward",
    });
    await expect(start({ problems: [] })).rejects.toMatchObject({ code: "config/no-problems" });
    const typo = { max_stepz: 3 } as object;
    await expect(start({ config: typo })).rejects.toMatchObject({ code: "config/unknown-key" });
    await expect(start({ reward: undefined })).rejects.toMatchObject({ code: "config/no-judge" });
  });
});

test("problems are objects: a test problem may have a training problem's id, and each is judged by its own fields", async () => {
  await withServer(async (start) => {
    const judged = { train: new Set<unknown>(), test: new Set<unknown>() };
    const testProblems = problems.slice(0, 3).map((problem) => ({ ...problem, index: 100 + problem.index }));
    const wrong: RunEvent[] = [];
    await start({
      testProblems,
      reward: ({ problem }) => {
        judged[problem.index >= 100 ? "test" : "train"].add(problem);
        return problem.index >= 100 ? 0 : 1;
      },
      onEvent: (event) => {
        if (event.type === "graded" && event.grade.reward !== (event.phase === "eval" ? 0 : 1)) wrong.push(event);
      },
      config: { eval_every: 3 },
    });
    expect(wrong).toEqual([]);
    expect(judged.test).toEqual(new Set(testProblems));
    // As they were given, not copies of them.
    expect([...judged.train].every((problem) => problems.includes(problem as (typeof problems)[number]))).toBe(true);
    expect(judged.train.size).toBeGreaterThan(2);
  });
});

test("problems that are none are refused before a folder is made or anything is asked of the server", async () => {
  const service = new ServiceClient({ baseUrl: "http://127.0.0.1:9", apiKey: "tml-none" });
  const path = join(folder(), "run");
  const numbered = problems.map((problem) => ({ ...problem, id: problem.index as unknown as string }));
  const config = { preset: "nano" as const, log_path: path };
  for (const given of [{ problems: numbered }, { problems, testProblems: numbered }])
    await expect(runTraining({ service, reward: () => 1, config, ...given })).rejects.toMatchObject({
      code: "config/problem-ids",
    });
  expect(existsSync(path)).toBe(false);
  await service.close();
});

test("tests that are none are refused before a folder is made, not when their problem's turn comes", async () => {
  const service = new ServiceClient({ baseUrl: "http://127.0.0.1:9", apiKey: "tml-none" });
  const sandbox = await openSandbox();
  try {
    const path = join(folder(), "run");
    const parts = { service, grader: createGrader({ sandbox }), config: { preset: "nano" as const, log_path: path } };
    const tested = problems.map((problem) => ({ ...problem, tests: { inputs: ["1\n"], outputs: ["2\n"] } }));
    const broken = tested.with(4, { ...tested[4]!, tests: { inputs: ["1\n"], outputs: [] } });
    for (const given of [{ problems: broken }, { problems: tested, testProblems: broken }, { problems }])
      await expect(runTraining({ ...parts, ...given })).rejects.toMatchObject({ code: "config/problem-tests" });
    expect(existsSync(path)).toBe(false);
  } finally {
    await sandbox.close();
    await service.close();
  }
});

test("tests of one's own, by a grader", async () => {
  const sandbox = await openSandbox();
  try {
    await withServer(async (start) => {
      const graded: unknown[] = [];
      const { step } = await start({
        problems: problems.map((problem) => ({ ...problem, tests: { inputs: ["1\n"], outputs: ["2\n"] } })),
        reward: undefined,
        grader: createGrader({ sandbox }),
        onEvent: (event) => {
          if (event.type === "graded") graded.push(event.grade.status);
        },
        config: { max_steps: 1 },
      });
      expect(step).toBe(1);
      expect(graded.length).toBe(8);
    });
  } finally {
    await sandbox.close();
  }
});
