// The training config: one schema is the defaults, the types, the validation, the help text and docs/config.md.
import { z } from "zod";
import { ConfigError } from "../core/errors.ts";
import { comparatorNames } from "../grading/index.ts";
import { policyLossNames } from "../protocol/losses.ts";
import { thinkingModes } from "../renderers/index.ts";
import { sinkKeys } from "../runs/sink-kinds.ts";
import { advantageNames } from "./advantages.ts";
import type { TrainSettings } from "./settings.ts";

const positive = z.number().positive();
const count = z.int().min(0);
/**
 * The policy losses that the loop has all inputs for. dro also pulls positions without an advantage towards the sampler's log-probability,
 * and a sampler gives none for the prompt's tokens.
 */
const loopLosses = policyLossNames.filter((name) => name !== "dro");
const whyNotDro =
  "dro pulls every position towards the log-probability that its sampler gave, and samplers give none for a prompt's tokens, so it would train the prompt. " +
  "Set loss_fn=ppo, which bounds how far an update goes as well";
const price = z.number().min(0).nullable().default(null);

/** Every key of `./whet train`. The defaults are those of `preset=deepcoder`; `preset=nano` changes the ones in `presets`. */
export const TrainConfig = z.strictObject({
  preset: z
    .enum(["nano", "deepcoder"])
    .default("deepcoder")
    .describe("a set of defaults: nano (bundled model and problems) or deepcoder; chosen by the engine unless named"),

  model_name: z.string().default("Qwen/Qwen3-8B").describe("base model to train a LoRA adapter on"),
  renderer_name: z
    .string()
    .default("")
    .describe('chat format, e.g. template (the model\'s own); "" takes the one that fits the model'),
  thinking: z
    .enum(thinkingModes)
    .default("")
    .describe('whether the model reasons before it answers: on, off, low, medium, high; "" leaves it to the model'),
  tokenizer: z
    .string()
    .default("")
    .describe('folder or hub id of the tokenizer; "" asks the server, then uses model_name'),
  base_url: z
    .string()
    .default("")
    .describe("Tinker-compatible server; empty: TINKER_BASE_URL, hosted Tinker, or embedded"),

  batch_size: z.int().min(2).default(128).describe("completions per step"),
  group_size: z.int().min(1).default(8).describe("prompts per step; each gets batch_size / group_size completions"),
  max_steps: z.int().min(-1).default(-1).describe("step at which training ends; -1: never"),
  learning_rate: positive.default(4e-5).describe("Adam learning rate"),
  lora_rank: z.int().min(1).default(32).describe("rank of the LoRA adapter"),
  seed: z
    .int()
    .min(0)
    .default(0)
    .describe("orders the data, starts the adapter and, on the embedded engine, fixes every sample"),

  max_tokens: z.int().min(1).default(24576).describe("most tokens of one completion"),
  context_window: z
    .int()
    .min(16)
    .default(32768)
    .describe("prompt and completion together; the server's own limit for the model wins if smaller"),
  min_generation: z
    .int()
    .min(1)
    .default(1024)
    .describe("problems whose prompt leaves less room than this are left out"),
  temperature: positive.default(1.0).describe("sampling temperature while training"),

  loss_fn: z
    .enum(loopLosses, { error: ({ input }) => (input === "dro" ? whyNotDro : undefined) })
    .default("importance_sampling")
    .describe("loss of the policy gradient"),
  loss_fn_config: z
    .record(z.string(), z.number())
    .default({})
    .describe('settings of the loss as JSON, e.g. {"clip_high_threshold":1.3}'),
  loss_scale: z
    .enum(["none", "per_token", "per_datum"])
    .default("none")
    .describe("divides advantages by the batch's completion tokens or datums; losses are sums otherwise"),
  advantage: z.enum(advantageNames).default("mean").describe("how rewards become advantages within a group"),
  max_lag: z
    .int()
    .min(0)
    .max(64)
    .default(1)
    .describe("policy versions that sampling may be behind training; 0: one after the other, 1: overlapped"),
  allow_unclipped: z
    .boolean()
    .default(false)
    .describe("allow max_lag of 3 and more with loss_fn=importance_sampling, which nothing bounds"),
  num_substeps: z.int().min(1).default(1).describe("optimizer steps per batch; more than 1 wants loss_fn=ppo"),
  mask_truncated: z
    .boolean()
    .default(false)
    .describe("leave completions cut at max_tokens out of the loss, not out of the baseline"),
  beta1: z.number().min(0).lt(1).default(0.9).describe("Adam beta1"),
  beta2: z.number().min(0).lt(1).default(0.95).describe("Adam beta2"),
  eps: positive.default(1e-12).describe("Adam epsilon"),
  weight_decay: z.number().min(0).default(0).describe("decoupled weight decay"),
  grad_clip_norm: z.number().min(0).default(0).describe("largest norm of the gradient; 0: no clipping"),

  train_data: z
    .string()
    .default("deepcoder")
    .describe("starter, deepcoder, or a path to JSONL or Parquet (commas separate several)"),
  test_data: z.string().default("deepcoder").describe("problems for evaluation, in the same forms"),
  max_tests_bytes: z
    .int()
    .min(1)
    .default(50_000_000)
    .describe("problems whose tests are larger than this are left out"),
  blocked_ids: z.array(z.string()).default([]).describe("ids of problems to leave out, separated by commas"),
  system_role: z.boolean().default(false).describe("put the prompt's first paragraph into a system message"),

  reward: z
    .enum(["all", "fraction"])
    .default("all")
    .describe(
      "a program is worth 1 if it passes all tests; one that does not: nothing (all) or the share it passes (fraction)",
    ),
  format_coef: z.number().min(0).default(0.1).describe("penalty of an answer without a code block"),
  reward_timeout: positive.default(6).describe("seconds per test"),
  comparator: z
    .enum(comparatorNames)
    .default("tolerant")
    .describe("how outputs are compared; lcb: LiveCodeBench's rules, tokens: one stream of words, whatever the lines"),
  max_tests: count.default(0).describe("tests run per program; 0: all"),
  sandbox_url: z
    .string()
    .default("")
    .describe("Sandbox Fusion, one or several URLs; empty: SANDBOX_URL, or the embedded jail"),
  sandbox_max_concurrency: count
    .default(0)
    .describe("programs graded at once; 0: SANDBOX_MAX_CONCURRENCY, or 4 (jail: one per core)"),
  sandbox_python: z.string().default("").describe("interpreter or virtual environment for the embedded jail"),
  sandbox_packages: z
    .string()
    .default("")
    .describe("packages that programs may import in the embedded jail, separated by commas; installed on first use"),
  sandbox_memory_mb: z
    .int()
    .min(1)
    .default(4096)
    .describe("memory of a graded program, all its processes together, in MiB"),
  canary_every: z
    .int()
    .min(-1)
    .default(50)
    .describe("steps between checks that the grader still judges right; 0 or -1: only at the start"),

  eval_every: z.int().min(-1).default(10).describe("steps between evaluations; 0 or -1: none"),
  eval_max_problems: count.default(128).describe("problems per evaluation, a fixed share of each source; 0: all"),
  eval_num_samples: z.int().min(1).default(1).describe("samples per problem when evaluating"),
  eval_temperature: z.number().min(0).default(0).describe("sampling temperature when evaluating; 0: greedy"),
  eval_max_tokens: count.default(0).describe("most tokens of an evaluated completion; 0: max_tokens"),

  log_path: z.string().default("").describe("run directory; empty: ~/code-rl-logs/YYYY_MM_DD-HH_MM_SS"),
  behavior_if_log_dir_exists: z
    .enum(["ask", "resume", "delete", "raise"])
    .default("ask")
    .describe(
      "what to do with a run directory that exists; without a terminal, ask means: resume the same run, else stop",
    ),
  force_resume: z.boolean().default(false).describe("resume although model, rank, renderer, seed or data changed"),
  load_checkpoint_path: z
    .string()
    .default("")
    .describe("tinker:// path of weights to start from, with a fresh optimizer"),
  keep_journal: z
    .enum(["all", "checkpoint"])
    .default("all")
    .describe("checkpoint: tokens and logprobs of steps before the newest checkpoint are dropped from the journal"),
  stage_deadline: z
    .number()
    .min(0)
    .default(1800)
    .describe("seconds without progress after which a stage is named; after twice that the run ends; 0: never"),
  outage_patience: z
    .number()
    .min(0)
    .default(1800)
    .describe(
      "seconds that the server or the sandbox may give no answer before the run ends, to be resumed; 0: until stage_deadline ends it",
    ),
  on_error: z
    .enum(["warn", "pause", "stop", "rollback"])
    .default("warn")
    .describe(
      "what a finding of level error does: rollback goes back to the last healthy checkpoint with half the learning rate, twice at most",
    ),
  save_every: z.int().min(-1).default(10).describe("steps between checkpoints; 0 or -1: only at the end"),
  ttl_seconds: count.default(604_800).describe("life of periodic checkpoints on the server; 0: for ever"),
  budget: z
    .number()
    .positive()
    .nullable()
    .default(null)
    .describe("US dollars that the run may cost, all its starts together; it saves and stops before they are spent"),
  price_prefill: price.describe("US dollars per million prompt tokens, instead of the price that is known"),
  price_cached_prefill: price.describe(
    "the same for prompt tokens that the server had cached; a fifth of price_prefill unless given",
  ),
  price_sample: price.describe("the same for sampled tokens"),
  price_train: price.describe("the same for tokens trained on, prompts included"),
  num_groups_to_log: count.default(4).describe("groups per step written in full to logs.log"),
  dashboard: z
    .boolean()
    .default(true)
    .describe("serve the run's dashboard on this machine while it trains, and print its link"),
  ...sinkKeys,
});

