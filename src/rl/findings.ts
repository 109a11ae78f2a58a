// The diagnosis while a run trains: what it finds is said, written down, and acted on as on_error asks. A finding is in the journal before
// anything follows from it, so a run that is killed in between does the same when it goes on.

import { whet } from "../core/program.ts";
import { Diagnosis, type Raised } from "../diagnosis/diagnosis.ts";
import { Evidence } from "../diagnosis/evidence.ts";
import { bestMean, meanOf } from "../diagnosis/rule.ts";
import { isCurable } from "../diagnosis/rules.ts";
import type { EventOf, RunEvent } from "../runs/events.ts";
import type { Finding } from "../runs/findings.ts";
import type { Run } from "../runs/run.ts";
import type { TrainConfig } from "./config.ts";
import { Course } from "./course.ts";
import { isDiverged } from "./lost.ts";
import { resumableCheckpoints } from "./recovery.ts";
import { TrainError } from "./resume.ts";
import type { TrainSession } from "./session.ts";

/** A run that was rolled back this often and breaks again is stopped. */
const mostRollbacks = 2;

/** Ends the session; the journal says where the next one begins. */
export class RollBack extends Error {}

type Action = EventOf<"finding">["action"];

export class Findings {
  readonly #run: Run;
  readonly #policy: TrainConfig["on_error"];
  readonly #course = new Course();
  /** Found, and not written down yet. */
  #pending: Raised[] = [];

  /** Reads what the journal has so far, then follows it. */
  constructor(run: Run, config: Pick<TrainConfig, "on_error">) {
    this.#run = run;
    this.#policy = config.on_error;
    const diagnosis = new Diagnosis(run.path);
    const follow = (event: RunEvent) => {
      this.#course.take(event);
      const raised = diagnosis.take(event);
      // How a process ended is for those who look afterwards.
      if (event.type !== "stopped") this.#pending.push(...raised);
      if (event.type === "rewound") this.#pending = this.#pending.filter(({ step }) => step < event.to);
      if (event.type === "finding")
        this.#pending = this.#pending.filter(({ finding }) => !isSame(finding, event.finding));
    };
    for (const { event } of run.journal.entries()) follow(event);
    run.journal.listen(follow);
  }

  /** Says what was found after a step, and does about it what on_error asks. Throws RollBack. */
  async act(step: number, session: TrainSession): Promise<void> {
    const due = this.#pending.filter((raised) => raised.step <= step);
    const acting = due.find(({ finding }) => this.#actionFor(finding) !== "none");
    // What calls for something is written last: once it is, nothing else of this step is left to say.
    for (const raised of due) if (raised !== acting) await this.#write(raised, "none");
    if (!acting) return;
    const action = this.#actionFor(acting.finding);
    await this.#write(acting, action);
    if (action === "rollback") throw new RollBack();
    if (action === "pause") session.controls.hold(`on_error, ${acting.finding.id}`);
    if (action === "stop") session.stop(stopped(step, acting.finding));
  }

  /** Says what was found since the last step. */
  async say(): Promise<void> {
    for (const raised of [...this.#pending]) await this.#write(raised, "none");
  }

  /** Whether an error means that training diverged and on_error allows going back; then it is written down. */
  async canRollBack(error: unknown, step: number): Promise<boolean> {
    if (!isDiverged(error) || this.#policy !== "rollback" || this.#course.rollbacks >= mostRollbacks) return false;
    const finding: Finding = {
      id: "numbers-not-finite",
      level: "error",
      message: `the server met infinite or missing numbers: ${error instanceof Error ? error.message.slice(0, 300) : ""}`,
      steps: [step, step],
      figures: [],
      means: "training diverged: the learning rate is too high",
      remedy: "reduce the learning rate",
    };
    await this.#write({ step, finding }, "rollback");
    return true;
  }

  #actionFor({ level, id }: Finding): Action {
    if (level !== "error" || this.#policy === "warn") return "none";
    if (this.#policy !== "rollback") return this.#policy;
    if (!isCurable(id)) return "none";
    return this.#course.rollbacks < mostRollbacks ? "rollback" : "stop";
  }

  async #write({ step, finding }: Raised, action: Action): Promise<void> {
    const { logger, journal } = this.#run;
    const said = `${finding.id}: ${finding.message}. Most likely ${finding.means}. What to do: ${finding.remedy}${
      finding.command === undefined ? "" : ` (${finding.command})`
    }`;
    if (finding.level === "error") logger.error(said);
    else if (finding.level === "warning") logger.warn(said);
    else logger.info(said);
    await journal.append({ type: "finding", step, finding, action });
  }
}

const isSame = (a: Finding, b: Finding) => a.id === b.id && a.level === b.level;

const stopped = (step: number, { id, message, remedy }: Finding) =>
  new TrainError(
    "rl/diagnosed",
    `Training was stopped after step ${step}: ${message} (${id}). Everything is saved. What to do: ${remedy}. ${whet} diagnose has the whole story.`,
  );

/**
 * Goes back where a finding called for it: to the newest healthy checkpoint, or to the start, with half the learning rate. One event does
 * both, so that no kill can come in between.
 */
export async function rollBackIfAsked(run: Run, config: Pick<TrainConfig, "max_lag" | "learning_rate">): Promise<void> {
  const course = new Course();
  const evidence = new Evidence();
  for (const { event } of run.journal.entries()) {
    course.take(event);
    evidence.take(event);
  }
  const finding = course.unansweredFinding;
  if (!finding) return;
  const isHealthy = healthBefore(evidence, finding.firstStep, config.max_lag);
  const checkpoint = resumableCheckpoints(run.journal.entries()).find(({ step }) => isHealthy(step));
  const learningRate = (course.learningRate ?? config.learning_rate) / 2;
  const to = checkpoint?.step ?? 0;
  run.logger.warn(
    `${finding.id} after step ${finding.step}: back to ${checkpoint ? `checkpoint ${checkpoint.name}` : "the start"} with learning_rate=${learningRate} ` +
      `(rollback ${course.rollbacks + 1} of ${mostRollbacks})`,
  );
  await run.journal.append({
    type: "rewound",
    to,
    reason: `on_error=rollback: ${finding.id} after step ${finding.step}; learning_rate=${learningRate} from here on`,
    rollback: { finding: finding.id, learningRate },
  });
}

/**
 * Whether the policy after so many steps is one to go back to: older than the evidence (the figures of step n show policy n − lag), and
 * about as good as the best before it; a policy that breaks has often been sinking for a while.
 */
export function healthBefore(evidence: Evidence, firstStep: number, lag: number): (step: number) => boolean {
  const before = evidence.steps.filter(({ step }) => step < firstStep);
  const best = bestMean(before, "mean_correct", steadySteps);
  return (step) => {
    if (step >= firstStep - lag) return false;
    const around = before.filter((at) => at.step <= step + lag && at.step > step + lag - steadySteps);
    return around.length === 0 || meanOf(around, "mean_correct") >= 0.8 * best;
  };
}

/** A batch has few problems: a policy is judged by as many steps as this. */
const steadySteps = 3;
