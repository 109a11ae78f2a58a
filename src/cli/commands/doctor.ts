// `./whet doctor`: everything a training run needs, checked one by one before it costs anything. Each line says what was found and,
// where something is wrong, what to do.

import { rmSync } from "node:fs";
import { countOf, thousands } from "../../core/count.ts";
import { messageOf } from "../../core/errors.ts";
import { scratchFolder } from "../../core/files.ts";
import { languageNames, languageOf, toolsOf } from "../../core/languages/languages.ts";
import { whet } from "../../core/program.ts";
import { shellCommand } from "../../core/shell.ts";
import { presetConfigFor, type TrainConfig } from "../../rl/config.ts";
import { evaluationsOf, forecastTokens } from "../../rl/forecast.ts";
import { declaredFrozen, notFrozen, probeFrozen } from "../../rl/frozen-samplers.ts";
import { measureStep } from "../../rl/measure-step.ts";
import { forecastRun, type Measured, measuredIn } from "../../rl/measured-forecast.ts";
import { dollars, noPrice, tariffOf } from "../../rl/prices.ts";
import { type ProbedSample, probeSample, probeTraining } from "../../rl/probe.ts";
import { completionsPerStep } from "../../rl/sizes.ts";
import { clock } from "../../runs/display.ts";
import { redact } from "../../runs/log.ts";
import { readJournal } from "../../runs/read-journal.ts";
import { recordedSettings } from "../arguments/run-settings.ts";
import { trainOptionsHelp } from "../arguments/shown-defaults.ts";
import { parseArgumentsOfRun, resolveConfig, TrainArguments } from "../arguments/train-config.ts";
import { type Command, helpOf } from "../command.ts";
import { chargedAs, type EngineConnection, engineFiles, presetFor } from "../parts/connect.ts";
import type { GraderConnection } from "../parts/grader.ts";
import { Workbench } from "../parts/workbench.ts";
import { interruptible } from "../terminal/interrupt.ts";
import { silentLogger } from "../terminal/loggers.ts";
import { findRun, runKey } from "../weights/find-run.ts";

const described = {
  usage: "doctor [RUN] [key=value …]",
  about: [
    `Checks the engine, the model, the renderer, one sample, one training pass, the sandbox and the data, and forecasts the run's tokens, time and cost. Takes the keys of ${whet} train.`,
    "With a run it forecasts from a recorded run, with its settings. Without it the embedded engine does one batch for real; a hosted service is not billed for that.",
    "Makes a fresh adapter, samples from it and trains on the sample without a step; on a hosted service a few hundred tokens are billed.",
  ],
};

export const command: Command = {
  keys: { run: runKey, ...TrainArguments.shape },
  help: (args) =>
    helpOf(
      described,
      "  run=  a run to forecast from, with its settings: its name, its path or latest",
      trainOptionsHelp(args, (named) => (named === "" ? undefined : findRun(named))),
    ),
  async run(args) {
    const parsed = parseArgumentsOfRun(args, `${whet} doctor`);
    const run = parsed.run === "" ? undefined : findRun(parsed.run);
    // A server that cannot be asked is reported by the check of the engine.
    const preset = () => presetFor(parsed.given).catch(() => "deepcoder" as const);
    const base =
      run === undefined ? await presetConfigFor(parsed.preset, preset) : recordedSettings(run, parsed.given).config;
    const { config, warnings } = resolveConfig(parsed, base);
    for (const warning of warnings) console.log(`note      ${warning}`);
    const words = parsed.run === "" ? args : args.filter((word) => word !== parsed.run && !word.startsWith("run="));
    const ready = redact(shellCommand(`${whet} train`, ...words));
    return interruptible((signal) => examine(config, { run, ready }, signal));
  },
};

/** What this machine has to run programs with, and how to get the rest. */
async function languagesHere(): Promise<{ value: undefined; found: string }> {
  const rows = languageNames.map(async (name) => {
    const { title, runtime } = languageOf(name);
    if (!runtime) return title;
    const tools = await toolsOf(name);
    if (typeof tools === "string") return `${title}: no ${tools} (${runtime.install})`;
    const { version, check } = tools;
    if (check === undefined) return `${title}: ${version}`;
    return `${title}: ${version}, typecheck=true with ${typeof check === "string" ? `no ${check}` : check.version}`;
  });
  return { value: undefined, found: (await Promise.all(rows)).join("; ") };
}

