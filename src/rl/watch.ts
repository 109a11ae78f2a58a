// Names a stage that makes no progress: after `stage_deadline` a warning, after twice that an error, so that a run ends rather than
// hangs. A stage that works through many pieces makes progress with each.

import { entryOf } from "../core/maps.ts";
import { whet } from "../core/program.ts";
import type { Logger } from "../runs/log.ts";
import { linkedController } from "./cancellation.ts";
import { TrainError } from "./resume.ts";
import type { RollOut } from "./rollout.ts";

interface Stage {
  open: number;
  /** Milliseconds since the epoch. */
  lastProgress: number;
  warned: boolean;
}

export class Watch {
  readonly #deadlineMs: number;
  readonly #logger: Logger;
  readonly #controller: ReturnType<typeof linkedController>;
  readonly #stages = new Map<string, Stage>();
  readonly #timer: NodeJS.Timeout;

  /** Aborts its own signal, which follows `cancel`, when a stage is stuck. A deadline of 0 watches nothing. */
  constructor(deadlineMs: number, logger: Logger, cancel: AbortSignal) {
    this.#deadlineMs = deadlineMs;
    this.#logger = logger;
    this.#controller = linkedController(cancel);
    const intervalMs = Math.min(10_000, Math.max(20, deadlineMs / 10));
    this.#timer = setInterval(() => this.#check(), intervalMs);
    this.#timer.unref();
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Watches one piece of work. */
  async stage<T>(name: string, work: () => Promise<T>): Promise<T> {
    const stage = entryOf(this.#stages, name, () => ({ open: 0, lastProgress: 0, warned: false }));
    if (stage.open++ === 0) stage.lastProgress = Date.now();
    try {
      return await work();
    } finally {
      stage.open--;
      stage.lastProgress = Date.now();
      stage.warned = false;
    }
  }

  /** Watches groups: the stage makes progress whenever one is done. */
  progress(name: string, rollOut: RollOut): RollOut {
    return (...call) => this.stage(name, () => rollOut(...call));
  }

  close(): void {
    clearInterval(this.#timer);
    this.#controller.unlink();
  }

  #check(): void {
    if (this.#deadlineMs <= 0) return;
    for (const [name, stage] of this.#stages) {
      const quietMs = Date.now() - stage.lastProgress;
      if (stage.open === 0 || quietMs < this.#deadlineMs) continue;
      const since = new Date(stage.lastProgress).toISOString();
      const what = `no progress in ${name} since ${since}: ${stage.open} ${stage.open === 1 ? "piece" : "pieces"} of work under way`;
      if (!stage.warned) {
        stage.warned = true;
        this.#logger.warn(`${what} (stage_deadline=${this.#deadlineMs / 1000} s)`);
      } else if (quietMs >= 2 * this.#deadlineMs) {
        this.#controller.abort(
          new TrainError(
            "rl/stuck",
            `There was ${what}, twice stage_deadline=${this.#deadlineMs / 1000}. The server, the sandbox or a function of your own does not ` +
              `answer: check it (${whet} doctor checks the first two), then resume the run; it goes on where this one ended.`,
          ),
        );
      }
    }
  }
}
