// The training config: the schema of its keys, the presets, and the checks between keys.
import { z } from "zod";
import { ConfigError } from "../core/errors.ts";
import { whet } from "../core/program.ts";
import { enoughOf } from "../diagnosis/pace.ts";
import { configKeys, type enginePresets, type recipeNames } from "./config-keys.ts";
import { oldestAnswers } from "./pipeline.ts";
import type { TrainSettings } from "./settings.ts";
import type { olderSizes } from "./sizes.ts";

/** Every key of `./whet train`. The defaults are those of `preset=deepcoder`; `preset=nano` changes the ones in `presets`. */
export const TrainConfig = z.strictObject(
  Object.fromEntries(Object.entries(configKeys).map(([name, { schema }]) => [name, schema])) as {
    [Name in keyof typeof configKeys]: (typeof configKeys)[Name]["schema"];
  },
);

/** Every setting of a run, resolved; docs/config.md lists them with their defaults. */
export type TrainConfig = Required<Omit<TrainSettings, keyof typeof olderSizes>>;

/** The presets that fit an engine and a model. */
export type EnginePreset = (typeof enginePresets)[number];
/** Those that are a published recipe: over the one that fits the engine, whatever that is. */
type Recipe = (typeof recipeNames)[number];

/** What a preset changes; a key given on the command line wins. */
export const presets: Readonly<Record<EnginePreset, Partial<TrainConfig>>> = {
  deepcoder: {},
  nano: {
    model_name: "nano-coder",
    renderer_name: "qwen3_instruct",
    completions_per_prompt: 8,
    learning_rate: 3e-3,
    max_steps: 40,
    max_tokens: 112,
    context_window: 512,
    min_generation: 64,
    train_data: "starter",
    test_data: "starter",
    // The bundled programs take milliseconds; some that models write take minutes.
    reward_timeout: 1,
    eval_max_problems: 0,
    // Before and after: 450 problems take as long as ten steps.
    eval_every: 40,
    max_lag: 0,
  },
  small: {
    model_name: "HuggingFaceTB/SmolLM2-135M-Instruct",
    completions_per_prompt: 8,
    learning_rate: 2e-4,
    max_steps: 40,
    max_tokens: 256,
    context_window: 2048,
    min_generation: 64,
    train_data: "starter",
    test_data: "starter",
    eval_max_problems: 48,
    eval_every: 40,
    max_lag: 0,
  },
};

/** What a recipe changes over the settings that it stands on. Learning rates are left alone: the papers train all weights. */
const recipes: Readonly<Record<Recipe, (base: TrainConfig) => Partial<TrainConfig>>> = {
  // arXiv 2503.14476: clip higher, dynamic sampling, token-level loss, overlong shaping, no KL. Its soft zone is a fifth of the longest answer.
  dapo: ({ max_tokens }) => ({
    loss_fn: "ppo",
    loss_fn_config: { clip_low_threshold: 0.8, clip_high_threshold: 1.28 },
    loss_scale: "per_token",
    advantage: "grpo_std",
    fill_batch: true,
    overlong_buffer: Math.floor(max_tokens / 5),
  }),
  // arXiv 2503.20783: GRPO's clipped loss without its division by the spread of a group and by an answer's length.
  dr_grpo: () => ({ loss_fn: "ppo", loss_scale: "constant", advantage: "mean" }),
};

const isRecipe = (preset: TrainConfig["preset"]): preset is Recipe => Object.hasOwn(recipes, preset);

/** The defaults of a preset; those of a recipe over `engine`'s. */
export function presetConfig(preset: TrainConfig["preset"], engine: EnginePreset = "deepcoder"): TrainConfig {
  const base = { ...TrainConfig.parse({}), ...presets[isRecipe(preset) ? engine : preset], preset };
  return isRecipe(preset) ? { ...base, ...recipes[preset](base) } : base;
}

/** The same for a preset that is given or not: what fits the engine is asked only where it decides. */
export async function presetConfigFor(
  given: TrainConfig["preset"] | undefined,
  ofEngine: () => Promise<EnginePreset>,
): Promise<TrainConfig> {
  if (given !== undefined && !isRecipe(given)) return presetConfig(given);
  const engine = await ofEngine();
  return presetConfig(given ?? engine, engine);
}

