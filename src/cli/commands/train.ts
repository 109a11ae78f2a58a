// `./whet train`: builds the parts, checks them before anything is billed, trains, and reports.

import { rmSync } from "node:fs";
import { resolve } from "node:path";
import { countOf } from "../../core/count.ts";
import { WhetstoneError } from "../../core/errors.ts";
import { scratchFolder } from "../../core/files.ts";
import { whet } from "../../core/program.ts";
import { shellCommand } from "../../core/shell.ts";
import { type DashboardBeside, dashboardBeside } from "../../dashboard/beside.ts";
import type { LoadProgress } from "../../data/index.ts";
import type { Renderer } from "../../renderers/index.ts";
import { beginRun, type RunFacts, runRecord } from "../../rl/begin-run.ts";
import { linkedController } from "../../rl/cancellation.ts";
import type { TrainConfig } from "../../rl/config.ts";
import { shownKeys } from "../../rl/config-roles.ts";
import { describeCost, describeForecast, type Forecast, forecastTokens } from "../../rl/forecast.ts";
import {
  describeTariff,
  dollars,
  type EngineName,
  noPrice,
  priceKeys,
  tariffForBudget,
  tariffOf,
} from "../../rl/prices.ts";
import { describeChange } from "../../rl/resume.ts";
import { type TrainOutcome, train } from "../../rl/train.ts";
import { defaultRunPath, openRunDirectory, readRunConfig, resumeCommand } from "../../runs/directory.ts";
import { Display } from "../../runs/display.ts";
import { outageReporter, patienceOf } from "../../runs/outages.ts";
import { Run } from "../../runs/run.ts";
import { startedFrom } from "../../runs/started-from.ts";
import { RunView } from "../../runs/view.ts";
import { recordedSettings } from "../arguments/run-settings.ts";
import { trainOptionsHelp } from "../arguments/shown-defaults.ts";
import { type ParsedTrainArguments, parseTrainArguments, TrainArguments } from "../arguments/train-config.ts";
import { isFinished, type Plan, planNew, planToGoOn } from "../arguments/train-plan.ts";
import { type Command, helpOf } from "../command.ts";
import { chargedAs, engineFiles } from "../parts/connect.ts";
import type { Work } from "../parts/work.ts";
import { Workbench } from "../parts/workbench.ts";
import { agreesToCost } from "../terminal/agree.ts";
import { askAboutRun } from "../terminal/ask.ts";
import { type Interrupts, interruptible } from "../terminal/interrupt.ts";
import { withProgress } from "../terminal/progress.ts";
import { TrainDisplay } from "../text/train-display.ts";
import { report } from "../text/train-report.ts";
import { borrowWeights } from "../weights/named-weights.ts";

const described = {
  usage: "train [key=value …] [@config.json]",
  about: [
    "Trains a LoRA adapter by reinforcement learning on programming problems. Without a key and a server: the embedded engine, the bundled",
    "model and problems, and the embedded jail. With the log_path of a run it goes on with that run, and keys that are not named are the",
    `run's (${whet} resume does the same). @config.json takes keys from a file.`,
  ],
};

export const command: Command = {
  keys: TrainArguments.shape,
  help: (args) => helpOf(described, trainOptionsHelp(args)),
  run: async (args) => startTraining(parseTrainArguments(args)),
};

/** Begins a run, or goes on with the one that is in `log_path`: with its settings, but for those that are given. */
export async function startTraining(parsed: ParsedTrainArguments): Promise<number> {
  const { log_path: given = "", behavior_if_log_dir_exists: behavior = "ask" } = parsed.given;
  const path = resolve(given || defaultRunPath(new Date()));
  const recorded = behavior === "delete" ? undefined : readRunConfig(path);
  let plan = recorded ? planToGoOn(parsed, path) : await planNew(parsed);
  if (parsed.dryRun) return dryRun(plan);
  const asked =
    recorded && process.stdin.isTTY ? askAboutRun(recorded, { ...plan.config, engine: plan.kind }) : undefined;
  const ask = async (question: string) => {
    const choice = await asked!(question);
    if (choice === "delete") plan = await planNew(parsed); // what is wrong with it is said before anything is deleted
    return choice;
  };
  const agree = (to: "new" | "resume") => {
    if (to === "new") return agreesToCost(plan, parsed.yes);
    const begun = { ...recordedSettings(path), isOver: () => isFinished(RunView.read(path), plan.config) };
    return agreesToCost(plan, parsed.yes, { ...begun, engine: String(recorded?.["engine"]) });
  };
  const directory = await openRunDirectory(path, behavior, asked && ask, agree);
  if (!directory) return 0;
  const { config, notices } = plan;
  const run = await Run.open(path, new Display(process.stderr), directory.release);
  for (const notice of notices) run.logger.warn(notice);
  const dashboard = config.dashboard ? dashboardBeside(run.path) : undefined;
  const work = (_: AbortSignal, interrupts: Interrupts) => trainInto(run, plan, interrupts, { dashboard });
  try {
    const code = await interruptible(work, { readerGone: "go on" });
    await run.close(code === 0 ? "finished" : "interrupted", code === budgetExitCode ? { reason: "budget" } : {});
    return code;
  } catch (error) {
    await run.close("failed", { error });
    if (error instanceof WhetstoneError && readRunConfig(path)) error.next = resumeCommand(path);
    throw error;
  } finally {
    await dashboard?.close();
  }
}

