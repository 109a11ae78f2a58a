// What a run's time or money went to, from its journal: prompts, answers, training, grading, evaluation, and groups that taught nothing.
// With prices the parts are tokens times price. Without, they are time: the seconds of a step that are neither training nor grading are
// laid upon the tokens read and sampled in them. Evaluations, which read many prompts for few answers, tell the two apart.
import type { EventOf, RunEvent } from "./events.ts";
import { coveredWithin } from "./timing.ts";

/** Prices in US dollars per million tokens, as a run's config has them. */
interface Prices {
  prefill: number;
  cachedPrefill: number;
  sample: number;
  train: number;
}

/** What one unit of each thing costs. */
export interface UnitCosts {
  promptToken: number;
  answerToken: number;
  /** Of the tokens that an update reads, prompts included. */
  trainedToken: number;
  /** Grading that sampling does not hide. */
  answer: number;
  /** What is left of a step, whatever its shape. */
  step: number;
}

export interface Spending {
  unit: "seconds" | "dollars";
  /** Parts of the whole. */
  parts: { prompts: number; answers: number; training: number; grading: number; evaluation: number; other: number };
  total: number;
  /** Of prompts, answers and grading: what went to groups whose rewards were all equal. */
  taughtNothing: number;
  costs: UnitCosts;
  steps: number;
  /** Problems asked and answers drawn, and the mean lengths. */
  problems: number;
  answers: number;
  promptTokens: number;
  answerTokens: number;
  /** How each problem of each step came out: answers with a verdict, and how many of them passed. */
  outcomes: { graded: number; passed: number }[];
  skipped: number;
}

/** Tokens as they are paid for, or computed. */
interface Tokens {
  prompt: number;
  cached: number;
  answer: number;
}

/** A stretch of the run's time: a step, or the evaluation after the last one. */
interface Stretch {
  end: number;
  seconds: number;
  train: number;
  grade: number;
  weights: number;
  /** Tokens whose group was sampled by its end, of training and of evaluation. */
  tokens: { train: Tokens; eval: Tokens };
}

interface Step {
  tokens: Tokens[];
  groups: EventOf<"update-submitted">["groups"];
  trained: number;
}

/** What the journal's events say; undefined where the run has no step. */
export function spendingOf(entries: Iterable<{ event: RunEvent }>): Spending | undefined {
  const steps = new Map<number, Step>();
  const done: EventOf<"step-done">[] = [];
  const sampled: { end: number; phase: "train" | "eval"; tokens: Tokens }[] = [];
  let lastEvaluation = 0;
  let prices: Prices | undefined;
  const of = (step: number) => {
    const known = steps.get(step) ?? { tokens: [], groups: [], trained: 0 };
    steps.set(step, known);
    return known;
  };
  for (const { event } of entries) {
    if (event.type === "started") prices = pricesOf(event.config["tariff"]) ?? prices;
    else if (event.type === "group-sampled") {
      const { promptTokens: prompt = 0, cachedTokens: cached = 0, phase, end } = event;
      const tokens = { prompt, cached, answer: event.samples.reduce((sum, sample) => sum + sample.tokens, 0) };
      sampled.push({ end, phase, tokens });
      if (phase === "train") of(event.batch).tokens[event.group] = tokens;
    } else if (event.type === "update-submitted")
      Object.assign(of(event.step), { groups: event.groups, trained: event.tokens ?? 0 });
    else if (event.type === "evaluated") lastEvaluation = Math.max(lastEvaluation, event.end);
    else if (event.type === "step-done") done.push(event);
    else if (event.type === "rewound") {
      for (const step of [...steps.keys()]) if (step >= event.to) steps.delete(step);
      done.splice(0, done.length, ...done.filter(({ step }) => step < event.to));
    }
  }
  if (done.length === 0) return undefined;
  const known = done.flatMap(({ step }) => steps.get(step) ?? []);
  const stretches = stretchesOf(done, lastEvaluation);
  // What was sampled between two processes' steps counts with the next one.
  let at = 0;
  for (const { end, phase, tokens } of sampled.sort((a, b) => a.end - b.end)) {
    while (at < stretches.length && stretches[at]!.end < end) at++;
    if (at < stretches.length) add(stretches[at]!.tokens[phase], tokens);
  }
  return prices ? inDollars(known, stretches, prices) : inSeconds(known, stretches);
}

