// The diagnosis while a run trains: what it finds is said, written down, and acted on as on_error asks. A finding is in the journal before
// anything follows from it, so a run that is killed in between does the same when it goes on. Causes are described in full and acted on;
// what follows from them gets a line each.

import { whet } from "../core/program.ts";
import { Diagnosis, type Raised } from "../diagnosis/diagnosis.ts";
import type { Evidence } from "../diagnosis/evidence.ts";
import { bestMean, meanOf } from "../diagnosis/rule.ts";
import { isCurable } from "../diagnosis/rules.ts";
import { sayFinding } from "../diagnosis/text.ts";
import type { EventOf, RunEvent } from "../runs/events.ts";
import { type Cause, causesOf, type Finding, type Found, FoundFindings, findingLevels } from "../runs/findings.ts";
import { isStepUndone } from "../runs/rewinds.ts";
import type { Run } from "../runs/run.ts";
import type { TrainConfig } from "./config.ts";
import { ControlState } from "./control-state.ts";
import { isDiverged } from "./lost.ts";
import { oldestAnswers } from "./pipeline.ts";
import { resumable } from "./recovery.ts";
import { TrainError } from "./resume.ts";
import type { TrainSession } from "./session.ts";

/** A run that was rolled back this often and breaks again is stopped. */
const maxRollbacks = 2;

/** Ends the session; the journal says where the next one begins. */
export class RollBack extends Error {}

type FindingsConfig = Pick<TrainConfig, "on_error" | "max_lag" | "tail" | "learning_rate">;

type Action = EventOf<"finding">["action"];

/** A finding that is not written down yet, among all that the run has. */
type Due = Found & Raised & { isNew: boolean };

export class Findings {
  readonly #run: Run;
  readonly #config: FindingsConfig;
  readonly #diagnosis: Diagnosis;
  readonly #controlState = new ControlState();
  readonly #written = new FoundFindings();
  /** Found, and not written down yet. */
  #pending: Raised[] = [];

  /** Takes the run's events from the journal's beginning on. */
  constructor(run: Run, config: FindingsConfig) {
    this.#run = run;
    this.#config = config;
    this.#diagnosis = new Diagnosis(run.path);
  }

  take(event: RunEvent): void {
    this.#controlState.take(event);
    this.#written.take(event);
    const raised = this.#diagnosis.take(event);
    // How a process ended is for those who look afterwards.
    if (event.type !== "stopped") this.#pending.push(...raised);
    if (event.type === "rewound") this.#pending = this.#pending.filter(({ step }) => !isStepUndone(step, event.to));
    if (event.type === "finding")
      this.#pending = this.#pending.filter(({ finding }) => !isSaid(finding, event.finding));
  }

  /** Says what was found after a step, and does about it what on_error asks. Throws RollBack. */
  async act(step: number, session: TrainSession): Promise<void> {
    // After a kill there may be several steps to say: one after the other, as without it.
    const steps = new Set(this.#pending.map((raised) => raised.step).filter((at) => at <= step));
    for (const at of [...steps].sort((a, b) => a - b)) await this.#actAfter(at, session);
  }

  async #actAfter(step: number, session: TrainSession): Promise<void> {
    const causes = this.#causes((raised) => raised.step === step);
    let acting: { due: Due; action: Action; cause: Cause<Due> } | undefined;
    for (const cause of causes)
      for (const due of [cause.root, ...cause.symptoms]) {
        const action = due.isNew && acting === undefined ? this.#actionFor(due.finding, cause) : "none";
        if (action !== "none") acting = { due, action, cause };
      }
    // Which checkpoints there are decides where it goes back to: a kill must not find another answer than this process.
    if (acting?.action === "rollback") await session.saved();
    await this.#write(causes, acting);
    if (!acting) return;
    const { due, action, cause } = acting;
    if (action === "rollback") throw new RollBack();
    if (action === "pause") session.controls.hold(`on_error, ${due.finding.id}`);
    if (action === "stop") session.stop(stopped(step, cause.root.finding));
  }

  /** Says what was found since the last step. */
  async say(): Promise<void> {
    await this.#write(this.#causes(() => true));
  }