/** `ready`: the command that trains what was examined. */
async function examine(
  config: TrainConfig,
  { run, ready }: { run: string | undefined; ready: string },
  signal: AbortSignal,
): Promise<number> {
  const folder = scratchFolder("doctor");
  const bench = new Workbench(config, { ...engineFiles(folder), logger: silentLogger, signal });
  let failures = 0;
  /** Runs a check; what depends on a failed one is left out. */
  const check = async <T>(name: string, work: () => Promise<{ value: T; found: string }>): Promise<T | undefined> => {
    const started = performance.now();
    try {
      const { value, found } = await work();
      console.log(
        redact(`ok        ${name.padEnd(10)} ${found}  (${((performance.now() - started) / 1000).toFixed(1)} s)`),
      );
      return value;
    } catch (error) {
      failures++;
      console.log(redact(`problem   ${name.padEnd(10)} ${messageOf(error)}`));
      return undefined;
    }
  };
  const code = bench.code({ patienceMs: 10_000 });
  const checkSandbox = () =>
    check<GraderConnection>("sandbox", async () => {
      const { grading: value } = await code();
      const { summary, lacks } = value.sandbox.description;
      return { value, found: summary + (lacks.length > 0 ? `; lacks: ${lacks.join(", ")}` : "") };
    });
  try {
    const isOwn =
      config.env !== "" &&
      (await check("environment", async () => {
        const value = await bench.environment();
        return { value, found: config.env };
      }));
    if (isOwn === undefined) return verdict(failures, ready);
    // An environment of somebody's own may not grade programs at all; the sandbox opens when it does.
    const grading = isOwn ? undefined : await checkSandbox();
    if (grading) await check("languages", languagesHere);
    const gradeMs = grading && (await check("grader", () => timeGrader(grading, signal)));
    const engine = await check<EngineConnection>("engine", async () => {
      const value = await bench.engine();
      return {
        value,
        found: `${value.description}; offers ${value.models.map(({ name }) => name).join(", ") || "nothing by name"}`,
      };
    });
    const window =
      engine &&
      (await check("model", async () => {
        const value = bench.model(engine);
        return { value, found: `${config.model_name}, context window ${value}` };
      }));
    if (engine && window !== undefined && engine.kind !== "embedded")
      await check("samplers", async () => {
        const value = (await declaredFrozen(engine.service, signal)) ?? (await probeFrozen(engine, config, signal));
        const found = value
          ? "a policy stays what it is while training goes on"
          : `${notFrozen}; ${whet} train keeps to that`;
        return { value, found };
      });
    const opened = await check("renderer", async () => {
      const value = await bench.renderer(engine && window !== undefined ? { engine, path: folder } : undefined);
      const { renderer } = value;
      const text = "print('<|im_end|>')";
      const tokens = renderer.tokenizer.encode(text);
      if (renderer.tokenizer.decode(tokens) !== text)
        throw new Error("the tokenizer does not give back the text it was given. Check tokenizer=.");
      return {
        value,
        found: `${renderer.name} on ${renderer.tokenizer.name}; stops at ${renderer.stop.map((stop) => JSON.stringify(stop)).join(", ")}`,
      };
    });
    const renderer = opened?.renderer;
    const splits = bench.config.eval_every > 0 ? (["train", "test"] as const) : (["train"] as const);
    const work =
      renderer &&
      (await check("data", async () => {
        const value = await bench.work(renderer, { splits });
        return { value, found: value.summary.train };
      }));
    if (engine && window !== undefined && renderer && work) {
      const [task] = await work.train.batch(0, 1);
      const probe = {
        ...config,
        made: opened?.made,
        prompt: task!.prompt,
        maxTokens: Math.min(16, task!.maxTokens),
        stop: renderer.stop,
        fixedSeeds: engine.kind !== "hosted",
        signal,
      };
      const sampled = await check("sample", async () => {
        const value = await probeSample(engine.service, probe);
        const text = JSON.stringify(renderer.tokenizer.decode(value.tokens).slice(0, 60));
        return { value, found: `${value.tokens.length} tokens: ${text}` };
      });
      if (sampled)
        await check("training", async () => {
          const value = await probeTraining(sampled, probe);
          const drift = Number.isNaN(value) ? "" : `; logprobs differ by at most ${value.toExponential(1)}`;
          return { value, found: `${config.loss_fn} of that sample${drift}` };
        });
      const { test: testTasks } = work;
      const measured = run === undefined ? undefined : measuredIn(readJournal(run));
      if (measured) showForecast(config, measured, testTasks.length);
      else if (sampled && (grading || isOwn) && isSmall(config, work.maxTurns) && engine.kind === "embedded") {
        const forecast = await check("forecast", async () => {
          const { training } = sampled;
          const tasks = await work.train.batch(0, config.prompts_per_step);
          const rollOuts = work.rollOuts(renderer, bench.config, code);
          const value = await measureStep(bench.config, { training, rollOuts, tasks, testTasks, signal });
          return { value, found: value.basis };
        });
        if (forecast) showForecast(config, forecast, testTasks.length);
      } else if ((isOwn || gradeMs !== undefined) && sampled)
        showMost(config, { gradeMs, sampled, promptTokens: task!.prompt.length, turns: work.maxTurns });
    }
  } finally {
    await bench.close();
    rmSync(folder, { recursive: true, force: true });
  }
  return verdict(failures, ready);
}

