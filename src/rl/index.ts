// `whetstone/rl`: the training loop as a library. Your problems, your reward function, any Tinker server; runs, checkpoints and resuming
// as with `./whet train`. And its parts for a loop of your own: advantages, and answers as training data.
export { ConfigError, WhetstoneError } from "../core/errors.ts";
export type { RunEvent } from "../runs/events.ts";
export { type AdvantageName, advantageNames, batchAdvantages, computeAdvantages, shouldSkip } from "./advantages.ts";
export { presetConfig, type TrainConfig } from "./config.ts";
export { RolloutError, type SampledAnswer, toDatum } from "./datums.ts";
export type { TrainingProblem } from "./own-problems.ts";
export type { Reward, RewardFunction, RewardRequest } from "./own-reward.ts";
export { TrainError } from "./resume.ts";
export { runTraining, type TrainingOptions, type TrainingResult } from "./run-training.ts";
export type { TrainSettings } from "./settings.ts";
