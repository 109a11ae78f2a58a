// `./whet sft`: supervised training on given answers, in the same loop: run directory, journal, resume, evaluation.
import { whet } from "../../core/program.ts";
import { trainOptionsHelp } from "../arguments/shown-defaults.ts";
import { parseTrainArguments, TrainArguments } from "../arguments/train-config.ts";
import { type Command, helpOf } from "../command.ts";
import { startTraining } from "./train.ts";

/** The settings that supervised training has instead; a key that is typed wins. */
const usual = ["method=sft", "completions_per_prompt=1", "prompts_per_step=32", "max_lag=0"];

const described = {
  usage: "sft train_data=FILE [key=value …] [@config.json]",
  about: [
    'Trains a LoRA adapter on answers that are given: JSON lines with "messages" that end with the assistant\'s, or problems with "solutions".',
    `The run is like any other: ${whet} resume goes on with it, the dashboard shows it, test_data= is measured. Takes the keys of ${whet} train.`,
  ],
};

export const command: Command = {
  keys: TrainArguments.shape,
  help: (args) => helpOf(described, trainOptionsHelp([...usual, ...args])),
  run: async (args) => startTraining(parseTrainArguments([...usual, ...args], `${whet} sft`)),
};
