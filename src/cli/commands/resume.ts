// `./whet resume [RUN]`: goes on with a run, with its own settings.
import { whet } from "../../core/program.ts";
import { parseArgumentsOfRun, TrainArguments, trainOptionsHelp } from "../arguments/train-config.ts";
import type { Command } from "../command.ts";
import { findRun, newestRun, runKey, runOf } from "../weights/find-run.ts";
import { startTraining } from "./train.ts";

export const command: Command = {
  keys: { run: runKey, ...TrainArguments.shape },
  help: (args) =>
    [
      `Usage: ${whet} resume [RUN] [key=value …] [@config.json]`,
      "",
      "Goes on with a run where it ended, from any folder: every key that is not named is the run's. Nothing that was sampled, graded and",
      `written down is done again. A finished run goes on with a larger max_steps. Takes the keys of ${whet} train.`,
      "",
      `  run=  ${runKey.description}`,
      "",
      trainOptionsHelp(args, (named) => (named === "" ? newestRun() : findRun(named))),
    ].join("\n"),
  run(args) {
    const { run, ...parsed } = parseArgumentsOfRun(args, `${whet} resume`);
    const path = runOf(run, [], `${whet} resume`);
    return startTraining({
      ...parsed,
      given: { ...parsed.given, log_path: path, behavior_if_log_dir_exists: "resume" },
    });
  },
};
