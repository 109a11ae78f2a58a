// What people and the diagnosis have asked of a run so far, folded from its journal: a resumed run goes on as it was asked to.
import type { RunEvent } from "../runs/events.ts";
import { undoVersions } from "../runs/rewinds.ts";

export class ControlState {
  /** Who paused the run; undefined while it is not paused. Only going on ends a pause, not another start. */
  pausedBy: string | undefined;
  /** What a control or a rollback set; undefined: what the config says. A later change of the config wins. */
  learningRate: number | undefined;
  /** Requests that were written down: one whose file is still there was acted on. */
  readonly taken = new Set<string>();
  /** Steps at which a save was asked for and is not confirmed. */
  readonly saves = new Set<number>();
  /** Versions whose evaluation was asked for. */
  readonly evaluations = new Set<number>();
  /** How often on_error=rollback went back. */
  rollbacks = 0;
  /** A finding that called for a rollback which was not begun. */
  unansweredFinding: { id: string; step: number; firstStep: number } | undefined;

  take(event: RunEvent): void {
    switch (event.type) {
      case "control":
        this.taken.add(event.id);
        if (event.control.kind === "pause") this.pausedBy = event.by;
        else if (event.control.kind === "go-on") this.pausedBy = undefined;
        else if (event.control.kind === "learning-rate") this.learningRate = event.control.value;
        else if (event.control.kind === "save") this.saves.add(event.step);
        else if (event.control.kind === "evaluate") this.evaluations.add(event.step);
        break;
      case "finding":
        if (event.action === "pause") this.pausedBy = `on_error, ${event.finding.id}`;
        if (event.action === "rollback")
          this.unansweredFinding = {
            id: event.finding.id,
            step: event.step,
            firstStep: event.finding.steps?.[0] ?? event.step,
          };
        break;
      case "rewound":
        undoVersions(event.to, this.saves, this.evaluations);
        if (event.rollback) {
          this.rollbacks++;
          this.learningRate = event.rollback.learningRate;
        }
        this.unansweredFinding = undefined;
        break;
      case "started":
        if (event.changes.some(({ key }) => key === "learning_rate")) this.learningRate = undefined;
        break;
      case "saved":
        this.saves.delete(event.record.step);
        break;
    }
  }
}
