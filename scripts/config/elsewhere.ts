// What other tools call the settings, for their users; docs/config.md shows it. The nearest name, where its meaning is the same.
import type { configKeys } from "../../src/rl/config-keys.ts";

/** The tools. */
export const otherTools = ["TRL", "verl", "SkyRL", "tinker-cookbook"] as const;

export const elsewhere: Readonly<
  Partial<Record<keyof typeof configKeys, Partial<Record<(typeof otherTools)[number], string>>>>
> = {
  from: { "tinker-cookbook": "load_checkpoint_path" },
  prompts_per_step: {
    verl: "data.train_batch_size",
    SkyRL: "trainer.train_batch_size",
    "tinker-cookbook": "groups_per_batch",
  },
  completions_per_prompt: {
    TRL: "num_generations",
    verl: "actor_rollout_ref.rollout.n",
    SkyRL: "generator.n_samples_per_prompt",
    "tinker-cookbook": "group_size",
  },
  fill_batch: { verl: "algorithm.filter_groups.enable", SkyRL: "trainer.algorithm.dynamic_sampling.type=filter" },
  learning_rate: {
    TRL: "learning_rate",
    verl: "actor_rollout_ref.actor.optim.lr",
    SkyRL: "trainer.policy.optimizer_config.lr",
    "tinker-cookbook": "learning_rate",
  },
  lr_schedule: { TRL: "lr_scheduler_type", SkyRL: "trainer.policy.optimizer_config.scheduler" },
  warmup_steps: {
    TRL: "warmup_steps",
    verl: "actor_rollout_ref.actor.optim.lr_warmup_steps",
    SkyRL: "trainer.policy.optimizer_config.num_warmup_steps",
  },
  lora_rank: {
    TRL: "LoraConfig.r",
    verl: "actor_rollout_ref.model.lora_rank",
    SkyRL: "trainer.policy.model.lora.rank",
    "tinker-cookbook": "lora_rank",
  },
  max_tokens: {
    TRL: "max_completion_length",
    verl: "data.max_response_length",
    SkyRL: "generator.sampling_params.max_generate_length",
    "tinker-cookbook": "max_tokens",
  },
  loss_fn_config: {
    TRL: "epsilon, epsilon_high (1 − and 1 + them)",
    verl: "actor_rollout_ref.actor.clip_ratio_low, clip_ratio_high",
    SkyRL: "trainer.algorithm.eps_clip_low, eps_clip_high",
    "tinker-cookbook": "loss_fn_config",
  },
  loss_scale: {
    TRL: "loss_type: per_token is dapo, per_answer_token grpo, constant dr_grpo",
    verl: "actor_rollout_ref.actor.loss_agg_mode: per_token is token-mean, per_answer_token seq-mean-token-mean, per_datum seq-mean-token-sum, constant seq-mean-token-sum-norm",
    SkyRL:
      "trainer.algorithm.loss_reduction: per_token is token_mean, per_answer_token sequence_mean, constant seq_mean_token_sum_norm",
  },
  advantage: {
    TRL: "scale_rewards: grpo_std is group, batch_std batch, mean none",
    verl: "algorithm.norm_adv_by_std_in_grpo: true is grpo_std, false mean",
    SkyRL: "trainer.algorithm.grpo_norm_by_std",
  },
  kl_coef: {
    TRL: "beta (there in the loss)",
    verl: "algorithm.kl_ctrl.kl_coef with use_kl_in_reward",
    "tinker-cookbook": "kl_penalty_coef",
  },
  mismatch: { TRL: "vllm_importance_sampling_mode: token_cap is token_truncate", SkyRL: "trainer.algorithm.use_tis" },
  mismatch_cap: { TRL: "vllm_importance_sampling_cap", SkyRL: "trainer.algorithm.tis_imp_ratio_cap" },
  max_lag: { "tinker-cookbook": "async_config.max_steps_off_policy" },
  num_substeps: { TRL: "num_iterations, steps_per_generation", "tinker-cookbook": "num_substeps" },
  reward_weights: { TRL: "reward_weights, a list in the order of reward_funcs" },
  mask_truncated: { TRL: "mask_truncated_completions", SkyRL: "generator.apply_overlong_filtering" },
  overlong_buffer: {
    TRL: "get_soft_overlong_punishment(…, soft_punish_cache)",
    verl: "reward_model.overlong_buffer.len",
  },
  overlong_penalty: { verl: "reward_model.overlong_buffer.penalty_factor" },
  temperature: {
    TRL: "temperature",
    verl: "actor_rollout_ref.rollout.temperature",
    SkyRL: "generator.sampling_params.temperature",
    "tinker-cookbook": "temperature",
  },
  grad_clip_norm: {
    TRL: "max_grad_norm",
    verl: "actor_rollout_ref.actor.grad_clip",
    SkyRL: "trainer.policy.optimizer_config.max_grad_norm",
  },
};
