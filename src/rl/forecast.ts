// What a run will ask for at most, in tokens, before any of it is asked for: every answer as long as it may be,
// and what that costs at known prices. `./whet doctor` measures instead, and forecasts what is likely.
import { countOf } from "../core/count.ts";
import type { TrainConfig } from "./config.ts";
import { maxProblemsOf } from "./fill.ts";
import { costOf, dollars, type Tariff, type TokenUse } from "./prices.ts";
import { completionsPerStep, type Sizes } from "./sizes.ts";

/** The most tokens, by what they are for: nothing is counted on to be cached. */
type TokenBound = Omit<TokenUse, "cachedPrefill">;

export interface Forecast {
  /** Of one step. */
  step: TokenBound;
  /** Of one evaluation. */
  evaluation: TokenBound;
  /** Of the whole run; undefined when it has no end. */
  run: TokenBound | undefined;
  steps: number;
  evaluations: number;
}

type Settings = Pick<
  TrainConfig,
  keyof Sizes | "context_window" | "fill_batch" | "max_steps" | "eval_every" | "eval_num_samples"
>;

/** What of a task makes its cost. */
interface TaskSize {
  prompt: { readonly length: number };
  maxTokens: number;
}

/** The task that costs most: the longest answer, after a prompt that leaves room for just that. */
function longestTask(
  { max_tokens, context_window: window }: Pick<TrainConfig, "max_tokens" | "context_window">,
  maxTokens = max_tokens,
): TaskSize {
  const longest = Math.min(maxTokens, window);
  return { prompt: { length: window - longest }, maxTokens: longest };
}

/** The most tokens of a run by its settings alone, before a prompt was read. Evaluations of all problems there are, are not in it. */
export function forecastAtMost(
  config: Settings & Pick<TrainConfig, "max_tokens" | "eval_max_tokens" | "eval_max_problems">,
  maxTurns = 1,
): Forecast {
  const test = longestTask(config, config.eval_max_tokens || config.max_tokens);
  const tests = new Array<TaskSize>(config.eval_max_problems).fill(test);
  return forecastTokens(config, [longestTask(config)], tests, maxTurns);
}

/**
 * The most tokens of a run. `sampled` are some of its training problems: the mean of their prompts stands for all. Each further turn of an
 * episode reads what was said before it, which the window bounds.
 */
export function forecastTokens(
  config: Settings,
  sampled: readonly TaskSize[],
  tests: readonly TaskSize[],
  maxTurns = 1,
): Forecast {
  const { max_steps: steps, context_window: window } = config;
  const answers = completionsPerStep(config);
  const prompts = maxProblemsOf(config);
  const mean = (pick: (task: TaskSize) => number) =>
    sampled.reduce((sum, task) => sum + pick(task), 0) / Math.max(1, sampled.length);
  const prompt = mean((task) => task.prompt.length);
  const longest = mean((task) => task.maxTokens);
  const further = (maxTurns - 1) * window;
  // With fill_batch more is asked than is trained on: what teaches nothing is not.
  const step = {
    prefill: Math.round(prompts * (prompt + config.completions_per_prompt * further)),
    sample: Math.round(prompts * config.completions_per_prompt * maxTurns * longest),
    train: Math.round(answers * (maxTurns > 1 ? maxTurns * window : prompt + longest)),
  };
  const evaluation = {
    prefill: tests.reduce((sum, task) => sum + task.prompt.length + config.eval_num_samples * further, 0),
    sample: config.eval_num_samples * maxTurns * tests.reduce((sum, task) => sum + task.maxTokens, 0),
    train: 0,
  };
  const evaluations = tests.length > 0 && steps >= 0 ? evaluationsOf(config, steps) : 0;
  const add = (kind: keyof TokenBound) => steps * step[kind] + evaluations * evaluation[kind];
  const run = steps < 0 ? undefined : { prefill: add("prefill"), sample: add("sample"), train: add("train") };
  return { step, evaluation, run, steps, evaluations };
}

/** Evaluations of a run: before the first step, every so many steps, and after the last one. */
export const evaluationsOf = ({ eval_every: every }: Pick<TrainConfig, "eval_every">, steps: number): number =>
  every > 0 ? 1 + Math.ceil(steps / every) : 0;

/** The most that a run costs, in one line. */
export function describeCost({ step, run }: Forecast, tariff: Tariff): string {
  const most = (use: TokenBound) => dollars(costOf(tariff, use).total);
  return `cost: at most ${most(step)} a step${run ? `, ${most(run)} in all` : ""} (${tariff.basis})`;
}

/** The forecast in two lines. */
export function describeForecast({ step, run, steps, evaluations }: Forecast): string[] {
  const tokens = ({ prefill, sample, train }: TokenBound) =>
    `${short(prefill)} read, ${short(sample)} sampled, ${short(train)} trained`;
  const whole = run
    ? `${countOf(steps, "step")} and ${countOf(evaluations, "evaluation")}: at most ${tokens(run)}`
    : "max_steps=-1: the run has no end of its own";
  return [`a step: at most ${tokens(step)} (tokens, if every answer is as long as it may be)`, whole];
}

/** 1234567 as "1.2M". */
function short(count: number): string {
  if (count < 10_000) return String(count);
  return count < 1e6 ? `${Math.round(count / 1e3)}k` : `${(count / 1e6).toFixed(1)}M`;
}
