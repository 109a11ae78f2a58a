// `./whet doctor`: everything a training run needs, checked one by one before it costs anything. Each line says what was found and,
// where something is wrong, what to do.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { messageOf } from "../core/errors.ts";
import { whet } from "../core/program.ts";
import { describeSummary } from "../data/index.ts";
import { completionsPerPrompt, type TrainConfig } from "../rl/config.ts";
import { probeSample, probeTraining } from "../rl/probe.ts";
import { taskSource } from "../rl/tasks.ts";
import { clock } from "../runs/display.ts";
import { type Logger, redact } from "../runs/log.ts";
import type { Command } from "./command.ts";
import { type EngineConnection, engineFiles, type GraderConnection, presetFor } from "./connect.ts";
import { interruptible } from "./interrupt.ts";
import { parseTrainArguments, resolveConfig, trainOptionsHelp } from "./train-config.ts";
import { Workbench } from "./workbench.ts";

const silent: Logger = { info() {}, warn() {}, error() {}, detail() {} };

export const command: Command = {
  help: (args) =>
    [
      `Usage: ${whet} doctor [key=value …]`,
      "",
      `Checks the engine, the model, the renderer, one sample, one training pass, the sandbox and the data, and forecasts a step. Takes the keys of ${whet} train.`,
      "Makes a fresh adapter, samples from it and trains on the sample without a step; on a hosted service a few hundred tokens are billed.",
      "",
      trainOptionsHelp(args),
    ].join("\n"),
  async run(args) {
    const parsed = parseTrainArguments(args, `${whet} doctor`);
    // A server that cannot be asked is reported by the check of the engine.
    const preset = parsed.preset ?? (await presetFor(parsed.given.base_url).catch(() => "deepcoder" as const));
    const { config, warnings } = resolveConfig(parsed, preset);
    for (const warning of warnings) console.log(`note      ${warning}`);
    return interruptible((signal) => examine(config, signal));
  },
};

async function examine(config: TrainConfig, signal: AbortSignal): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), "whet-doctor-"));
  const bench = new Workbench(config, { engineFiles: engineFiles(folder), logger: silent, signal });
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
  try {
    const grading = await check<GraderConnection>("sandbox", async () => {
      const value = await bench.grading();
      const lacks = value.description.lacks.length > 0 ? `; lacks: ${value.description.lacks.join(", ")}` : "";
      return { value, found: value.description.summary + lacks };
    });
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
    const renderer = await check("renderer", async () => {
      const value = await bench.renderer();
      const text = "print('<|im_end|>')";
      const tokens = value.tokenizer.encode(text);
      if (value.tokenizer.decode(tokens) !== text)
        throw new Error("the tokenizer does not give back the text it was given. Check tokenizer=.");
      return {
        value,
        found: `${value.name} on ${value.tokenizer.name}; stops at ${value.stop.map((stop) => JSON.stringify(stop)).join(", ")}`,
      };
    });
    const problems =
      renderer &&
      (await check("data", async () => {
        const value = await bench.problems("train", renderer);
        return { value, found: describeSummary(value.summary) };
      }));
    if (engine && window !== undefined && renderer && problems) {
      const [task] = await taskSource(problems, bench.config, renderer).batch(0, 1);
      const probe = {
        ...config,
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
      const sampleSeconds = sampled && sampled.seconds / sampled.tokens.length;
      forecast(config, gradeMs, sampleSeconds);
    }
  } finally {
    await bench.close();
    rmSync(folder, { recursive: true, force: true });
  }
  console.log(
    failures === 0
      ? `ready: ${whet} train`
      : `${failures} ${failures === 1 ? "problem" : "problems"}: fix what is said above, then run this again`,
  );
  return failures === 0 ? 0 : 1;
}

async function timeGrader(grading: GraderConnection, signal: AbortSignal): Promise<{ value: number; found: string }> {
  const started = performance.now();
  await grading.check(signal);
  const milliseconds = performance.now() - started;
  return { value: milliseconds / 20, found: "programs with known verdicts are judged right" };
}

/** A rough idea of a step: one stream of samples, one grader; both are faster in a batch. */
function forecast(config: TrainConfig, gradeMs: number | undefined, secondsPerToken: number | undefined): void {
  if (gradeMs === undefined || secondsPerToken === undefined) return;
  const longest = clock(secondsPerToken * config.max_tokens);
  const grading = ((gradeMs * config.batch_size) / 1000).toFixed(1);
  console.log(
    `forecast  a step samples ${config.batch_size} completions (${config.group_size} prompts × ${completionsPerPrompt(config)}): at most ${longest} for the longest, ` +
      `about ${grading} s of grading`,
  );
}