/** Every setting of a run, resolved; docs/config.md lists them with their defaults. */
export type TrainConfig = Required<Omit<TrainSettings, "prompts_per_step" | "completions_per_prompt">>;

/** What a preset changes; a key given on the command line wins. */
export const presets: Readonly<Record<TrainConfig["preset"], Partial<TrainConfig>>> = {
  deepcoder: {},
  nano: {
    model_name: "nano-coder",
    renderer_name: "qwen3_instruct",
    batch_size: 64,
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
};

/** The defaults of a preset. */
export function presetConfig(preset: TrainConfig["preset"]): TrainConfig {
  return { ...TrainConfig.parse({}), ...presets[preset], preset };
}

/** Completions per prompt: the G of GRPO. */
export function completionsPerPrompt(config: Pick<TrainConfig, "batch_size" | "group_size">): number {
  return config.batch_size / config.group_size;
}

/** Checks what no single field can: throws ConfigError. Returns warnings worth showing. */
export function validateConfig(config: TrainConfig): string[] {
  const warnings: string[] = [];
  checkSizes(config, warnings);
  if (config.max_lag >= 3 && config.loss_fn === "importance_sampling" && !config.allow_unclipped) {
    throw new ConfigError(
      "config/unclipped-lag",
      `max_lag=${config.max_lag} with loss_fn=importance_sampling trains on answers of old policies with nothing to bound the ratios; runs ` +
        "collapsed that way. Set loss_fn=ppo, or max_lag to 2 or less; allow_unclipped=true goes ahead all the same.",
    );
  }
  if (config.max_lag >= 2 && config.loss_fn === "importance_sampling")
    warnings.push(
      `max_lag=${config.max_lag} with an unclipped loss: watch optim/kl_sample_train_v2 and optim/effective_sample_size, or set loss_fn=ppo`,
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

/** The sizes of a step. */
function checkSizes(config: TrainConfig, warnings: string[]): void {
  const { batch_size: batchSize, group_size: prompts } = config;
  if (batchSize % prompts !== 0) {
    const below = Math.max(prompts, batchSize - (batchSize % prompts));
    throw new ConfigError(
      "config/batch-size",
      `batch_size=${batchSize} completions cannot be shared evenly by group_size=${prompts} prompts. ` +
        `Set batch_size to a multiple of ${prompts}, for example ${below} or ${below + prompts}.`,
    );
  }
  const perPrompt = batchSize / prompts;
  if (perPrompt < 2) {
    throw new ConfigError(
      "config/completions-per-prompt",
      `batch_size=${batchSize} over group_size=${prompts} prompts gives each prompt ${perPrompt} completion, whose advantage is always zero. ` +
        `Set batch_size to at least ${2 * prompts}; 16 completions per prompt are usual.`,
    );
  }
  if (perPrompt < 4)
    warnings.push(`only ${perPrompt} completions per prompt: most groups will have equal rewards and teach nothing`);
}
