// `whetstone/rl`: the training loop as a library. Your problems, your reward function, any Tinker server; runs, checkpoints and resuming
// as with `./whet train`. And its parts for a loop of your own: advantages, and answers as training data.
export { ConfigError, WhetstoneError } from "../core/errors.ts";
export type { RunEvent } from "../runs/events.ts";
export { type AdvantageName, advantageNames, batchAdvantages, computeAdvantages, shouldSkip } from "./advantages.ts";
export { presetConfig, type TrainConfig } from "./config.ts";
export { EpisodeOver } from "./conversation.ts";
export { RolloutError, type SampledAnswer, toDatum } from "./datums.ts";
export { Chat, type Reply } from "./environment/chat.ts";
export {
  type Ending,
  type Endpoint,
  type Environment,
  type EnvironmentOptions,
  type Episode,
  type Executed,
  environment,
  type Graded,
  type Ran,
  type RewardFunction,
  type RewardRequest,
  type ToolEpisode,
  type Tried,
} from "./environment/environment.ts";
export { type Call, type Tool, type ToolSet, Unavailable } from "./environment/tools.ts";
export type { Reward, Verdict } from "./environment/verdict.ts";
export type { TrainingProblem } from "./own-problems.ts";
export { TrainError } from "./resume.ts";
export { runTraining, type TrainingOptions, type TrainingResult } from "./run-training.ts";
export type { TrainSettings } from "./settings.ts";