function stretchesOf(done: readonly EventOf<"step-done">[], lastEvaluation: number): Stretch[] {
  const nothing = () => ({ prompt: 0, cached: 0, answer: 0 });
  const stretches = done.map(({ spans }): Stretch => {
    const total = spans.find(({ name }) => name === "total")!;
    // Stages of several batches run beside each other: each counts for what those before it do not cover.
    const names = ["train", "weights", "grade_tail"];
    const covered = names.map(
      (_, last) =>
        coveredWithin(
          spans.filter(({ name }) => names.slice(0, last + 1).includes(name)),
          [total],
        ) / 1000,
    );
    return {
      end: total.end,
      seconds: (total.end - total.start) / 1000,
      train: covered[0]!,
      weights: covered[1]! - covered[0]!,
      grade: covered[2]! - covered[1]!,
      tokens: { train: nothing(), eval: nothing() },
    };
  });
  const { end } = stretches.at(-1)!;
  if (lastEvaluation > end)
    stretches.push({
      end: lastEvaluation,
      seconds: (lastEvaluation - end) / 1000,
      train: 0,
      grade: 0,
      weights: 0,
      tokens: { train: nothing(), eval: nothing() },
    });
  return stretches;
}

function inSeconds(steps: readonly Step[], stretches: readonly Stretch[]): Spending {
  const sum = (pick: (stretch: Stretch) => number) => stretches.reduce((all, stretch) => all + pick(stretch), 0);
  const fresh = ({ prompt, cached }: Tokens) => prompt - cached;
  const sampling = stretches.map(({ seconds, train, grade, weights, tokens }) => ({
    x: fresh(tokens.train) + fresh(tokens.eval),
    y: tokens.train.answer + tokens.eval.answer,
    value: seconds - train - grade - weights,
  }));
  const fitted = fitCosts(sampling);
  const all = (pick: (point: (typeof sampling)[number]) => number) =>
    sampling.reduce((total, point) => total + pick(point), 0);
  // A fit's errors need not add up to zero, and shares are of what there was.
  const scale = all(({ value }) => value) / (all(({ x, y }) => fitted.a * x + fitted.b * y) || 1);
  const [promptToken, answerToken] = [scale * fitted.a, scale * fitted.b];
  const answers = steps.reduce((all, { groups }) => all + countOf(groups), 0);
  const trained = steps.reduce((all, step) => all + step.trained, 0);
  const costs = {
    promptToken,
    answerToken,
    // Journals of early versions do not say how many tokens were trained on.
    trainedToken: trained > 0 ? sum(({ train }) => train) / trained : 0,
    answer: sum(({ grade }) => grade) / Math.max(1, answers),
    step: sum(({ weights }) => weights) / steps.length,
  };
  const evaluation = sum(({ tokens }) => promptToken * fresh(tokens.eval) + answerToken * tokens.eval.answer);
  const training = sum(({ train }) => train);
  return assemble("seconds", steps, costs, { training, evaluation, total: sum(({ seconds }) => seconds) });
}

function inDollars(steps: readonly Step[], stretches: readonly Stretch[], prices: Prices): Spending {
  const per = (price: number) => price / 1e6;
  const read = ({ prompt, cached }: Tokens) =>
    per(prices.prefill) * (prompt - cached) + per(prices.cachedPrefill) * cached;
  const all = steps.flatMap(({ tokens }) => tokens);
  const prompt = all.reduce((sum, tokens) => sum + tokens.prompt, 0);
  const costs = {
    promptToken: all.reduce((sum, tokens) => sum + read(tokens), 0) / Math.max(1, prompt),
    answerToken: per(prices.sample),
    trainedToken: per(prices.train),
    answer: 0,
    step: 0,
  };
  const evaluation = stretches.reduce(
    (sum, { tokens }) => sum + read(tokens.eval) + per(prices.sample) * tokens.eval.answer,
    0,
  );
  const training = steps.reduce((sum, { trained }) => sum + per(prices.train) * trained, 0);
  return assemble("dollars", steps, costs, { training, evaluation, total: undefined });
}

