// `./whet resume [RUN]`: goes on with a run, with its own settings.
import { whet } from "../../core/program.ts";
import { trainOptionsHelp } from "../arguments/shown-defaults.ts";
import { parseArgumentsOfRun, TrainArguments } from "../arguments/train-config.ts";
import { type Command, helpOf } from "../command.ts";
import { findRun, newestRun, runKey, runOf } from "../weights/find-run.ts";
import { startTraining } from "./train.ts";

const described = {
  usage: "resume [RUN] [key=value …] [@config.json]",
  about: [
    "Goes on with a run where it ended, from any folder: every key that is not named is the run's. Nothing that was sampled, graded and",
    `written down is done again. A finished run goes on with a larger max_steps. Takes the keys of ${whet} train.`,
  ],
};

export const command: Command = {
  keys: { run: runKey, ...TrainArguments.shape },
  help: (args) =>
    helpOf(
      described,
      `  run=  ${runKey.description}`,
      trainOptionsHelp(args, (named) => (named === "" ? newestRun() : findRun(named))),
    ),
  async run(args) {
    const { run, ...parsed } = parseArgumentsOfRun(args, `${whet} resume`);
    const given = { ...parsed.given, log_path: runOf(run), behavior_if_log_dir_exists: "resume" } as const;
    return startTraining({ ...parsed, given });
  },
};
