// Rules about the judge: outages, time limits, programs that aim at it, tests that anything passes.
import { whet } from "../../core/program.ts";
import { shellCommand } from "../../core/shell.ts";
import { type StepFigures, weakTestsFlag } from "../evidence.ts";
import { evidenceOf, harm, overMeans, percent, type Rule, short, spanOf, sumOf } from "../rule.ts";

const weakTestsFigure = `grade/flags/${weakTestsFlag}`;

/** The sum of the figures whose names begin so. */
const sumOfAll = (steps: readonly StepFigures[], prefix: string) =>
  steps
    .flatMap(({ figures }) => Object.entries(figures))
    .reduce((sum, [name, value]) => (name.startsWith(prefix) ? sum + value : sum), 0);

/** Completions with a status. */
const statuses = (steps: readonly StepFigures[]) => sumOfAll(steps, "grade/status/");

/** Completions whose program is flagged, not its problem; one with two flags counts twice. */
const flagged = (steps: readonly StepFigures[]) => sumOfAll(steps, "grade/flags/") - sumOf(steps, weakTestsFigure);

const timeouts: Rule = {
  id: "timeouts-dominate",
  levels: ["note", "warning"],
  symptomOf: harm,
  when: "30% of the programs of three steps run into the time limit; a note in the first 10 steps below 60%",
  means:
    "programs loop endlessly or recurse without end; normal early on, a waste of sandbox time when it lasts. Or reward_timeout is too short for this machine",
  remedy: "reduce reward_timeout so that loops cost less; raise it if right programs need longer",
  check(evidence) {
    const steps = evidence.last(3);
    const share = sumOf(steps, "grade/status/time_limit") / Math.max(1, statuses(steps));
    if (steps.length < 3 || share < 0.3) return undefined;
    return {
      level: share < 0.6 && evidence.step < 10 ? "note" : "warning",
      message: `${percent(share)} of the programs ran into the time limit (reward_timeout=${evidence.setting("reward_timeout", 6)} s)`,
      steps: spanOf(steps),
      figures: evidenceOf(steps, "grade/status/time_limit", "grade/wall_p95"),
      command: evidence.command("show", `step=${evidence.step}`),
    };
  },
};

const ungraded = overMeans({
  id: "ungraded-share",
  levels: ["warning", "error"],
  when: "2% of the answers of three steps have no verdict; error from 10% on (one step above 20% ends the run)",
  means:
    "the sandbox fails now and then: what it does not judge is not learned from, and what is left is a biased sample",
  remedy: "check the sandbox: its memory, its disk, its number of workers",
  ofReward: {
    means:
      "the reward function returns null for them: what it does not judge is not learned from, and what is left is a biased sample",
    remedy:
      "see in the function for which answers it returns null, and why: a service that it asks, or answers it cannot read",
  },
  over: 3,
  figures: ["grade/ungraded_rate", "groups_ungraded"],
  sees([share]) {
    if (!(share! >= 0.02)) return undefined;
    return {
      level: share! >= 0.1 ? "error" : "warning",
      message: `${percent(share!)} of the answers could not be graded`,
      command: `${whet} doctor`,
    };
  },
});

const flagsRising: Rule = {
  id: "flags-rising",
  levels: ["warning", "error"],
  symptomOf: [...harm, "entropy-collapse"],
  when: "the grader flags 10% of the programs of three steps, at least three times the share of the first three; error from 50% on",
  means:
    "more and more programs reach for the judge (frames, exit handlers, branches per test, constants) rather than for the problem",
  remedy: "look at the flagged programs; strengthen the tests they pass",
  check(evidence) {
    const now = evidence.last(3);
    const first = evidence.steps.slice(0, 3);
    if (evidence.steps.length < 4) return undefined;
    const shareOf = (steps: readonly StepFigures[]) => flagged(steps) / Math.max(1, statuses(steps));
    const [share, before] = [shareOf(now), shareOf(first)];
    if (share < 0.1 || share < 3 * before) return undefined;
    const samples = evidence.flaggedPasses.slice(-8);
    return {
      level: share >= 0.5 ? "error" : "warning",
      message: `${percent(share)} of the programs are flagged; it was ${percent(before)} at the beginning`,
      steps: spanOf(now),
      figures: now.flatMap(({ step, figures }) =>
        Object.entries(figures).flatMap(([name, value]) =>
          name.startsWith("grade/flags/") ? [{ name, step, value }] : [],
        ),
      ),
      samples,
      command: evidence.command("show", `step=${samples.at(-1)?.step ?? evidence.step}`),
    };
  },
};

const weakTests: Rule = {
  id: "weak-tests",
  levels: ["note", "warning", "error"],
  when: "a program that knows nothing (empty, echo, a constant) would pass the tests of problems the run met: warning from 5% of the answers of 10 steps on, error from 25%",
  means: "these tests reward answers that solve nothing, and training finds such answers",
  remedy: "certify the problems and leave those out that fail (blocked_ids=…), or add tests",
  check(evidence) {
    const recent = evidence.last(10);
    const steps = recent.filter(({ figures }) => figures[weakTestsFigure] !== undefined);
    if (steps.length === 0) return undefined;
    const share = sumOf(steps, weakTestsFigure) / Math.max(1, statuses(recent));
    return {
      level: share >= 0.25 ? "error" : share >= 0.05 ? "warning" : "note",
      message: `${percent(share)} of the answers of the last ${recent.length} steps are for problems whose tests a know-nothing program passes`,
      steps: spanOf(steps),
      figures: evidenceOf(steps, weakTestsFigure),
      command: shellCommand(`${whet} certify`, String(evidence.config["train_data"] ?? "FILE"), "show=bad"),
    };
  },
};

const slowGrading: Rule = {
  id: "slow-grading",
  levels: ["warning"],
  symptomOf: ["timeouts-dominate"],
  when: "in each of 5 steps, more than half of the time, at least 5 s, passes between the last answer and the last verdict",
  means: "the sandbox cannot keep up: every step waits for verdicts",
  ofReward: {
    means: "the reward function cannot keep up: every step waits for it",
    remedy: "make the function faster (it is called for many answers at once), or overlap it with max_lag=1",
  },
  remedy:
    "give it more workers (sandbox_max_concurrency, several sandbox_url), run fewer tests (max_tests), or overlap it with max_lag=1",
  check(evidence) {
    const steps = evidence.last(5, "time/grade_tail");
    if (steps.length < 5) return undefined;
    const waits = ({ figures }: StepFigures) => figures["time/grade_tail"]! >= Math.max(5, figures["time/total"]! / 2);
    if (!steps.every(waits)) return undefined;
    const [tail, total] = [sumOf(steps, "time/grade_tail"), sumOf(steps, "time/total")];
    return {
      level: "warning",
      message: `${short(tail / steps.length)} of ${short(total / steps.length)} s a step are waits for verdicts`,
      steps: spanOf(steps),
      figures: evidenceOf(steps, "time/grade_tail", "grade/queue_p95", "grade/wall_p95"),
      command: `${whet} doctor`,
    };
  },
};

export const gradingRules: readonly Rule[] = [timeouts, ungraded, flagsRising, weakTests, slowGrading];