/** Checks what no single field can: throws ConfigError. Returns warnings worth showing. */
export function validateConfig(config: TrainConfig): string[] {
  const { completions_per_prompt: each, method } = config;
  validateSchedule(config);
  if (method === "sft") {
    validateSupervised(config);
    return [];
  }
  const warnings: string[] = [];
  if (each < 2)
    throw new ConfigError(
      "config/completions-per-prompt",
      `completions_per_prompt=${each} gives each problem one answer, whose advantage is always zero. Set it to 2 or more; 16 are usual.`,
    );
  if (each < 4)
    warnings.push(`only ${each} completions per prompt: most groups will have equal rewards and teach nothing`);
  const { overlong_buffer: buffer, max_tokens: longest } = config;
  if (buffer >= longest)
    throw new ConfigError(
      "config/overlong-buffer",
      `overlong_buffer=${buffer} with max_tokens=${longest} leaves no answer that costs nothing. Set it to less than max_tokens; DAPO's share is a fifth: ${Math.floor(longest / 5)}.`,
    );
  if (config.teacher !== "" && config.fill_batch)
    throw new ConfigError(
      "config/teacher-fills",
      `teacher=${config.teacher} teaches with every group, so fill_batch=true has nothing to fill batches with. Leave one of them out.`,
    );
  if (config.mismatch !== "none" && config.num_substeps > 1)
    warnings.push(
      `mismatch=${config.mismatch} with num_substeps=${config.num_substeps}: the ratios are those of before the first of them`,
    );
  const carries = config.tail === "carry";
  if (carries && config.fill_batch)
    throw new ConfigError(
      "config/carry-and-fill",
      "tail=carry trains on a batch before all of it is there, and fill_batch=true decides by all of it what else to ask. Set tail=wait, or fill_batch=false.",
    );
  if (carries && enoughOf(config.prompts_per_step, config.carry_share) === config.prompts_per_step)
    warnings.push(
      `tail=carry changes nothing: carry_share=${config.carry_share} of prompts_per_step=${config.prompts_per_step} is all of them`,
    );
  if (config.carry_rounds && (!carries || config.max_lag === 0))
    throw new ConfigError(
      "config/rounds-of-one",
      `carry_rounds=true begins max_lag + 1 steps together and carries over between them, which tail=${config.tail} max_lag=${config.max_lag} does not. Set tail=carry and max_lag=1 or more, or leave it out (carry_rounds=false).`,
    );
  const lag = oldestAnswers(config);
  const lagKeys = `max_lag=${config.max_lag}${carries ? " tail=carry" : ""}`;
  if (lag >= 3 && config.loss_fn === "importance_sampling" && !config.allow_unclipped) {
    throw new ConfigError(
      "config/unclipped-lag",
      `${lagKeys} with loss_fn=importance_sampling trains on answers of old policies with nothing to bound the ratios; runs ` +
        `collapsed that way. Set loss_fn=ppo, or max_lag to ${carries ? 1 : 2} or less; allow_unclipped=true goes ahead all the same.`,
    );
  }
  if (lag >= 2 && config.loss_fn === "importance_sampling")
    warnings.push(
      `${lagKeys} with an unclipped loss: watch optim/kl_sample_train_v2 and optim/effective_sample_size, or set loss_fn=ppo`,
    );
  const deadline = 2 * config.stage_deadline;
  if (deadline > 0 && config.outage_patience >= deadline)
    warnings.push(
      `outage_patience=${config.outage_patience}: stage_deadline=${config.stage_deadline} ends a run without progress after ${deadline} s; set it to more than ${Math.ceil(config.outage_patience / 2)}, or to 0`,
    );
  if (config.num_substeps > 1 && config.loss_fn === "importance_sampling")
    warnings.push("num_substeps > 1 trains off-policy; loss_fn=ppo is the stable choice for that");
  if (config.temperature !== 1)
    warnings.push(`temperature=${config.temperature}: the sampler's logprobs are those of temperature 1`);
  if (config.max_tokens >= config.context_window)
    warnings.push(
      `max_tokens=${config.max_tokens} does not fit context_window=${config.context_window}; completions end at the window`,
    );
  return warnings;
}

/** However it learns, its learning rate has to come to its value, and to an end where it falls to one. */
function validateSchedule({ lr_schedule, warmup_steps, max_steps }: TrainConfig): void {
  if (lr_schedule !== "constant" && max_steps < 0)
    throw new ConfigError(
      "config/schedule-without-end",
      `lr_schedule=${lr_schedule} falls to zero at the last step, and max_steps=${max_steps} names none. Set max_steps=200, say, or lr_schedule=constant.`,
    );
  if (warmup_steps > 0 && max_steps > 0 && warmup_steps >= max_steps)
    throw new ConfigError(
      "config/warmup-too-long",
      `warmup_steps=${warmup_steps} with max_steps=${max_steps} ends the run before the learning rate has its value. Set warmup_steps to less than ${max_steps}.`,
    );
}

/** The settings of supervised training: those that shape rewards, or what is sampled, say nothing there. */
function validateSupervised(config: TrainConfig): void {
  const usual = presetConfig("deepcoder");
  const foreign = ["teacher", "kl_coef", "fill_batch", "mismatch", "env"] as const;
  const key = foreign.find((name) => config[name] !== usual[name]);
  if (key !== undefined)
    throw new ConfigError(
      "config/not-supervised",
      `method=sft learns from answers that are given, and ${key}=${config[key]} is about answers that are sampled. Leave it out, or train with method=rl.`,
    );
  if (config.completions_per_prompt !== 1)
    throw new ConfigError(
      "config/one-demonstration",
      `method=sft learns one answer to each problem, and completions_per_prompt=${config.completions_per_prompt}. Leave it out (${whet} sft sets it), or set it to 1.`,
    );
}
