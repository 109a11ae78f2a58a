// Made from the schema by `npm run docs`: editors show a comment of an interface, not the text of a schema.

/** Settings of a run, as docs/config.md lists them. What is left out is the preset's. */
export interface TrainSettings {
  /** a set of defaults: nano (bundled model and problems), small (a model of yours on this machine) or deepcoder, chosen by engine and model unless named; or a recipe over that one: dapo, dr_grpo. Default "deepcoder". */
  preset?: "nano" | "small" | "deepcoder" | "dapo" | "dr_grpo";
  /** base model to train a LoRA adapter on: a name of the server's; on this machine a folder, a GGUF file or a hub id. Default "Qwen/Qwen3-8B", nano "nano-coder". */
  model_name?: string;
  /** weights to begin with, with a fresh optimizer: those of a run (its last checkpoint), of RUN/CHECKPOINT, or at a tinker:// path; model, rank and chat format are theirs. Default "". */
  from?: string;
  /** how it learns: from rewards for its own answers (rl), or from answers that train_data gives (sft). Default "rl". */
  method?: "rl" | "sft";
  /** chat format, e.g. template (the model's own); "" takes the one that fits the model. Default "", nano "qwen3_instruct". */
  renderer_name?: string;
  /** whether the model reasons before it answers: on, off, low, medium, high; "" leaves it to the model. Default "". */
  thinking?: "" | "on" | "off" | "low" | "medium" | "high";
  /** folder or hub id of the tokenizer; "" asks the server, then uses model_name. Default "". */
  tokenizer?: string;
  /** Tinker-compatible server; empty: TINKER_BASE_URL, hosted Tinker, or embedded. Default "". */
  base_url?: string;
  /** what trains: embedded (the CPU), skyrl (the GPU; installed and started here), server (base_url), hosted; empty: by base_url and TINKER_API_KEY. Default "". */
  engine?: "" | "embedded" | "skyrl" | "server" | "hosted";
  /** settings of engine=skyrl's backend as JSON, over those that fit this machine, e.g. {"tensor_parallel_size":2}. Default {}. */
  engine_config?: Record<string, unknown>;
  /** interpreter that has SkyRL already, in place of the one that engine=skyrl installs. Default "". */
  engine_python?: string;
  /** problems per step. Default 8. */
  prompts_per_step?: number;
  /** answers sampled for each of them: the G of GRPO. Default 16, nano 8. */
  completions_per_prompt?: number;
  /** ask the next problem in place of each whose answers all get the same reward, until prompts_per_step teach or four times as many were asked (DAPO's dynamic sampling). Default false. */
  fill_batch?: boolean;
  /** Adam learning rate. Default 0.00004, nano 0.003. */
  learning_rate?: number;
  /** how the learning rate goes on after the warm-up: constant, or falling to zero at max_steps (linear, cosine). Default "constant". */
  lr_schedule?: "constant" | "linear" | "cosine";
  /** first steps over which the learning rate rises to its value. Default 0. */
  warmup_steps?: number;
  /** rank of the LoRA adapter. Default 32. */
  lora_rank?: number;
  /** whether the adapter has the output layer, too; vLLM serves none that has. Default true. */
  train_unembed?: boolean;
  /** step at which training ends; -1: never. Default -1, nano 40. */
  max_steps?: number;
  /** orders the data, starts the adapter and, on the embedded engine, fixes every sample. Default 0. */
  seed?: number;
  /** answers per step in all: another way to set completions_per_prompt. */
  batch_size?: number;
  /** older name of prompts_per_step, whose problems share the answers of a step. */
  group_size?: number;
  /** most tokens of one completion. Default 24576, nano 112. */
  max_tokens?: number;
  /** prompt and completion together; the server's own limit for the model wins if smaller. Default 32768, nano 512. */
  context_window?: number;
  /** problems whose prompt leaves less room than this are left out. Default 1024, nano 64. */
  min_generation?: number;
  /** sampling temperature while training. Default 1. */
  temperature?: number;
  /** tasks of one's own: a TypeScript or JavaScript module, or an npm package, whose default export is an environment; or verifiers:NAME, a Python environment of the verifiers package: an installed module, a .py file or a project's folder. Default "". */
  env?: string;
  /** what env=verifiers:NAME is loaded with, as JSON: arguments of load_environment, or the config of a taskset's environment, e.g. {"taskset":{"split":"train"}}. Default {}. */
  env_args?: Record<string, unknown>;
  /** packages to install for env=verifiers:NAME, separated by commas; "" takes verifiers and what the environment's pyproject.toml names. Default "". */
  env_packages?: string;
  /** the Python of env=verifiers:NAME: an interpreter or a virtual environment that has it; "" makes one. Default "". */
  env_python?: string;
  /** a command that plays the episodes over an OpenAI-compatible endpoint, with the problem on its input; what it prints is judged. Default "". */
  agent?: string;
  /** run the agent in a jail that reaches the endpoint alone. Default false. */
  agent_sandbox?: boolean;
  /** agents that run at the same moment; as many as a group has episodes at least. Default 16. */
  max_agents?: number;
  /** turns of an episode; 0: as many as the environment says, or 10. Default 0. */
  max_turns?: number;
  /** calls of tools in an episode; 0: as many as the environment says, or 30. Default 0. */
  max_tool_calls?: number;
  /** seconds after which an episode is given up, without a verdict. Default 900. */
  episode_timeout?: number;
  /** where the chat format writes earlier turns otherwise once a conversation goes on: begin a sequence as it writes them (template), or go on from the tokens that are there (keep). Default "template". */
  history?: "template" | "keep";
  /** loss of the policy gradient. Default "importance_sampling". */
  loss_fn?: "importance_sampling" | "ppo" | "cispo" | "gspo";
  /** settings of the loss as JSON, e.g. {"clip_high_threshold":1.3}. Default {}. */
  loss_fn_config?: Record<string, number>;
  /** what losses, which are sums, are divided by: the batch's answer tokens (per_token), its answers (per_datum), those and each answer's own tokens (per_answer_token), those and max_tokens (constant). Default "none". */
  loss_scale?: "none" | "per_token" | "per_datum" | "per_answer_token" | "constant";
  /** how rewards become advantages within a group. Default "mean". */
  advantage?: "mean" | "grpo_std" | "rloo" | "batch_std" | "maxrl" | "none";
  /** policy versions that sampling may be behind training; 0: one after the other, 1: overlapped. Default 1, nano 0. */
  max_lag?: number;
  /** what a step does about its slowest problems: wait for all, or train as soon as carry_share of them are done and carry the others over to the next step. Default "wait". */
  tail?: "wait" | "carry";
  /** tail=carry: the share of its problems that a step waits for; those carried over are waited for in the next one. Default 0.75. */
  carry_share?: number;
  /** tail=carry: begin max_lag + 1 steps together, with one policy; what is late is carried over from step to step and waited for in the first of the next round. Faster where a few answers take many times the usual time. Default false. */
  carry_rounds?: boolean;
  /** allow answers that are three versions old and more with loss_fn=importance_sampling, which nothing bounds. Default false. */
  allow_unclipped?: boolean;
  /** optimizer steps per batch; more than 1 wants loss_fn=ppo. Default 1. */
  num_substeps?: number;
  /** leave completions cut at max_tokens out of the loss, not out of the baseline. Default false. */
  mask_truncated?: boolean;
  /** Adam beta1. Default 0.9. */
  beta1?: number;
  /** Adam beta2. Default 0.95. */
  beta2?: number;
  /** Adam epsilon. Default 1e-12. */
  eps?: number;
  /** decoupled weight decay. Default 0. */
  weight_decay?: number;
  /** largest norm of the gradient; 0: no clipping. Default 0. */
  grad_clip_norm?: number;
  /** penalty for the distance from kl_reference: this times the difference of log-probabilities is taken off each token's advantage. Default 0. */
  kl_coef?: number;
  /** where that distance is from: a model, or weights in the forms of from; "" is where training began. Default "". */
  kl_reference?: string;
  /** on-policy distillation: a model, or weights in the forms of from, whose log-probabilities less the policy's are added to the advantages. Default "". */
  teacher?: string;
  /** what that difference is multiplied by. Default 1. */
  teacher_coef?: number;
  /** whether rewards teach beside the teacher (added) or are figures only (alone). Default "added". */
  teacher_mode?: "added" | "alone";
  /** for servers whose sampler is not their trainer: weigh each token by their ratio, at most mismatch_cap (token_cap), or each answer by its own, and leave out those beyond it (sequence_mask). Default "none". */
  mismatch?: "none" | "token_cap" | "sequence_mask";
  /** the largest ratio of trainer and sampler. Default 2. */
  mismatch_cap?: number;
  /** starter, deepcoder, or a path to JSONL or Parquet (commas separate several); with a language: starter:javascript. Default "deepcoder", nano "starter". */
  train_data?: string;
  /** problems for evaluation, in the same forms. Default "deepcoder", nano "starter". */
  test_data?: string;
  /** problems whose tests are larger than this are left out. Default 50000000. */
  max_tests_bytes?: number;
  /** ids of problems to leave out, separated by commas. Default []. */
  blocked_ids?: string[];
  /** language of the programs (python, cpp, go, java, javascript, lua, rust, typescript), several with commas, or any: then the answer's fence says which; a problem's column language goes before. Default "python". */
  language?: string;
  /** programs in TypeScript have to type-check: one with wrong types fails as one that does not compile. Default false. */
  typecheck?: boolean;
  /** put the prompt's first paragraph into a system message. Default false. */
  system_role?: boolean;
  /** a program is worth 1 if it passes all tests; one that does not: nothing (all) or the share it passes (fraction). Default "all". */
  reward?: "all" | "fraction";
  /** weights of several rewards, by name, e.g. {"tests":1,"length":0.2}: tests and length (fewer tokens), or the names that a reward function gives; 1 unless given, length 0. Default {}. */
  reward_weights?: Record<string, number>;
  /** penalty of an answer without a code block. Default 0.1. */
  format_coef?: number;
  /** tokens before max_tokens in which a trained answer's reward falls, to overlong_penalty at the end (DAPO's soft zone); 0: none. Default 0. */
  overlong_buffer?: number;
  /** what the longest answer loses of its reward. Default 1. */
  overlong_penalty?: number;
  /** seconds per test. Default 6, nano 1. */
  reward_timeout?: number;
  /** how outputs are compared; lcb: LiveCodeBench's rules, tokens: one stream of words, whatever the lines. Default "tolerant". */
  comparator?: "tolerant" | "lcb" | "tokens";
  /** tests run per program; 0: all. Default 0. */
  max_tests?: number;
  /** Sandbox Fusion, one or several URLs; empty: SANDBOX_URL, or the embedded jail. Default "". */
  sandbox_url?: string;
  /** programs graded at once; 0: SANDBOX_MAX_CONCURRENCY, or 4 (jail: one per core). Default 0. */
  sandbox_max_concurrency?: number;
  /** interpreter or virtual environment for the embedded jail. Default "". */
  sandbox_python?: string;
  /** packages that programs may import in the embedded jail, separated by commas; installed on first use. Default "". */
  sandbox_packages?: string;
  /** memory of a graded program, all its processes together, in MiB. Default 4096. */
  sandbox_memory_mb?: number;
  /** steps between checks that the grader still judges right; 0 or -1: only at the start. Default 50. */
  canary_every?: number;
  /** steps between evaluations; 0 or -1: none. Default 10, nano 40. */
  eval_every?: number;
  /** problems per evaluation, a fixed share of each source; 0: all. Default 128, nano 0. */
  eval_max_problems?: number;
  /** samples per problem when evaluating. Default 1. */
  eval_num_samples?: number;
  /** sampling temperature when evaluating; 0: greedy. Default 0. */
  eval_temperature?: number;
  /** most tokens of an evaluated completion; 0: max_tokens. Default 0. */
  eval_max_tokens?: number;
  /** run directory; empty: ~/code-rl-logs/YYYY_MM_DD-HH_MM_SS. Default "". */
  log_path?: string;
  /** what to do with a run directory that exists; without a terminal, ask means: resume the same run, else stop. Default "ask". */
  behavior_if_log_dir_exists?: "ask" | "resume" | "delete" | "raise";
  /** resume although model, rank, renderer, seed or data changed. Default false. */
  force_resume?: boolean;
  /** checkpoint: tokens and logprobs of steps before the newest checkpoint are dropped from the journal. Default "all". */
  keep_journal?: "all" | "checkpoint";
  /** seconds without progress after which a stage is named; after twice that the run ends; 0: never. Default 1800. */
  stage_deadline?: number;
  /** seconds that the server or the sandbox may give no answer before the run ends, to be resumed; 0: until stage_deadline ends it. Default 1800. */
  outage_patience?: number;
  /** what a finding of level error does: rollback goes back to the last healthy checkpoint with half the learning rate, twice at most. Default "warn". */
  on_error?: "warn" | "pause" | "stop" | "rollback";
  /** steps between checkpoints; 0 or -1: only at the end. Default 10. */
  save_every?: number;
  /** life of periodic checkpoints on the server; 0: for ever. Default 604800. */
  ttl_seconds?: number;
  /** US dollars that the run may cost, all its starts together; it saves and stops before they are spent. Default null. */
  budget?: number | null;
  /** US dollars per million prompt tokens, instead of the price that is known. Default null. */
  price_prefill?: number | null;
  /** the same for prompt tokens that the server had cached; a fifth of price_prefill unless given. Default null. */
  price_cached_prefill?: number | null;
  /** the same for sampled tokens. Default null. */
  price_sample?: number | null;
  /** the same for tokens trained on, prompts included. Default null. */
  price_train?: number | null;
  /** groups per step written in full to logs.log. Default 4. */
  num_groups_to_log?: number;
  /** serve the run's dashboard on this machine while it trains, and print its link. Default true. */
  dashboard?: boolean;
  /** write TensorBoard event files into the run directory. Default true. */
  tensorboard?: boolean;
  /** Weights & Biases project; needs WANDB_API_KEY. Default "". */
  wandb_project?: string;
  /** name of the run there; empty: the run directory's name. Default "". */
  wandb_name?: string;
}
