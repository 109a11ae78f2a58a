// Takes what people ask of the run (runs/controls.ts) and does it: between two steps, also while the next batch is still being sampled,
// because until its update is submitted the policy is that step's. A request is in the journal before it is acted on, with the step from
// which it holds; so a resumed run repeats it, whatever the lag.
import { whet } from "../core/program.ts";
import { shellCommand } from "../core/shell.ts";
import { nextTurn } from "../core/turns.ts";
import { ControlInbox, type ControlRequest, describeControl } from "../runs/controls.ts";
import type { NewEvent } from "../runs/events.ts";
import type { Logger } from "../runs/log.ts";
import type { Run } from "../runs/run.ts";
import type { ControlState } from "./control-state.ts";
import type { Position } from "./recovery.ts";

/** How often a waiting run looks for requests. */
const lookEveryMs = 200;

export interface ControlsOptions {
  run: Pick<Run, "path" | "openedAt"> & { logger: Logger };
  controlState: ControlState;
  /** The config's; a control changes it. */
  learningRate: number;
  /** The first step that was never submitted: earlier ones are repeated as they were, and what is asked waits for this one. */
  frontier: number;
  record(event: NewEvent): Promise<void>;
  save(position: Position): void;
  /** False where there is nothing to evaluate on. */
  evaluate(version: number): Promise<boolean>;
  stop(): void;
  /** Called when the run begins to wait, and when it goes on. */
  onPause(step: number, paused: boolean): void;
  drain: AbortSignal;
  cancel: AbortSignal;
}

export class Controls {
  readonly #options: ControlsOptions;
  readonly #inbox: ControlInbox;
  /** The pause was reported. */
  #reportedPause = false;

  constructor(options: ControlsOptions) {
    const { path, logger } = options.run;
    this.#options = options;
    this.#inbox = new ControlInbox(path, (message) => logger.warn(message));
  }

  /** The learning rate of the next update that was never submitted. */
  get learningRate(): number {
    return this.#options.controlState.learningRate ?? this.#options.learningRate;
  }

  /** Gives on the batches, and between them does what was asked. Holds them back while the run is paused; ends when it is drained. */
  async *apply<Batch>(
    batches: AsyncIterator<Batch, void, undefined>,
    positionNow: () => Position,
  ): AsyncGenerator<Batch, void, undefined> {
    const { controlState, drain } = this.#options;
    for (;;) {
      const position = positionNow();
      // Asked of an earlier process, which did not live to see it done.
      if (controlState.saves.delete(position.step)) this.#options.save(position);
      const next = batches.next();
      await this.#attend(next, position);
      if (drain.aborted) return;
      const result = await next;
      if (result.done) return;
      yield result.value;
    }
  }

  /** Holds the next update back; `by` was written down already. */
  hold(by: string): void {
    this.#options.controlState.pausedBy = by;
  }

  /** Does what is asked until the batch is there and nothing holds it back. */
  async #attend(next: Promise<IteratorResult<unknown, void>>, position: Position): Promise<void> {
    const { controlState, frontier, drain, cancel } = this.#options;
    const open = position.step >= frontier;
    const batch = { here: false, over: false };
    const arrived = next.then(
      ({ done = false }) => Object.assign(batch, { here: true, over: done }),
      () => Object.assign(batch, { over: true }),
    );
    // The end, or a failure, that is known already: nothing is left to hold back.
    await nextTurn();
    for (;;) {
      if (batch.over) return;
      for (const request of this.#inbox.waiting())
        if (open || request.control.kind === "stop") await this.#take(request, position);
      const held = open && controlState.pausedBy !== undefined && !drain.aborted && !cancel.aborted;
      if (held && !this.#reportedPause) this.#sayPaused(position.step);
      if (batch.here && !held) return;
      await anyOf(batch.here ? [] : [arrived], [drain, cancel]);
    }
  }

  async #take(request: ControlRequest, position: Position): Promise<void> {
    const { controlState, record, run } = this.#options;
    const { logger } = run;
    const { id, by, control, askedAt } = request;
    if (controlState.taken.has(id)) return this.#inbox.remove(request);
    // It was meant for an earlier process.
    if (control.kind === "stop" && askedAt < run.openedAt) {
      logger.info("a request to stop from before this start is dropped");
      return this.#inbox.remove(request);
    }
    const event = { type: "control", step: position.step, id, by, control } as const;
    await record(event);
    this.#inbox.remove(request);
    const wasPaused = controlState.pausedBy !== undefined;
    controlState.take({ ...event, at: Date.now() });
    logger.info(`step ${position.step}: ${describeControl(control)}, asked by ${by}`);
    switch (control.kind) {
      case "go-on":
        if (wasPaused) this.#options.onPause(position.step, false);
        this.#reportedPause = false;
        break;
      case "save":
        controlState.saves.delete(position.step);
        this.#options.save(position);
        break;
      case "evaluate":
        if (!(await this.#options.evaluate(position.step)))
          logger.warn(
            "there is nothing to evaluate on: this run was started with eval_every=0 or without test problems",
          );
        break;
      case "stop":
        this.#options.stop();
        break;
    }
  }

  #sayPaused(step: number): void {
    const { controlState, onPause, run } = this.#options;
    this.#reportedPause = true;
    onPause(step, true);
    run.logger.warn(
      `paused before the update of step ${step} (asked by ${controlState.pausedBy}). To go on: ${shellCommand(`${whet} control`, `run=${run.path}`, "go-on")}`,
    );
  }
}

/** Resolves when one of the promises has, a signal is aborted, or it is time to look again. */
async function anyOf(promises: readonly Promise<unknown>[], signals: readonly AbortSignal[]): Promise<void> {
  let wake: () => void = () => {};
  const woken = new Promise<void>((resolve) => (wake = resolve));
  const timer = setTimeout(wake, lookEveryMs);
  for (const signal of signals) signal.addEventListener("abort", wake, { once: true });
  await Promise.race([woken, ...promises]);
  clearTimeout(timer);
  for (const signal of signals) signal.removeEventListener("abort", wake);
}