function verdict(failures: number, ready: string): number {
  console.log(
    failures === 0 ? `ready: ${ready}` : `${countOf(failures, "problem")}: fix what is said above, then run this again`,
  );
  return failures === 0 ? 0 : 1;
}

async function timeGrader(grading: GraderConnection, signal: AbortSignal): Promise<{ value: number; found: string }> {
  const started = performance.now();
  await grading.check(signal);
  const milliseconds = performance.now() - started;
  return { value: milliseconds / 20, found: "programs with known verdicts are judged right" };
}

/** A batch that the embedded engine does within a minute or so. */
const isSmall = (config: TrainConfig, maxTurns: number) =>
  completionsPerStep(config) * maxTurns * Math.min(config.max_tokens, config.context_window) <= 200_000;

function showForecast(config: TrainConfig, measured: Measured, problems: number): void {
  const { tariff, missing } = tariffOf(config, chargedAs(config));
  const say = (what: string, { tokens, seconds, cost }: ReturnType<typeof forecastRun>) => {
    const price = cost === undefined ? "" : cost === 0 ? "; costs nothing" : `; ${dollars(cost)}`;
    console.log(
      `forecast  ${what}: ${thousands(tokens.prefill)} tokens read, ${thousands(tokens.sample)} sampled, ${thousands(tokens.train)} trained on; about ${clock(seconds)}${price}`,
    );
  };
  console.log(`forecast  from ${measured.basis}`);
  say("a step", forecastRun(measured, 1, 0, 0, tariff));
  if (config.max_steps > 0) {
    const evaluations = problems > 0 ? evaluationsOf(config, config.max_steps) : 0;
    const with_ = evaluations > 0 ? ` with ${evaluations} evaluations of ${problems} problems` : "";
    say(`${config.max_steps} steps${with_}`, forecastRun(measured, config.max_steps, evaluations, problems, tariff));
  }
  if (!tariff) console.log(`forecast  ${noPrice(config.model_name, missing)}`);
}

/** Where no lengths of answers were measured: what a step takes at most. */
function showMost(
  config: TrainConfig,
  parts: { gradeMs: number | undefined; sampled: ProbedSample; promptTokens: number; turns: number },
): void {
  const { gradeMs, sampled, promptTokens, turns } = parts;
  const longest = Math.min(config.max_tokens, config.context_window - promptTokens);
  const seconds = (turns * longest * sampled.seconds) / Math.max(1, sampled.tokens.length);
  const grading =
    gradeMs === undefined ? "" : `, about ${((gradeMs * completionsPerStep(config)) / 1000).toFixed(1)} s of grading`;
  const { prompts_per_step: prompts, completions_per_prompt: each } = config;
  console.log(
    `forecast  a step samples ${completionsPerStep(config)} completions (${prompts} prompts × ${each}): at most ${clock(seconds)} for the longest${grading}`,
  );
  const { step } = forecastTokens(config, [{ prompt: { length: promptTokens }, maxTokens: longest }], [], turns);
  const basis = `the prompt of one problem and max_tokens: at most; ${whet} doctor run=RUN goes by the lengths of a run, such as one of a few steps`;
  showForecast(config, { basis, step: { ...step, cachedPrefill: 0, seconds }, problem: undefined }, 0);
}