/** The exit code of a run that its budget ended. */
export const budgetExitCode = 3;

/** Everything that a run does before its first billed call, in a folder that is gone afterwards. */
async function dryRun(plan: Plan): Promise<number> {
  const folder = scratchFolder("dry-run");
  try {
    const run = await Run.open(folder, new Display(process.stderr), () => {});
    try {
      for (const notice of plan.notices) run.logger.warn(notice);
      return await interruptible((_, interrupts) => trainInto(run, plan, interrupts, { dry: true }));
    } finally {
      await run.close("interrupted");
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function trainInto(
  run: Run,
  { config, kind, weights }: Plan,
  interrupts: Interrupts,
  { dry = false, dashboard }: { dry?: boolean; dashboard?: DashboardBeside | undefined } = {},
): Promise<number> {
  const { logger } = run;
  logger.detail(`${whet} ${process.argv.slice(2).join(" ")}`);
  const view = RunView.read(run.path);
  if (isFinished(view, config)) {
    const more = resumeCommand(run.path, `max_steps=${2 * Math.max(1, view.newest!.step)}`);
    logger.info(`this run is finished (${countOf(view.newest!.step, "step")}). To go on with it:\n  ${more}`);
    report(run, view);
    return 0;
  }

  const tariff = tariffForBudget(config, chargedAs(config, process.env, kind));
  const { drain } = interrupts;
  const cancel = linkedController(interrupts.cancel);
  const outage = {
    patienceMs: patienceOf(config.outage_patience),
    onOutage: outageReporter(logger, run.display, ", then the run ends and can be resumed (outage_patience)"),
  };
  const files = engineFiles(run.path);
  const bench = new Workbench(config, {
    ...files,
    logger,
    signal: drain,
    kind,
    outage,
    onLost: (error) => cancel.abort(error),
  });
  try {
    // Everything that can be wrong is found here, before the first billed call: wrong names first, the slow trial of the sandbox last.
    await bench.environment();
    borrowWeights(weights, config.log_path || run.path, {
      kind,
      stateDir: files.stateDir,
      begun: view.newest !== undefined,
    });
    const engine = await bench.engine();
    logger.info(`engine   ${engine.description}`);
    const start = startedFrom({ from: config.from, weights });
    if (start !== undefined && !view.newest) logger.info(`from     ${start}`);
    bench.model(engine);
    const frozenSamplers = dry || (await bench.samplers(engine, run.path));
    const { renderer, made } = await bench.renderer(dry ? undefined : { engine, path: run.path });
    const work = await loadWork(run, bench, renderer);
    const code = bench.code(outage);
    const grading = await bench.programs(work, code);
    const description = grading?.sandbox.description;
    if (grading && description) {
      logger.info(`sandbox  ${description.summary}`);
      for (const lack of description.lacks) logger.warn(`this sandbox level lacks: ${lack}`);
      await grading.check(drain);
    }
    const resolved = bench.config;

    const facts = {
      renderer,
      engine: kind,
      tariff,
      sandbox: description?.kind ?? "own reward",
      maxTurns: work.maxTurns,
      train: { fingerprint: work.fingerprints.train, size: work.train.size },
      test: work.fingerprints.test === undefined ? undefined : { fingerprint: work.fingerprints.test },
      testTasks: work.test,
      more: {
        ...work.facts,
        ...(Object.keys(weights).length > 0 ? { weights } : {}),
        ...(frozenSamplers ? {} : { frozen_samplers: false }),
      },
    };
    if (dry) {
      const sampled = await work.train.batch(0, Math.min(64, work.train.size));
      return sayReady(run, resolved, facts, forecastTokens(resolved, sampled, work.test, work.maxTurns));
    }
    const begun = await beginRun(run, resolved, facts);
    showConfig(run, begun.record);
    const missing = priceKeys.filter((key) => resolved[key] === null);
    logger.info(`cost     ${tariff ? describeTariff(tariff) : noPrice(resolved.model_name, missing)}`);
    void dashboard?.ready.then((link) => showLink(run, link));
    const display = new TrainDisplay(run.display, logger, resolved);
    run.journal.listen((event) => display.take(event));

    const outcome = await train(resolved, {
      run,
      begun,
      // The hosted service does not say what one seed means for several samples of a request.
      server: { service: engine.service, made, fixedSeeds: kind !== "hosted", frozenSamplers },
      rollOuts: work.rollOuts(renderer, resolved, code),
      grading: { by: grading ? "tests" : "environment", check: async () => grading?.check(drain) },
      tasks: { train: work.train, test: work.test },
      signals: { drain, cancel: cancel.signal },
      events: display,
    });
    return finish(run, outcome);
  } catch (error) {
    // The error says that a wait was cut short; the reason is the signal's.
    throw cancel.signal.aborted ? cancel.signal.reason : error;
  } finally {
    await bench.close();
    cancel.unlink();
  }
}

/** The end of a dry run: the settings, and what the command would do. */
function sayReady(run: Run, config: TrainConfig, facts: RunFacts & { engine: EngineName }, forecast: Forecast): number {
  const path = config.behavior_if_log_dir_exists === "delete" ? "" : config.log_path;
  const { record, changes } = runRecord(path || run.path, config, facts);
  showConfig(run, record, config.log_path || "a new folder in ~/code-rl-logs");
  for (const change of changes) run.logger.warn(`another setting: ${describeChange(change)}`);
  if (path !== "" && readRunConfig(path)) {
    const view = RunView.read(path);
    const steps = countOf(view.newest?.step ?? 0, "step");
    const what = isFinished(view, config) ? "nothing is left to train" : "this command goes on with it";
    run.logger.info(`${path} holds a run with a checkpoint after ${steps}: ${what}`);
  }
  for (const line of describeForecast(forecast)) run.logger.info(`forecast ${line}`);
  const { tariff, missing } = tariffOf(config, facts.engine);
  run.logger.info(`forecast ${tariff ? describeCost(forecast, tariff) : noPrice(config.model_name, missing)}`);
  run.logger.info("dry run: everything is ready, nothing was billed, nothing is kept");
  return 0;
}

async function loadWork(run: Run, bench: Workbench, renderer: Renderer): Promise<Work> {
  const splits = bench.config.eval_every > 0 ? (["train", "test"] as const) : (["train"] as const);
  const work = await withProgress({ label: "data" }, (progress) => {
    const onProgress = (split: string, update: LoadProgress) => {
      if (update.stage === "read") return progress.update(update.rows, { note: `rows of ${split}` });
      const { receivedBytes, totalBytes } = update;
      const fraction = receivedBytes / (totalBytes || 1);
      progress.update(Math.round(receivedBytes / 1e6), { fraction, note: "MB downloaded" });
    };
    return bench.work(renderer, { splits, onProgress });
  });
  const { train, test, warning } = work.summary;
  run.logger.info(`train    ${train}`);
  if (test !== undefined) run.logger.info(`test     ${test}`);
  if (warning) run.logger.warn(warning);
  return work;
}

function showConfig(run: Run, record: Readonly<Record<string, unknown>>, path = run.path): void {
  const pairs = Object.entries(record).map(
    ([key, value]) => `${key}=${typeof value === "string" ? value : JSON.stringify(value)}`,
  );
  run.logger.detail(`config ${pairs.join(" ")}`);
  const isOff = (value: unknown) => value === false || value === "";
  const shown = shownKeys("start").flatMap((key) => (isOff(record[key]) ? [] : [`${key}=${String(record[key])}`]));
  for (let first = 0; first < shown.length; first += 8)
    run.logger.info(`config   ${shown.slice(first, first + 8).join(" ")}`);
  run.logger.info(`run      ${path}`);
}

/** Whoever has the link controls the run, so it is shown and not written down. */
function showLink(run: Run, link: Awaited<DashboardBeside["ready"]>): void {
  if ("url" in link) run.display.line(`dashboard  ${link.url}`);
  else
    run.logger.warn(
      `no dashboard: ${link.error}. Training goes on without; ${shellCommand(`${whet} dashboard`, run.path)} shows the run.`,
    );
}

function finish(run: Run, outcome: TrainOutcome): number {
  run.display.end();
  if (outcome.interrupted) {
    run.logger.info(`interrupted after ${countOf(outcome.step, "step")}; everything is saved. To go on:`);
    run.logger.info(`  ${resumeCommand(run.path)}`);
    return 130;
  }
  report(run, RunView.read(run.path));
  if (!outcome.refusal) return 0;
  const { limit, spent, next } = outcome.refusal;
  run.logger.info(
    `stopped by budget=${limit} after ${countOf(outcome.step, "step")}: ${dollars(spent)} were spent, and what comes next may cost up to ` +
      `${dollars(next)}; everything is saved. To go on with a larger one:`,
  );
  run.logger.info(`  ${resumeCommand(run.path, `budget=${2 * limit}`)}`);
  return budgetExitCode;
}
