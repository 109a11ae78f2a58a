// `./whet sft`: supervised training on given answers, in the same loop: run directory, journal, resume, evaluation.
import { whet } from "../../core/program.ts";
import { parseTrainArguments, TrainArguments, trainOptionsHelp } from "../arguments/train-config.ts";
import type { Command } from "../command.ts";
import { startTraining } from "./train.ts";

/** What supervised training wants to be told otherwise; a key that is typed wins. */
const usual = ["method=sft", "completions_per_prompt=1", "prompts_per_step=32", "max_lag=0"];

export const command: Command = {
  keys: TrainArguments.shape,
  help: (args) =>
    [
      `Usage: ${whet} sft train_data=FILE [key=value …] [@config.json]`,
      "",
      'Trains a LoRA adapter on answers that are given: JSON lines with "messages" that end with the assistant\'s, or problems with "solutions".',
      `The run is like any other: ${whet} resume goes on with it, the dashboard shows it, test_data= is measured. Takes the keys of ${whet} train.`,
      "",
      trainOptionsHelp([...usual, ...args]),
    ].join("\n"),
  run: (args) => startTraining(parseTrainArguments([...usual, ...args], `${whet} sft`)),
};