function assemble(
  unit: Spending["unit"],
  steps: readonly Step[],
  costs: UnitCosts,
  { training, evaluation, total }: { training: number; evaluation: number; total: number | undefined },
): Spending {
  // Seconds lie upon the tokens that were computed, dollars are already averaged over cached ones.
  const read = ({ prompt, cached }: Tokens) => costs.promptToken * (unit === "seconds" ? prompt - cached : prompt);
  const groups = steps.flatMap((step) =>
    step.groups.map((group, index) => ({
      ...group,
      tokens: step.tokens[index] ?? { prompt: 0, cached: 0, answer: 0 },
    })),
  );
  const sum = (chosen: typeof groups, pick: (group: (typeof groups)[number]) => number) =>
    chosen.reduce((all, group) => all + pick(group), 0);
  const prompts = sum(groups, ({ tokens }) => read(tokens));
  const answers = sum(groups, ({ tokens }) => costs.answerToken * tokens.answer);
  const grading = costs.answer * countOf(groups);
  const whole = total ?? prompts + answers + training + grading + evaluation;
  const idle = groups.filter(({ skipped }) => skipped);
  const problems = steps.flatMap((step) => byProblem(step.groups));
  const drawn = countOf(groups);
  return {
    unit,
    parts: {
      prompts,
      answers,
      training,
      grading,
      evaluation,
      other: Math.max(0, whole - prompts - answers - training - grading - evaluation),
    },
    total: whole,
    taughtNothing:
      sum(idle, ({ tokens }) => read(tokens) + costs.answerToken * tokens.answer) + costs.answer * countOf(idle),
    costs,
    steps: steps.length,
    problems: problems.length,
    answers: drawn,
    promptTokens: sum(groups, ({ tokens }) => tokens.prompt) / Math.max(1, groups.length),
    answerTokens: sum(groups, ({ tokens }) => tokens.answer) / Math.max(1, drawn),
    outcomes: problems,
    skipped: problems.filter(({ skipped }) => skipped).length,
  };
}

type Groups = EventOf<"update-submitted">["groups"];

/** A problem's answers in a step, whatever the number of groups they came in. */
function byProblem(groups: Groups): { graded: number; passed: number; skipped: boolean }[] {
  const problems = new Map<string, { graded: number; passed: number; skipped: boolean }>();
  for (const { problem, graded = 0, passed = 0, skipped } of groups) {
    const known = problems.get(problem) ?? { graded: 0, passed: 0, skipped };
    problems.set(problem, { graded: known.graded + graded, passed: known.passed + passed, skipped });
  }
  return [...problems.values()];
}

const countOf = (groups: Groups) => groups.reduce((sum, { advantages }) => sum + advantages.length, 0);

function add(to: Tokens, more: Tokens): void {
  to.prompt += more.prompt;
  to.cached += more.cached;
  to.answer += more.answer;
}

/** value ≈ a·x + b·y with neither below zero, by least squares. */
export function fitCosts(points: readonly { x: number; y: number; value: number }[]): { a: number; b: number } {
  const sum = (pick: (point: (typeof points)[number]) => number) => points.reduce((all, point) => all + pick(point), 0);
  const [xx, yy, xy] = [sum(({ x }) => x * x), sum(({ y }) => y * y), sum(({ x, y }) => x * y)];
  const [xv, yv] = [sum(({ x, value }) => x * value), sum(({ y, value }) => y * value)];
  const determinant = xx * yy - xy * xy;
  if (determinant > 1e-9 * xx * yy) {
    const [a, b] = [(xv * yy - yv * xy) / determinant, (yv * xx - xv * xy) / determinant];
    if (a >= 0 && b >= 0) return { a, b };
    if (a < 0) return { a: 0, b: yv / yy };
    return { a: xv / xx, b: 0 };
  }
  // They cannot be told apart: one price for both.
  const together = sum(({ x, y }) => x + y);
  const each = together > 0 ? sum(({ value }) => value) / together : 0;
  return { a: each, b: each };
}

/** The prices in a recorded config; undefined where there is none or all are zero. */
function pricesOf(tariff: unknown): Prices | undefined {
  const known = tariff as Partial<Prices> | null | undefined;
  if (!known || typeof known.sample !== "number" || typeof known.prefill !== "number") return undefined;
  const { prefill, sample, train = 0, cachedPrefill = prefill } = known;
  return prefill + sample + train > 0 ? { prefill, cachedPrefill, sample, train } : undefined;
}
