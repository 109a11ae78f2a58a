// What `./whet train` shows while it runs: one line per step, and on a terminal a live line with what is in flight. Steps are numbered
// as in the files, from 0. Every line of a run has the same columns: within 80 characters unless the figures themselves are wider.
import { countOf, percent } from "../../core/count.ts";
import type { TrainConfig } from "../../rl/config.ts";
import type { Evaluation } from "../../rl/evaluate.ts";
import { dollars } from "../../rl/prices.ts";
import { completionsPerStep, type Sizes } from "../../rl/sizes.ts";
import type { TrainEvents } from "../../rl/train.ts";
import { bar, clock, type Display } from "../../runs/display.ts";
import type { RunEvent } from "../../runs/events.ts";
import type { Logger } from "../../runs/log.ts";
import { rateText } from "../../runs/rates.ts";

const width = 80;

/** A batch that is not trained on yet. */
interface InFlight {
  sampled: number;
  graded: number;
}

type DisplayConfig = Pick<TrainConfig, "max_steps" | "method" | keyof Sizes | "budget">;

export class TrainDisplay implements TrainEvents {
  readonly #display: Display;
  readonly #logger: Logger;
  readonly #config: DisplayConfig;
  readonly #started = performance.now();
  readonly #batches = new Map<number, InFlight>();
  #firstStep: number | undefined;
  #step = 0;
  #stage = "";
  #evaluating = new Map<number, number>();
  #bound = "";
  #cost = "";

  constructor(display: Display, logger: Logger, config: DisplayConfig) {
    this.#display = display;
    this.#logger = logger;
    this.#config = config;
  }

  stage(step: number, stage: string): void {
    this.#firstStep ??= step;
    this.#step = step;
    this.#stage = stage;
    this.#draw();
  }

  evaluated(step: number, evaluation: Evaluation): void {
    const { pass1 } = evaluation;
    if (!pass1) {
      this.#logger.warn(`evaluation after ${countOf(step, "step")}: nothing could be graded, so there is no Pass@1`);
      return;
    }
    this.#logger.info(
      `eval after ${countOf(step, "step")}  Pass@1 ${rateText(pass1)}  ${countOf(pass1.problems, "problem")}`,
    );
    const sources = Object.entries(evaluation.bySource);
    if (sources.length < 2) return;
    for (const [name, { rate, problems }] of sources)
      this.#logger.info(
        `  ${name.slice(0, 40).padEnd(40)} ${percent(rate).padStart(6)}  ${countOf(problems, "problem")}`,
      );
  }

  /** An event of the journal. */
  take(event: RunEvent): void {
    switch (event.type) {
      case "group-sampled":
      case "graded": {
        if (event.phase === "eval") {
          if (event.type === "graded") this.#evaluating.set(event.batch, (this.#evaluating.get(event.batch) ?? 0) + 1);
          break;
        }
        const batch = this.#batches.get(event.batch) ?? { sampled: 0, graded: 0 };
        batch[event.type === "graded" ? "graded" : "sampled"]++;
        this.#batches.set(event.batch, batch);
        break;
      }
      case "evaluated":
        this.#evaluating.delete(event.step);
        break;
      case "step-done":
        this.#batches.delete(event.step);
        this.#bound = `  ${Math.round(100 * (event.metrics["pipeline/bound_ratio"] ?? 1))}% of bound`;
        this.#cost = this.#costOf(event.metrics);
        this.#stepDone(event.step, event.metrics);
        break;
      default:
        return;
    }
    this.#draw();
  }

  #stepDone(step: number, metrics: Readonly<Record<string, number>>): void {
    const show = (name: string, digits: number) => {
      const value = metrics[name];
      return value === undefined ? "–" : Math.abs(value) < 1000 ? value.toFixed(digits) : value.toPrecision(4);
    };
    const percent = (name: string) =>
      metrics[name] === undefined ? "–" : `${(100 * metrics[name]).toFixed(0)}%`.padStart(3);
    const taught = (metrics["groups_total"] ?? 0) - (metrics["groups_skipped"] ?? 0);
    const lag = metrics["pipeline/lag"] ?? 0;
    const columns = [
      `step ${String(step).padStart(3)}`,
      ...(this.#config.method === "sft"
        ? [`learned ${taught}`]
        : [
            `reward ${show("mean_reward", 3)}`,
            `correct ${percent("mean_correct")}`,
            `format ${percent("format_rate")}`,
            `groups ${taught}/${metrics["groups_total"] ?? 0}`,
          ]),
      ...(this.#cost === "" ? [] : [this.#cost]),
      `loss ${show("loss", 4)}`,
      ...(lag > 0 ? [`lag ${lag}`] : []),
      `${show("time/total", 1)}s`,
    ];
    const line = columns.join("  ");
    this.#logger.info(line.length <= width ? line : columns.join(" "));
  }

  /** What the run has cost by now; nothing where it costs nothing or nobody knows. */
  #costOf(metrics: Readonly<Record<string, number>>): string {
    const total = metrics["cost/total"];
    if (total === undefined || total === 0) return "";
    return this.#config.budget === null ? dollars(total) : `${dollars(total)} of ${dollars(this.#config.budget)}`;
  }

  #draw(): void {
    if (!this.#display.live) return;
    const { max_steps: maxSteps, prompts_per_step: groups } = this.#config;
    const completions = completionsPerStep(this.#config);
    const done = this.#step - (this.#firstStep ?? 0);
    const seconds = (performance.now() - this.#started) / 1000;
    const left = maxSteps < 0 || done === 0 ? "" : `  ${clock((seconds / done) * (maxSteps - this.#step))} left`;
    const share = maxSteps < 0 ? "" : `${bar(this.#step, maxSteps, 8)} `;
    const total = maxSteps < 0 ? "" : `/${maxSteps}`;
    const inFlight = [...this.#batches.values()];
    const sum = (pick: (batch: InFlight) => number) => inFlight.reduce((all, batch) => all + pick(batch), 0);
    const flight =
      inFlight.length === 0
        ? ""
        : `  ${inFlight.length > 1 ? `${inFlight.length} batches ` : ""}${sum(({ sampled }) => sampled)}/${groups * inFlight.length} groups, ` +
          `${sum(({ graded }) => graded)}/${completions * inFlight.length} graded`;
    const evaluating = [...this.#evaluating].map(([step, count]) => `  eval ${step}: ${count}`).join("");
    this.#display.status(
      `${share}step ${this.#step}${total} ${this.#stage}${flight}${evaluating}${this.#bound}${this.#cost === "" ? "" : `  ${this.#cost}`}${left}`,
    );
  }
}
