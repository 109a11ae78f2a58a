// What an episode was worth, as the functions of an environment say it, and the grade that the loop makes of that.
import type { Grade } from "../../runs/events.ts";
import { TrainError } from "../resume.ts";

/** Advantages travel as 32-bit floats, and some are rewards divided by nearly nothing: none of these must become infinite. */
const largestReward = 1e30;

/** What an answer or an episode is worth. */
export interface Reward {
  /** Any number up to ±1e30; answers to one problem are compared with each other. null: no judgement, and it is left out. */
  reward?: number | null;
  /** Several by name in its place: their sum counts, each with its weight of `reward_weights`; the run shows their means as `reward/NAME`. */
  rewards?: Readonly<Record<string, number>>;
  /** Counts as right in `correct` and Pass@1; default: a reward (of several, the first) of 1 or more. */
  correct?: boolean;
  /** Counts in the format rate; default true. */
  wellFormed?: boolean;
  /** Figures of your own; the run shows their means as `env/NAME`. */
  metrics?: Readonly<Record<string, number>>;
}

/** A verdict: a reward alone, null where there is no judgement, or all there is to say. */
export type Verdict = number | null | Reward;

/** Verdicts of the product's own grader keep everything that it found. */
const graded = new WeakMap<object, Grade>();

/** A verdict that stands for a grade. */
export function verdictOf(grade: Grade): Reward {
  const verdict = { reward: grade.reward, correct: grade.verdict === "pass", wellFormed: grade.formatOk };
  graded.set(verdict, grade);
  return verdict;
}

/** The sandbox gave no verdict: the episode has none either. */
export class NoVerdict extends Error {
  /** What the sandbox says of it. */
  readonly status: string;
  constructor({ status, message = status }: Grade) {
    super(`the sandbox gave no verdict: ${message}`);
    this.status = status;
  }
}

/** Reads what a function returned; `who` and `id` name it in the error that refuses what is no verdict. */
export function readVerdict(given: unknown, who: string, id: string): Reward {
  const refuse = (what: string, remedy: string): never => {
    throw new TrainError("rl/bad-reward", `${who} gave ${what} for problem ${JSON.stringify(id)}. ${remedy}`);
  };
  const full = (typeof given === "object" && given !== null ? given : { reward: given }) as Partial<Reward>;
  const { rewards, correct, wellFormed, metrics = {} } = full;
  if (rewards !== undefined && full.reward !== undefined)
    return refuse("reward and rewards", "Return one of them: rewards are summed up.");
  const named = Object.entries(rewards ?? {});
  if (rewards !== undefined && named.length === 0) return refuse("no rewards", "Return at least one, or reward: null.");
  for (const [name, value] of named)
    if (typeof value !== "number" || !(Math.abs(value) <= largestReward))
      return refuse(`rewards.${name}=${shown(value)}`, `Return finite numbers of at most ±${largestReward}.`);
  const reward = rewards === undefined ? full.reward : named.reduce((sum, [, value]) => sum + value, 0);
  if (reward !== null && !(typeof reward === "number" && Math.abs(reward) <= largestReward))
    return refuse(shown(reward), `Return a finite number of at most ±${largestReward}, or null.`);
  for (const [name, value] of Object.entries({ correct, wellFormed }))
    if (value !== undefined && typeof value !== "boolean")
      return refuse(`${name}=${shown(value)}`, "Return true or false, or leave it out.");
  for (const [name, value] of Object.entries(metrics))
    if (typeof value !== "number" || !Number.isFinite(value))
      return refuse(`metrics.${name}=${shown(value)}`, "Return finite numbers, or leave it out.");
  return rewards === undefined ? (full as Reward) : { ...full, reward };
}

const shown = (value: unknown): string =>
  `${typeof value === "object" && value !== null ? JSON.stringify(value)?.slice(0, 60) : String(value)}`;

/** The grade of a verdict; `more` was given for single turns, beside it. */
export function gradeOf(verdict: Reward, wallMs: number, more = 0): Grade {
  const known = graded.get(verdict);
  const given = verdict.reward ?? null;
  const reward = given === null || more === 0 ? given : given + more;
  if (known) return { ...known, reward };
  const { rewards, correct, wellFormed = true } = verdict;
  const [first] = Object.values(rewards ?? {});
  const word = reward === null ? "ungraded" : (correct ?? (first ?? reward) >= 1) ? "pass" : "fail";
  return {
    verdict: word,
    status: word,
    reward,
    formatOk: wellFormed,
    passed: word === "pass" ? 1 : 0,
    total: 1,
    ran: word === "ungraded" ? 0 : 1,
    wallMs,
    queueMs: 0,
    cached: false,
    flags: [],
    codeHash: null,
    ...(rewards && { rewards: { ...rewards } }),
  };
}

/** No verdict, and why. */
export const ungraded = (message: string, wallMs: number, status = "ungraded"): Grade => ({
  ...gradeOf({ reward: null }, wallMs),
  status,
  message,
});
