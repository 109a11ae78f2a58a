// `./whet doctor`: everything a training run needs, checked one by one before it costs anything. Each line says what was found and,
// where something is wrong, what to do.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { messageOf } from "../core/errors.ts";
import { whet } from "../core/program.ts";
import { describeSummary } from "../data/index.ts";
import { completionsPerPrompt, type TrainConfig } from "../rl/config.ts";
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
  help: () =>
    [
      `Usage: ${whet} doctor [key=value …]`,
      "",
      `Checks the engine, the model, the renderer, one sample, the sandbox and the data, and forecasts a step. Takes the keys of ${whet} train.`,
      "Sends one short sample request; on a hosted service that is all that is billed.",
      "",
      trainOptionsHelp(),
    ].join("\n"),
  async run(args) {
    const parsed = parseTrainArguments(args);
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
      const sampleSeconds = await check("sample", async () => {
        const [task] = await taskSource(problems, bench.config, renderer).batch(0, 1);
        const sampler = await engine.service.createSamplingClient({ baseModel: config.model_name });
        const started = performance.now();
        const { sequences } = await sampler.sample({
          prompt: task!.prompt,
          samplingParams: {
            maxTokens: Math.min(16, task!.maxTokens),
            temperature: 1,
            stop: renderer.stop,
          },
          signal,
        });
        const seconds = (performance.now() - started) / 1000;
        const tokens = sequences[0]!.tokens.length;
        return {
          value: seconds / tokens,
          found: `${tokens} tokens: ${JSON.stringify(renderer.tokenizer.decode(sequences[0]!.tokens).slice(0, 60))}`,
        };
      });
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
