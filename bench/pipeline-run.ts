// One run of our trainer at one lag, in this process: the argument is what pipeline.ts says. Problems are numbers, answers are not
// read; a stand-in judge takes the profile's time and finds every other answer right.
import { setTimeout as sleep } from "node:timers/promises";
import { ServiceClient } from "../src/client/index.ts";
import type { Renderer } from "../src/renderers/index.ts";
import { beginWithHistory } from "../src/rl/begin-run.ts";
import { presetConfig } from "../src/rl/config.ts";
import { type Judge, sampleAndJudge } from "../src/rl/rollout.ts";
import type { Task } from "../src/rl/tasks.ts";
import { train } from "../src/rl/train.ts";
import { Display } from "../src/runs/display.ts";
import { Run } from "../src/runs/run.ts";
import type { TrainerSettings } from "./pipeline.ts";
import { promptOf } from "./pipeline-model.ts";

const settings = JSON.parse(process.argv[2]!) as TrainerSettings;
const { batches, groups, samples, lag } = settings;
const config = {
  ...presetConfig("nano"),
  model_name: settings.model_name,
  prompts_per_step: groups,
  completions_per_prompt: samples,
  max_tokens: settings.max_tokens,
  max_steps: batches,
  max_lag: lag ?? 0,
  tail: settings.tail,
  carry_rounds: settings.carry_rounds,
  learning_rate: 1e-4,
  lora_rank: 8,
  eval_every: 0,
  save_every: 0,
  canary_every: 0,
};

/** Nothing here is text. */
const renderer = {
  name: "none",
  stopTokens: [],
  parseResponse: () => ({ message: { role: "assistant", content: "" }, stopped: true }),
} as unknown as Renderer;

const turns = new Map<string, number>();
const judge: Judge = async (task, _answer, signal) => {
  const turn = turns.get(task.id) ?? 0;
  turns.set(task.id, turn + 1);
  await sleep(1000 * settings.grade_s, undefined, { signal });
  const right = turn % 2 === 1;
  return {
    verdict: right ? "pass" : "fail",
    status: right ? "pass" : "wrong_answer",
    reward: right ? 1 : 0,
    formatOk: true,
    passed: right ? 1 : 0,
    total: 1,
    ran: 1,
    wallMs: 1000 * settings.grade_s,
    queueMs: 0,
    cached: false,
    flags: [],
    codeHash: null,
  };
};

const taskAt = (index: number): Task => ({
  id: `number-${index}`,
  source: "numbers",
  datasetIndex: index,
  prompt: promptOf(Math.floor(index / groups), index % groups),
  maxTokens: settings.max_tokens,
  loadTests: async () => [],
});

const service = new ServiceClient({ baseUrl: settings.base_url });
const run = await Run.open(settings.log_path, new Display({ write: () => {} }));
const history = await beginWithHistory(run, config, { tariff: undefined }, { record: { ...config }, changes: [] });
const never = new AbortController().signal;
try {
  await train(config, {
    run,
    begun: { record: config, configHash: "bench", userMetadata: {}, history },
    // Without seeds, so that a prompt takes the time it takes other clients.
    server: { service, fixedSeeds: false },
    rollOuts: sampleAndJudge(renderer, judge),
    grading: { by: "environment", check: async () => {} },
    tasks: {
      train: {
        size: batches * groups,
        batch: async (offset, count) => Array.from({ length: count }, (_, index) => taskAt(offset + index)),
      },
      test: [],
    },
    signals: { drain: never, cancel: never },
  });
  await run.close("finished");
} finally {
  await service.close();
}