  /** Whether an error means that training diverged and on_error allows going back; then it is written down. */
  async canRollBack(error: unknown, step: number): Promise<boolean> {
    if (!isDiverged(error) || this.#config.on_error !== "rollback" || this.#controlState.rollbacks >= maxRollbacks)
      return false;
    const finding: Finding = {
      id: "numbers-not-finite",
      level: "error",
      message: `the server met infinite or missing numbers: ${error instanceof Error ? error.message.slice(0, 300) : ""}`,
      steps: [step, step],
      figures: [],
      means: "training diverged: the learning rate is too high",
      remedy: "reduce the learning rate",
    };
    const due = { step, since: step, finding, isNew: true };
    const cause: Cause<Due> = { root: due, symptoms: [], level: finding.level };
    await this.#write([cause], { due, action: "rollback" });
    return true;
  }

  /**
   * Goes back where a finding called for it: to the newest healthy checkpoint, or to the start, with half the learning rate. One event
   * does both, so that no kill can come in between.
   */
  async rollBackIfAsked(): Promise<void> {
    const { unansweredFinding: finding, learningRate: current, rollbacks } = this.#controlState;
    if (!finding) return;
    const { evidence } = this.#diagnosis;
    const isHealthy = healthBefore(evidence, finding.firstStep, oldestAnswers(this.#config));
    const checkpoint = resumable(evidence.checkpoints).find(({ step }) => isHealthy(step));
    const learningRate = (current ?? this.#config.learning_rate) / 2;
    const to = checkpoint?.step ?? 0;
    this.#run.logger.warn(
      `${finding.id} after step ${finding.step}: back to ${checkpoint ? `checkpoint ${checkpoint.name}` : "the start"} with learning_rate=${learningRate} ` +
        `(rollback ${rollbacks + 1} of ${maxRollbacks})`,
    );
    await this.#run.journal.append({
      type: "rewound",
      to,
      reason: `on_error=rollback: ${finding.id} after step ${finding.step}; learning_rate=${learningRate} from here on`,
      rollback: { finding: finding.id, learningRate },
    });
  }

  /** Everything found so far by cause, with what is waiting to be written down. */
  #causes(isDue: (raised: Raised) => boolean): Cause<Due>[] {
    const all = new Map<string, Due>();
    for (const one of this.#written.all) all.set(one.finding.id, { ...one, isNew: false });
    for (const one of this.#pending.filter(isDue))
      all.set(one.finding.id, { ...one, since: all.get(one.finding.id)?.since ?? one.step, isNew: true });
    return causesOf([...all.values()]);
  }

  /** What on_error makes of a finding: of a symptom nothing, unless its cause is too mild to be acted on. */
  #actionFor(finding: Finding, { root }: Cause<Due>): Action {
    const { on_error: policy } = this.#config;
    if (finding.level !== "error" || policy === "warn") return "none";
    if (finding !== root.finding && root.finding.level === "error") return "none";
    if (policy !== "rollback") return policy;
    if (!isCurable(finding.id)) return "none";
    return this.#controlState.rollbacks < maxRollbacks ? "rollback" : "stop";
  }

  /** Says and writes down what is new, a cause before its symptoms. */
  async #write(causes: readonly Cause<Due>[], acting?: { due: Due; action: Action }): Promise<void> {
    const { logger, journal } = this.#run;
    for (const { root, symptoms } of causes)
      for (const due of [root, ...symptoms].filter(({ isNew }) => isNew)) {
        const { step, since, finding } = due;
        if (due !== root) {
          const line = `${finding.id}: ${finding.message} (because of ${root.finding.id})`;
          // What has grown worse since it was said is in the journal.
          if (step === since) logger.info(line);
          else logger.detail(line);
        } else if (finding.level === "error") logger.error(sayFinding(finding));
        else if (finding.level === "warning") logger.warn(sayFinding(finding));
        else logger.info(sayFinding(finding));
        await journal.append({ type: "finding", step, finding, action: due === acting?.due ? acting.action : "none" });
      }
  }
}

const isSaid = (finding: Finding, said: Finding) =>
  finding.id === said.id && findingLevels.indexOf(finding.level) <= findingLevels.indexOf(said.level);

const stopped = (step: number, { id, message, remedy }: Finding) =>
  new TrainError(
    "rl/diagnosed",
    `Training was stopped after step ${step}: ${message} (${id}). Everything is saved. What to do: ${remedy}. ${whet} diagnose has the whole story.`,
  );

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
