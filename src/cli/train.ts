// `./whet train`: builds the parts, checks them before anything is billed, trains, and reports.

import { createInterface } from "node:readline/promises";
import { whet } from "../core/program.ts";
import { describeSummary } from "../data/index.ts";
import { questionTemplateHash } from "../data/question.ts";
import { completionsPerPrompt, type TrainConfig } from "../rl/config.ts";
import { checkIdentity, configHash } from "../rl/resume.ts";
import { evaluationTasks, idsHash, loadProblems, taskSource } from "../rl/tasks.ts";
import { type TrainOutcome, train } from "../rl/train.ts";
import { readCheckpoints } from "../runs/checkpoints.ts";
import { defaultRunPath, openRunDirectory, readRunConfig } from "../runs/directory.ts";
import { Display } from "../runs/display.ts";
import { redact } from "../runs/log.ts";
import { Run } from "../runs/run.ts";
import type { MetricsSink } from "../runs/sinks.ts";
import { TensorBoardSink } from "../runs/tensorboard.ts";
import { WandbSink } from "../runs/wandb.ts";
import type { Command } from "./command.ts";
import {
  checkModel,
  connectEngine,
  type EngineKind,
  engineFiles,
  engineKind,
  openGrader,
  openRenderer,
  presetFor,
} from "./connect.ts";
import { interruptible } from "./interrupt.ts";
import { Progress } from "./progress.ts";
import { parseTrainArguments, resolveConfig, trainOptionsHelp } from "./train-config.ts";
import { TrainDisplay } from "./train-display.ts";
import { report } from "./train-report.ts";

export const command: Command = {
  help: () =>
    [
      `Usage: ${whet} train [key=value …]`,
      "",
      "Trains a LoRA adapter by reinforcement learning on programming problems. Without a key and a server: the embedded engine, the bundled",
      "model and problems, and the embedded jail. The same command with the same log_path resumes. Defaults shown are those of preset=deepcoder.",
      "",
      trainOptionsHelp(),
    ].join("\n"),

  async run(args) {
    const parsed = parseTrainArguments(args);
    const kind = engineKind(parsed.given.base_url ?? "");
    const { config, warnings } = resolveConfig(parsed, parsed.preset ?? (await presetFor(parsed.given.base_url)));
    const path = config.log_path || defaultRunPath(new Date());
    const opened = await openRunDirectory(
      path,
      config.behavior_if_log_dir_exists,
      process.stdin.isTTY ? ask : undefined,
    );
    if (opened === "exit") return 0;
    const run = new Run(path, new Display(process.stderr));
    try {
      for (const notice of [...parsed.notices, ...warnings]) run.logger.warn(notice);
      return await interruptible((signal) => trainInto(run, config, kind, signal));
    } finally {
      await run.close();
    }
  },
};

async function ask(question: string): Promise<"resume" | "delete" | "exit"> {
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  try {
    for (;;) {
      const answer = (await terminal.question(`${question} `)).trim().toLowerCase();
      if (answer === "resume" || answer === "delete" || answer === "exit") return answer;
    }
  } finally {
    terminal.close();
  }
}

async function trainInto(run: Run, config: TrainConfig, kind: EngineKind, signal: AbortSignal): Promise<number> {
  const started = performance.now();
  const { logger } = run;
  logger.detail(`${whet} train ${process.argv.slice(3).join(" ")}`);
  const last = readCheckpoints(run.path).at(-1);
  if (last?.final && config.max_steps >= 0 && last.step >= config.max_steps) {
    logger.info(`this run is finished (${last.step} steps). Set max_steps higher to go on with it.`);
    report(run, 0);
    return 0;
  }

  // Everything that can be wrong is found here, before the first billed call.
  const recorded = readRunConfig(run.path);
  const grading = await openGrader(config);
  try {
    logger.info(`sandbox  ${grading.description.summary}`);
    for (const lack of grading.description.lacks) logger.warn(`this sandbox level lacks: ${lack}`);
    await grading.check(signal);
    const engine = await connectEngine(config, { ...engineFiles(run.path), logger });
    try {
      logger.info(`engine   ${engine.description}`);
      const window = checkModel(engine, config.model_name);
      if (window !== undefined && window < config.context_window) config = { ...config, context_window: window };
      const renderer = await openRenderer(config, logger, signal);
      config = { ...config, renderer_name: renderer.name };
      const { problems, tests } = await loadData(run, config, renderer, signal);
      const testTasks = tests ? evaluationTasks(tests, config, renderer) : [];

      const record = {
        ...config,
        base_url: redact(config.base_url),
        sandbox_url: redact(config.sandbox_url),
        completions_per_prompt: completionsPerPrompt(config),
        engine: kind,
        sandbox: grading.description.kind,
        data_fingerprint: problems.fingerprint,
        test_fingerprint: tests?.fingerprint ?? null,
        eval_problems: testTasks.length,
        eval_ids_hash: idsHash(testTasks),
        prompt_template: questionTemplateHash(),
        wandb_run_id: recorded?.["wandb_run_id"] ?? crypto.randomUUID().slice(0, 8),
        started_at: recorded?.["started_at"] ?? new Date().toISOString(),
      };
      if (recorded)
        for (const change of checkIdentity(recorded, record, config.force_resume))
          logger.warn(`resuming although ${change}`);
      run.writeConfig(record);
      showConfig(run, record);
      run.attach(await openSinks(run, config, record));

      const outcome = await train(config, {
        service: engine.service,
        run,
        renderer,
        grader: grading.grader,
        checkGrader: () => grading.check(signal),
        trainTasks: taskSource(problems, config, renderer),
        testTasks,
        // The hosted service does not say what one seed means for several samples of a request.
        fixedSeeds: kind !== "hosted",
        configHash: configHash(record),
        userMetadata: { renderer_name: renderer.name, log_path: run.path },
        signal,
        events: new TrainDisplay(run.display, logger, config.max_steps),
      });
      return finish(run, outcome, (performance.now() - started) / 1000);
    } finally {
      await engine.close();
    }
  } finally {
    await grading.close();
  }
}

