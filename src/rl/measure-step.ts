// One step and a few evaluated problems, done for real and timed: what a forecast is made of. The optimizer is left alone.
import type { SamplingClient, TrainingClient } from "../client/index.ts";
import { buildBatch } from "./batch.ts";
import type { TrainConfig } from "./config.ts";
import { lossDatum } from "./datums.ts";
import type { Measured } from "./measured-forecast.ts";
import { policyOf } from "./policies.ts";
import { addTokens, sampledTokens, type TokenUse, tokensBy } from "./prices.ts";
import { drawsOf, type Group, type Place, type RollOuts } from "./rollout.ts";
import type { Task } from "./tasks.ts";
import { inputTokens, updateRule } from "./train-step.ts";

interface MeasureParts {
  training: TrainingClient;
  rollOuts: RollOuts;
  /** One batch of training problems, and the problems of an evaluation. */
  tasks: readonly Task[];
  testTasks: readonly Task[];
  signal: AbortSignal;
}

/** Problems of an evaluation that are tried. */
const maxProblems = 48;
/**
 * Groups that teach in a whole run, as a share of those of its first batch: as a model learns, more of them are all right and are not
 * trained on. From a half to all of them in the runs here.
 */
const teachingShare = 0.75;
/** Problems that are tried first, untimed: what is done for the first time takes longer than it ever will again. */
const warmingProblems = 2;

export async function measureStep(config: TrainConfig, parts: MeasureParts): Promise<Measured> {
  const { training, tasks, testTasks, signal } = parts;
  const warming = await training.saveWeightsAndGetSamplingClient({ signal });
  // Other answers than those that are timed, so that no verdict is known already.
  const first = await rollOutAll(warming, { phase: "train", batch: 1 }, tasks.slice(0, warmingProblems), config, parts);
  await trainOn(buildBatch(first.groups, updateRule(config)).examples, config, parts);

  let lapped = performance.now();
  const lap = () => {
    const before = lapped;
    lapped = performance.now();
    return (lapped - before) / 1000;
  };
  const sampler = await training.saveWeightsAndGetSamplingClient({ signal });
  const weights = lap();
  const { groups, use } = await rollOutAll(sampler, { phase: "train", batch: 0 }, tasks, config, parts);
  const sampling = lap();
  const { examples } = buildBatch(groups, updateRule(config));
  await trainOn(examples, config, parts);
  const trained = lap();
  const problems = testTasks.slice(0, maxProblems);
  const evaluated = await rollOutAll(sampler, { phase: "eval", batch: 0 }, problems, config, parts);
  const evaluating = lap();
  const each = (total: number) => total / problems.length;
  return {
    basis: `one batch of ${groups.length} prompts × ${config.completions_per_prompt} answers and ${problems.length} test problems, done here; over a run three quarters as much is trained on`,
    step: {
      ...use,
      train: teachingShare * inputTokens(examples),
      seconds: weights + sampling + teachingShare * trained,
    },
    problem:
      problems.length === 0
        ? undefined
        : { ...tokensBy((kind) => each(evaluated.use[kind])), seconds: each(evaluating) },
  };
}

async function trainOn(
  examples: ReturnType<typeof buildBatch>["examples"],
  { loss_fn: lossFn, loss_fn_config: lossFnConfig }: TrainConfig,
  { training, signal }: MeasureParts,
): Promise<void> {
  if (examples.length === 0) return;
  const data = examples.map((example) => lossDatum(example, lossFn));
  await training.forwardBackward(data, lossFn, { lossFnConfig, signal });
}

async function rollOutAll(
  sampler: SamplingClient,
  { phase, batch }: Pick<Place, "phase" | "batch">,
  tasks: readonly Task[],
  config: TrainConfig,
  { rollOuts, signal }: MeasureParts,
): Promise<{ groups: Group[]; use: TokenUse }> {
  const policy = policyOf(sampler);
  const use = tokensBy(() => 0);
  const rollOut = rollOuts({
    record: async (event) => {
      if (event.type === "group-sampled" || event.type === "turn-sampled") addTokens(use, sampledTokens(event));
    },
    ...drawsOf(phase, config),
  });
  const groups = await Promise.all(tasks.map((task, group) => rollOut({ phase, batch, group }, task, policy, signal)));
  return { groups, use };
}
