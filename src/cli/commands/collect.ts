// `./whet collect`: asks a model the training problems, and writes what passes as demonstrations for `./whet sft`.
import { resolve } from "node:path";
import { z } from "zod";
import { countOf, thousands } from "../../core/count.ts";
import { ConfigError, WhetstoneError } from "../../core/errors.ts";
import { Limiter } from "../../core/limiter.ts";
import { takeLock } from "../../core/lock-file.ts";
import { briefPatience } from "../../core/outage.ts";
import { whet } from "../../core/program.ts";
import { Random } from "../../core/random.ts";
import { shellCommand } from "../../core/shell.ts";
import { Collection, collect } from "../../rl/collect.ts";
import { presetConfig, TrainConfig } from "../../rl/config.ts";
import { policyOf } from "../../rl/policies.ts";
import type { Task } from "../../rl/tasks.ts";
import type { ParsedArguments } from "../arguments/options.ts";
import { askedRun, askedRunKey, askingKeys, checkpointKey, settingsOfRun } from "../arguments/run-settings.ts";
import { describeRunOptions } from "../arguments/shown-defaults.ts";
import { commandOf } from "../command.ts";
import { interruptible } from "../terminal/interrupt.ts";
import { stderrLogger as logger } from "../terminal/loggers.ts";
import { Progress } from "../terminal/progress.ts";
import { type Asked, type AskPlan, planAsking, withWeights } from "../weights/asked-weights.ts";
import { sayRun } from "../weights/find-run.ts";

const { test_data: _, ...asking } = askingKeys;
const CollectOptions = TrainConfig.pick({
  ...asking,
  train_data: true,
  temperature: true,
  max_tests_bytes: true,
  blocked_ids: true,
  min_generation: true,
  max_tests: true,
  sandbox_max_concurrency: true,
}).extend({
  run: askedRunKey,
  checkpoint: checkpointKey,
  samples: z.int().min(1).default(8).describe("answers to each problem"),
  keep: z.int().min(1).default(4).describe("answers kept of one problem at most; none twice"),
  problems: z.int().min(0).default(0).describe("problems that are asked, in the order of seed; 0: all"),
  out: z.string().default("collected.jsonl").describe("the data set; FILE.partial until it is whole"),
});
type CollectOptions = z.output<typeof CollectOptions>;

/** Problems that are under way at once; the client bounds its requests itself. */
const underWay = 256;

export const command = commandOf(CollectOptions, {
  usage: "collect [RUN] [key=value …]",
  about: [
    "Asks the run's last checkpoint, or a base model, the training problems, and writes the answers that pass all tests as conversations that",
    `${whet} sft train_data= takes (rejection sampling). Ended in the middle, the same command goes on.`,
  ],
  words: "run",
  describeKeys: (args, parse) => describeRunOptions(CollectOptions, args, parse, runFor),
  async run(parsed) {
    const { options, given } = parsed;
    const run = runFor(parsed);
    if (!given.has("run") && run !== "") sayRun(run);
    const lock = takeLock(`${resolve(options.out)}.lock`);
    if ("holder" in lock)
      throw new ConfigError(
        "config/file-taken",
        `out=${options.out} is being collected by process ${lock.holder}. Wait for it, or name another file.`,
      );
    try {
      return await interruptible((signal) => collectAll({ ...options, run }, given, signal));
    } finally {
      lock.release();
    }
  },
});

const runFor = ({ options, given }: ParsedArguments<typeof CollectOptions>) =>
  askedRun(options.run, [options.checkpoint], given);

async function collectAll(options: CollectOptions, given: ReadonlySet<string>, signal: AbortSignal): Promise<number> {
  const plan = await planOf(options, given);
  const collection = await withWeights([plan], logger, signal, ([asked]) => gather(asked!, options, signal));
  const { problems, solved, tried, passed, ungraded, kept } = collection.totals;
  const what = `${countOf(problems, "problem")}: ${thousands(tried)} answers tried, ${thousands(passed)} passed, ${thousands(kept)} kept of ${countOf(solved, "problem")} (none twice, at most ${options.keep} of each)`;
  console.log(ungraded > 0 ? `${what}; ${thousands(ungraded)} without a verdict` : what);
  if (kept === 0) {
    collection.close();
    throw new WhetstoneError(
      "cli/nothing-passed",
      `Not one of ${thousands(tried)} answers passed, so there is nothing to learn from. Raise samples=, train first, or choose easier train_data.`,
    );
  }
  collection.finish();
  console.log(shellCommand(`${whet} sft`, `train_data=${options.out}`));
  return 0;
}

async function planOf(options: CollectOptions, given: ReadonlySet<string>): Promise<AskPlan> {
  const config = await settingsOfRun(options.run, options, given);
  // A supervised run's train_data are answers, not problems to ask.
  const own = config.method === "sft" && !given.has("train_data") ? presetConfig(config.preset) : config;
  const asked: TrainConfig = { ...config, method: "rl", train_data: own.train_data };
  return planAsking(options.checkpoint, options.run, asked, options, given);
}

async function gather(asked: Asked, options: CollectOptions, signal: AbortSignal): Promise<Collection> {
  const { bench, renderer, sampler, engine, label } = asked;
  const work = await bench.work(renderer, { splits: ["train"] });
  const { config } = bench;
  if (work.maxTurns > 1)
    throw new ConfigError(
      "config/collect-episodes",
      `env=${config.env} agent=${config.agent} has episodes of several turns, and a data set of answers has one turn each. Collect without them.`,
    );
  logger.info(`train    ${work.summary.train}`);
  const count = Math.min(options.problems || work.train.size, work.train.size);
  const { samples, keep } = options;
  const { model_name, seed, temperature, max_tokens } = config;
  const how = {
    of: label,
    model_name,
    problems: work.fingerprints.train,
    seed,
    samples,
    keep,
    temperature,
    max_tokens,
  };
  const collection = new Collection(resolve(options.out), how);
  const progress = new Progress({ label, total: count });
  try {
    const code = bench.code(briefPatience((line) => progress.print(line)));
    await bench.programs(work, code);
    const rollOut = work.rollOuts(
      renderer,
      config,
      code,
    )({
      record: async () => {},
      samples,
      temperature,
      seedFor: (_, task) => (engine.kind === "hosted" ? undefined : new Random("collect", seed, task.id).uint32()),
    });
    const policy = policyOf(sampler);
    const tasks = await work.train.batch(0, count);
    const room = new Limiter(underWay);
    const ask = async (task: Task, group: number) => {
      if (collection.has(group)) return;
      const place = { phase: "eval", batch: 0, group } as const;
      const answered = await room.run(() => rollOut(place, task, policy, signal), { signal });
      collection.add({ index: group, ...collect(task, answered, renderer, keep) });
      const { problems, kept } = collection.totals;
      progress.update(problems, { note: `${thousands(kept)} kept` });
    };
    await Promise.all(tasks.map(ask));
    return collection;
  } catch (error) {
    collection.close();
    const { problems } = collection.totals;
    if (problems > 0)
      progress.print(
        `${countOf(problems, "problem")} of ${count} are in ${options.out}.partial; the same command goes on from there`,
      );
    throw error;
  } finally {
    progress.end();
  }
}