async function loadData(
  run: Run,
  config: TrainConfig,
  renderer: Parameters<typeof loadProblems>[2]["renderer"],
  signal: AbortSignal,
) {
  const progress = new Progress({ label: "data" });
  const options = {
    renderer,
    signal,
    onProgress: (
      split: string,
      update: { stage: string; rows?: number; receivedBytes?: number; totalBytes?: number },
    ) => {
      if (update.stage === "read") progress.update(update.rows ?? 0, { note: `rows of ${split}` });
      else
        progress.update(Math.round((update.receivedBytes ?? 0) / 1e6), {
          fraction: (update.receivedBytes ?? 0) / (update.totalBytes || 1),
          note: "MB downloaded",
        });
    },
  };
  try {
    const problems = await loadProblems(config, "train", options);
    const tests = config.eval_every > 0 ? await loadProblems(config, "test", options) : undefined;
    progress.end();
    run.logger.info(`train    ${describeSummary(problems.summary)}`);
    if (tests) run.logger.info(`test     ${describeSummary(tests.summary)}`);
    return { problems, tests };
  } finally {
    progress.end();
  }
}

function showConfig(run: Run, record: Readonly<Record<string, unknown>>): void {
  const pairs = Object.entries(record).map(
    ([key, value]) => `${key}=${typeof value === "string" ? value : JSON.stringify(value)}`,
  );
  run.logger.detail(`config ${pairs.join(" ")}`);
  const shown = [
    "model_name",
    "preset",
    "batch_size",
    "group_size",
    "completions_per_prompt",
    "learning_rate",
    "lora_rank",
    "max_tokens",
    "temperature",
  ];
  const more = [
    "format_coef",
    "reward_timeout",
    "save_every",
    "eval_every",
    "max_steps",
    "loss_fn",
    "advantage",
    "seed",
  ];
  for (const keys of [shown, more])
    run.logger.info(`config   ${keys.map((key) => `${key}=${String(record[key])}`).join(" ")}`);
  run.logger.info(`run      ${run.path}`);
}

async function openSinks(
  run: Run,
  config: TrainConfig,
  record: Readonly<Record<string, unknown>>,
): Promise<MetricsSink[]> {
  const sinks: MetricsSink[] = [];
  if (config.tensorboard) sinks.push(new TensorBoardSink(run.path));
  const apiKey = process.env["WANDB_API_KEY"];
  if (config.wandb_project !== "" && !apiKey)
    run.logger.warn("wandb_project is set but WANDB_API_KEY is not; Weights & Biases is left out");
  if (config.wandb_project !== "" && apiKey) {
    const baseUrl = process.env["WANDB_BASE_URL"];
    try {
      const sink = await WandbSink.start({
        apiKey,
        project: config.wandb_project,
        name: config.wandb_name || (run.path.split("/").at(-1) ?? run.path),
        runId: String(record["wandb_run_id"]),
        config: record,
        ...(baseUrl ? { baseUrl } : {}),
      });
      run.logger.info(`wandb    ${sink.url}`);
      sinks.push(sink);
    } catch (error) {
      run.logger.warn(`Weights & Biases is left out: ${(error as Error).message}`);
    }
  }
  return sinks;
}

function finish(run: Run, outcome: TrainOutcome, seconds: number): number {
  run.display.end();
  if (outcome.interrupted) {
    run.logger.info(
      `interrupted after ${outcome.step} steps; everything is saved. To go on: ${whet} train log_path=${run.path} … with the same keys`,
    );
    return 130;
  }
  report(run, seconds);
  return 0;
}
