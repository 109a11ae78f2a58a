// Every key of a run's config: its check, default, help text and what it is to a run, in one entry; those that surround training are in
// config-run.ts. Help groups are the sections here.
import { z } from "zod";
import { languageNames, languagesNamed } from "../core/languages/languages.ts";
import { comparatorNames } from "../grading/index.ts";
import { policyLossNames } from "../protocol/losses.ts";
import { thinkingModes } from "../renderers/index.ts";
import { lossScales, mismatchNames } from "../runs/events.ts";
import { advantageNames } from "./advantages.ts";
import { answers, groups, identity, place, setting } from "./config-entry.ts";
import { runGroups } from "./config-run.ts";
import { scheduleNames } from "./schedule.ts";

export const enginePresets = ["nano", "small", "deepcoder"] as const;
export const recipeNames = ["dapo", "dr_grpo"] as const;

/** The engines of this machine, which cost nothing. */
export const localEngineNames = ["embedded", "skyrl"] as const;
/** What trains: one of those, the server at an address, or Thinking Machines' service. */
export const engineNames = [...localEngineNames, "server", "hosted"] as const;

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

/** The keys in the order of help and docs/config.md, under the titles of their groups. */
export const configGroups = {
  "Model and server": {
    preset: setting(
      z.enum([...enginePresets, ...recipeNames]).default("deepcoder"),
      "a set of defaults: nano (bundled model and problems), small (a model of yours on this machine) or deepcoder, chosen by engine and model unless named; or a recipe over that one: dapo, dr_grpo",
      { shown: "both", asking: true },
    ),
    model_name: identity(
      z.string().default("Qwen/Qwen3-8B"),
      "base model to train a LoRA adapter on: a name of the server's; on this machine a folder, a GGUF file or a hub id",
      { shown: "start", asking: true, path: "file" },
    ),
    from: identity(
      z.string().default(""),
      "weights to begin with, with a fresh optimizer: those of a run (its last checkpoint), of RUN/CHECKPOINT, or at a tinker:// path; model, rank and chat format are theirs",
      { shown: "card", path: "file" },
    ),
    method: identity(
      z.enum(["rl", "sft"]).default("rl"),
      "how it learns: from rewards for its own answers (rl), or from answers that train_data gives (sft)",
      { shown: "card" },
    ),
    renderer_name: identity(
      z.string().default(""),
      'chat format, e.g. template (the model\'s own); "" takes the one that fits the model',
      { shown: "card", asking: true },
    ),
    thinking: identity(
      z.enum(thinkingModes).default(""),
      'whether the model reasons before it answers: on, off, low, medium, high; "" leaves it to the model',
      { shown: "card", asking: true },
    ),
    tokenizer: answers(
      z.string().default(""),
      'folder or hub id of the tokenizer; "" asks the server, then uses model_name',
      { asking: true, path: "file" },
    ),
    base_url: place(
      z.string().default(""),
      "Tinker-compatible server; empty: TINKER_BASE_URL, hosted Tinker, or embedded",
      { asking: true, variable: "TINKER_BASE_URL", secret: true },
    ),
    engine: setting(
      z.enum(["", ...engineNames]).default(""),
      "what trains: embedded (the CPU), skyrl (the GPU; installed and started here), server (base_url), hosted; empty: by base_url and TINKER_API_KEY",
      { asking: true },
    ),
    engine_config: setting(
      z.record(z.string(), z.unknown()).default({}),
      'settings of engine=skyrl\'s backend as JSON, over those that fit this machine, e.g. {"tensor_parallel_size":2}',
      { asking: true },
    ),
    engine_python: place(
      z.string().default(""),
      "interpreter that has SkyRL already, in place of the one that engine=skyrl installs",
      { asking: true, path: "file" },
    ),
  },

  Steps: {
    prompts_per_step: groups(z.int().min(1).default(8), "problems per step", { shown: "both" }),
    completions_per_prompt: groups(z.int().min(1).default(16), "answers sampled for each of them: the G of GRPO", {
      shown: "both",
    }),
    fill_batch: groups(
      z.boolean().default(false),
      "ask the next problem in place of each whose answers all get the same reward, until prompts_per_step teach or four times as many were asked (DAPO's dynamic sampling)",
      { shown: "both" },
    ),
    learning_rate: setting(positive.default(4e-5), "Adam learning rate", { shown: "both" }),
    lr_schedule: setting(
      z.enum(scheduleNames).default("constant"),
      "how the learning rate goes on after the warm-up: constant, or falling to zero at max_steps (linear, cosine)",
      { shown: "card" },
    ),
    warmup_steps: setting(count.default(0), "first steps over which the learning rate rises to its value", {
      shown: "card",
    }),
    lora_rank: identity(z.int().min(1).default(32), "rank of the LoRA adapter", { shown: "both" }),
    train_unembed: identity(
      z.boolean().default(true),
      "whether the adapter has the output layer, too; vLLM serves none that has",
      { shown: "card" },
    ),
    max_steps: setting(z.int().min(-1).default(-1), "step at which training ends; -1: never", { shown: "start" }),
    seed: identity(
      z.int().min(0).default(0),
      "orders the data, starts the adapter and, on the embedded engine, fixes every sample",
      { shown: "both", asking: true },
    ),
  },

  Answers: {
    max_tokens: answers(z.int().min(1).default(24576), "most tokens of one completion", {
      shown: "both",
      asking: true,
    }),
    context_window: answers(
      z.int().min(16).default(32768),
      "prompt and completion together; the server's own limit for the model wins if smaller",
      { shown: "card", asking: true },
    ),
    min_generation: setting(
      z.int().min(1).default(1024),
      "problems whose prompt leaves less room than this are left out",
    ),
    temperature: groups(positive.default(1.0), "sampling temperature while training", { shown: "both" }),
  },

  Episodes: {
    env: place(
      z.string().default(""),
      "tasks of one's own: a TypeScript or JavaScript module, or an npm package, whose default export is an environment; or verifiers:NAME, a Python environment of the verifiers package: an installed module, a .py file or a project's folder",
      { shown: "both", asking: true, path: "file" },
    ),
    env_args: place(
      z.record(z.string(), z.unknown()).default({}),
      'what env=verifiers:NAME is loaded with, as JSON: arguments of load_environment, or the config of a taskset\'s environment, e.g. {"taskset":{"split":"train"}}',
      { asking: true },
    ),
    env_packages: place(
      z.string().default(""),
      'packages to install for env=verifiers:NAME, separated by commas; "" takes verifiers and what the environment\'s pyproject.toml names',
      { asking: true },
    ),
    env_python: place(
      z.string().default(""),
      'the Python of env=verifiers:NAME: an interpreter or a virtual environment that has it; "" makes one',
      { asking: true, path: "file" },
    ),
    agent: answers(
      z.string().default(""),
      "a command that plays the episodes over an OpenAI-compatible endpoint, with the problem on its input; what it prints is judged",
      { shown: "both", asking: true },
    ),
    agent_sandbox: answers(z.boolean().default(false), "run the agent in a jail that reaches the endpoint alone", {
      asking: true,
    }),
    max_agents: answers(
      z.int().min(1).default(16),
      "agents that run at the same moment; as many as a group has episodes at least",
      { asking: true },
    ),
    max_turns: answers(count.default(0), "turns of an episode; 0: as many as the environment says, or 10", {
      asking: true,
    }),
    max_tool_calls: answers(
      count.default(0),
      "calls of tools in an episode; 0: as many as the environment says, or 30",
      {
        asking: true,
      },
    ),
    episode_timeout: answers(
      z.number().positive().default(900),
      "seconds after which an episode is given up, without a verdict",
      { asking: true },
    ),
    history: answers(
      z.enum(["template", "keep"]).default("template"),
      "where the chat format writes earlier turns otherwise once a conversation goes on: begin a sequence as it writes them (template), or go on from the tokens that are there (keep)",
      { shown: "card", asking: true },
    ),
  },

  Learning: {
    loss_fn: setting(
      z
        .enum(loopLosses, { error: ({ input }) => (input === "dro" ? whyNotDro : undefined) })
        .default("importance_sampling"),
      "loss of the policy gradient",
      { shown: "both" },
    ),
    loss_fn_config: setting(
      z.record(z.string(), z.number()).default({}),
      'settings of the loss as JSON, e.g. {"clip_high_threshold":1.3}',
    ),
    loss_scale: setting(
      z.enum(lossScales).default("none"),
      "what losses, which are sums, are divided by: the batch's answer tokens (per_token), its answers (per_datum), those and each answer's own tokens (per_answer_token), those and max_tokens (constant)",
      { shown: "card", replayed: true },
    ),
    advantage: setting(z.enum(advantageNames).default("mean"), "how rewards become advantages within a group", {
      shown: "both",
      replayed: true,
    }),
    max_lag: setting(
      z.int().min(0).max(64).default(1),
      "policy versions that sampling may be behind training; 0: one after the other, 1: overlapped",
      { shown: "both" },
    ),
    tail: setting(
      z.enum(["wait", "carry"]).default("wait"),
      "what a step does about its slowest problems: wait for all, or train as soon as carry_share of them are done and carry the others over to the next step",
      { shown: "both" },
    ),
    carry_share: setting(
      z.number().min(0.25).max(1).default(0.75),
      "tail=carry: the share of its problems that a step waits for; those carried over are waited for in the next one",
    ),
    carry_rounds: setting(
      z.boolean().default(false),
      "tail=carry: begin max_lag + 1 steps together, with one policy; what is late is carried over from step to step and waited for in the first of the next round. Faster where a few answers take many times the usual time",
    ),
    allow_unclipped: setting(
      z.boolean().default(false),
      "allow answers that are three versions old and more with loss_fn=importance_sampling, which nothing bounds",
    ),
    num_substeps: setting(z.int().min(1).default(1), "optimizer steps per batch; more than 1 wants loss_fn=ppo", {
      shown: "card",
    }),
    mask_truncated: setting(
      z.boolean().default(false),
      "leave completions cut at max_tokens out of the loss, not out of the baseline",
      { replayed: true },
    ),
    beta1: setting(z.number().min(0).lt(1).default(0.9), "Adam beta1"),
    beta2: setting(z.number().min(0).lt(1).default(0.95), "Adam beta2"),
    eps: setting(positive.default(1e-12), "Adam epsilon"),
    weight_decay: setting(z.number().min(0).default(0), "decoupled weight decay"),
    grad_clip_norm: setting(z.number().min(0).default(0), "largest norm of the gradient; 0: no clipping"),
  },

  "Teachers and corrections": {
    kl_coef: setting(
      z.number().min(0).default(0),
      "penalty for the distance from kl_reference: this times the difference of log-probabilities is taken off each token's advantage",
      { shown: "card" },
    ),
    kl_reference: setting(
      z.string().default(""),
      'where that distance is from: a model, or weights in the forms of from; "" is where training began',
      { path: "file" },
    ),
    teacher: setting(
      z.string().default(""),
      "on-policy distillation: a model, or weights in the forms of from, whose log-probabilities less the policy's are added to the advantages",
      { shown: "both", path: "file" },
    ),
    teacher_coef: setting(positive.default(1), "what that difference is multiplied by", { shown: "card" }),
    teacher_mode: setting(
      z.enum(["added", "alone"]).default("added"),
      "whether rewards teach beside the teacher (added) or are figures only (alone)",
      { shown: "card" },
    ),
    mismatch: setting(
      z.enum(mismatchNames).default("none"),
      "for servers whose sampler is not their trainer: weigh each token by their ratio, at most mismatch_cap (token_cap), or each answer by its own, and leave out those beyond it (sequence_mask)",
      { shown: "card" },
    ),
    mismatch_cap: setting(z.number().min(1).default(2), "the largest ratio of trainer and sampler"),
  },

  Problems: {
    train_data: setting(
      z.string().default("deepcoder"),
      "starter, deepcoder, or a path to JSONL or Parquet (commas separate several); with a language: starter:javascript",
      { path: "data" },
    ),
    test_data: setting(z.string().default("deepcoder"), "problems for evaluation, in the same forms", {
      asking: true,
      path: "data",
    }),
    max_tests_bytes: setting(
      z.int().min(1).default(50_000_000),
      "problems whose tests are larger than this are left out",
    ),
    blocked_ids: setting(z.array(z.string()).default([]), "ids of problems to leave out, separated by commas"),
    language: answers(
      z
        .string()
        .refine(
          (text) => languagesNamed(text) !== undefined,
          `no language; there are ${languageNames.join(", ")} and any`,
        )
        .default("python"),
      `language of the programs (${languageNames.join(", ")}), several with commas, or any: then the answer's fence says which; a problem's column language goes before`,
      { shown: "card", asking: true },
    ),
    typecheck: answers(
      z.boolean().default(false),
      "programs in TypeScript have to type-check: one with wrong types fails as one that does not compile",
      { asking: true },
    ),
    system_role: answers(z.boolean().default(false), "put the prompt's first paragraph into a system message", {
      asking: true,
    }),
  },

  "Rewards and the sandbox": {
    reward: answers(
      z.enum(["all", "fraction"]).default("all"),
      "a program is worth 1 if it passes all tests; one that does not: nothing (all) or the share it passes (fraction)",
    ),
    reward_weights: answers(
      z.record(z.string(), z.number()).default({}),
      'weights of several rewards, by name, e.g. {"tests":1,"length":0.2}: tests and length (fewer tokens), or the names that a reward function gives; 1 unless given, length 0',
      { shown: "card" },
    ),
    format_coef: answers(z.number().min(0).default(0.1), "penalty of an answer without a code block", {
      shown: "both",
      replayed: true,
    }),
    overlong_buffer: groups(
      count.default(0),
      "tokens before max_tokens in which a trained answer's reward falls, to overlong_penalty at the end (DAPO's soft zone); 0: none",
      { shown: "card" },
    ),
    overlong_penalty: groups(z.number().min(0).default(1), "what the longest answer loses of its reward"),
    reward_timeout: answers(positive.default(6), "seconds per test", { shown: "both", asking: true }),
    comparator: answers(
      z.enum(comparatorNames).default("tolerant"),
      "how outputs are compared; lcb: LiveCodeBench's rules, tokens: one stream of words, whatever the lines",
      { shown: "card", asking: true },
    ),
    max_tests: answers(count.default(0), "tests run per program; 0: all"),
    sandbox_url: place(
      z.string().default(""),
      "Sandbox Fusion, one or several URLs; empty: SANDBOX_URL, or the embedded jail",
      { asking: true, variable: "SANDBOX_URL", secret: true },
    ),
    sandbox_max_concurrency: setting(
      count.default(0),
      "programs graded at once; 0: SANDBOX_MAX_CONCURRENCY, or 4 (jail: one per core)",
      { variable: "SANDBOX_MAX_CONCURRENCY" },
    ),
    sandbox_python: answers(z.string().default(""), "interpreter or virtual environment for the embedded jail", {
      asking: true,
      path: "file",
    }),
    sandbox_packages: answers(
      z.string().default(""),
      "packages that programs may import in the embedded jail, separated by commas; installed on first use",
      { asking: true },
    ),
    sandbox_memory_mb: answers(
      z.int().min(1).default(4096),
      "memory of a graded program, all its processes together, in MiB",
      { asking: true },
    ),
    canary_every: setting(
      z.int().min(-1).default(50),
      "steps between checks that the grader still judges right; 0 or -1: only at the start",
    ),
  },

  ...runGroups,
};

type Merged<Union> = (Union extends unknown ? (part: Union) => void : never) extends (whole: infer Whole) => void
  ? Whole
  : never;
type Groups = typeof configGroups;

export const configKeys: Merged<Groups[keyof Groups]> = Object.assign({}, ...Object.values(configGroups));
