// What `./whet train` shows while it runs: one line per step, and on a terminal a live line with stage, progress and time left.
import type { Evaluation } from "../rl/evaluate.ts";
import type { TrainEvents } from "../rl/train.ts";
import { bar, clock, type Display } from "../runs/display.ts";
import type { Logger } from "../runs/log.ts";

export class TrainDisplay implements TrainEvents {
  readonly #display: Display;
  readonly #logger: Logger;
  readonly #maxSteps: number;
  readonly #started = performance.now();
  #firstStep: number | undefined;
  #step = 0;
  #stage = "";
  #progress = "";
  #reward = "";

  constructor(display: Display, logger: Logger, maxSteps: number) {
    this.#display = display;
    this.#logger = logger;
    this.#maxSteps = maxSteps;
  }

  stage(step: number, stage: string): void {
    this.#firstStep ??= step;
    this.#step = step;
    this.#stage = stage;
    this.#progress = "";
    this.#draw();
  }

  progress(done: number, total: number): void {
    this.#progress = ` ${done}/${total}`;
    this.#draw();
  }

  stepDone(step: number, metrics: Readonly<Record<string, number>>): void {
    const show = (name: string, digits = 3) => (metrics[name] === undefined ? "–" : metrics[name].toFixed(digits));
    const taught = (metrics["groups_total"] ?? 0) - (metrics["groups_skipped"] ?? 0);
    this.#reward = `  reward ${show("mean_reward")}`;
    const columns = [
      `step ${String(step + 1).padStart(3)}`,
      `reward ${show("mean_reward").padStart(6)}`,
      `correct ${show("mean_correct")}`,
      `format ${show("format_rate")}`,
      `groups ${taught}/${metrics["groups_total"] ?? 0}`,
      `loss ${show("loss", 4).padStart(7)}`,
      `kl ${metrics["optim/kl_sample_train_v1"] === undefined ? "–" : metrics["optim/kl_sample_train_v1"].toExponential(1)}`,
      `${show("time/total", 1)} s`,
    ];
    this.#logger.info(columns.join("   "));
  }

  evaluated(step: number, evaluation: Evaluation): void {
    const { rate, low, high, problems } = evaluation.pass1;
    const percent = (value: number) => (100 * value).toFixed(1);
    const sources = Object.entries(evaluation.bySource);
    const parts =
      sources.length > 1 ? `   ${sources.map(([name, value]) => `${name} ${percent(value.rate)}%`).join("  ")}` : "";
    this.#logger.info(
      `eval after ${step} steps   Pass@1 ${percent(rate)}% [${percent(low)}, ${percent(high)}] on ${problems} problems${parts}`,
    );
  }

  saved(name: string): void {
    this.#logger.detail(`checkpoint ${name} saved`);
  }

  #draw(): void {
    const done = this.#step - (this.#firstStep ?? 0);
    const seconds = (performance.now() - this.#started) / 1000;
    const left =
      this.#maxSteps < 0 || done === 0 ? "" : `  ${clock((seconds / done) * (this.#maxSteps - this.#step))} left`;
    const share = this.#maxSteps < 0 ? "" : `${bar(this.#step, this.#maxSteps)} `;
    const total = this.#maxSteps < 0 ? "" : `/${this.#maxSteps}`;
    this.#display.status(
      `${share}step ${this.#step + 1}${total}  ${this.#stage}${this.#progress}${this.#reward}${left}`,
    );
  }
}
