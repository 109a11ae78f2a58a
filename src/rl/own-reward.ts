// A reward function of one's own as the judge of a run.
import { messageOf } from "../core/errors.ts";
import type { Grade } from "../runs/events.ts";
import type { TrainingProblem } from "./own-problems.ts";
import { TrainError } from "./resume.ts";
import type { Judge } from "./rollout.ts";

/** An answer to judge. */
export interface RewardRequest<Problem extends TrainingProblem = TrainingProblem> {
  /** The problem as it was given. */
  problem: Problem;
  /** The answer, without reasoning and control tokens. */
  text: string;
  /** The answer as the model wrote it. */
  tokens: Int32Array;
  /** Whether it was cut off at the longest answer allowed. */
  truncated: boolean;
  /** Aborted when the run is stopped at once. */
  signal: AbortSignal;
}

/** Advantages travel as 32-bit floats, and some are rewards divided by nearly nothing: none of these must become infinite. */
const largestReward = 1e30;

/** What an answer is worth. */
export interface Reward {
  /** Any number up to ±1e30; answers to one problem are compared with each other. null: no judgement, and the answer is left out. */
  reward: number | null;
  /** Counts as right in `correct` and Pass@1; default: a reward of 1 or more. */
  correct?: boolean;
  /** Counts in the format rate; default true. */
  wellFormed?: boolean;
}

/** Judges one answer. It is called for many answers at once; whatever it throws ends the run. */
export type RewardFunction<Problem extends TrainingProblem = TrainingProblem> = (
  answer: RewardRequest<Problem>,
) => number | null | Reward | Promise<number | null | Reward>;

/** A judge that asks a function about the problem that a task was made of. */
export function judgeByReward<Problem extends TrainingProblem>(reward: RewardFunction<Problem>): Judge {
  return async (task, { text, tokens, truncated }, signal) => {
    const started = performance.now();
    let given: number | null | Reward;
    try {
      given = await reward({ problem: task.problem as Problem, text, tokens, truncated, signal });
    } catch (error) {
      signal.throwIfAborted();
      throw new TrainError(
        "rl/reward-failed",
        `The reward function failed on an answer to problem ${JSON.stringify(task.id)}: ${messageOf(error)}. ` +
          "Return null where there is no judgement, for example when a service is away; the answer is then left out.",
        { cause: error },
      );
    }
    const full: Reward = typeof given === "object" && given !== null ? given : { reward: given };
    if (full.reward !== null && !(Number.isFinite(full.reward) && Math.abs(full.reward) <= largestReward))
      throw new TrainError(
        "rl/bad-reward",
        `The reward function gave ${String(full.reward)} for an answer to problem ${JSON.stringify(task.id)}. Return a finite number of at most ±${largestReward}, or null.`,
      );
    for (const name of ["correct", "wellFormed"] as const)
      if (full[name] !== undefined && typeof full[name] !== "boolean")
        throw new TrainError(
          "rl/bad-reward",
          `The reward function gave ${name}=${String(full[name])} for an answer to problem ${JSON.stringify(task.id)}. Return true or false, or leave it out.`,
        );
    return gradeOf(full, performance.now() - started);
  };
}

function gradeOf({ reward, correct, wellFormed = true }: Reward, wallMs: number): Grade {
  const verdict = reward === null ? "ungraded" : (correct ?? reward >= 1) ? "pass" : "fail";
  const passed = verdict === "pass" ? 1 : 0;
  const ran = verdict === "ungraded" ? 0 : 1;
  return {
    verdict,
    status: verdict,
    reward,
    formatOk: wellFormed,
    passed,
    total: 1,
    ran,
    wallMs,
    queueMs: 0,
    cached: false,
    flags: [],
    codeHash: null,
  };
}
