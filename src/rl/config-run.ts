// The keys of what surrounds training: evaluations, the run directory and its life, money, logs. See config-keys.ts for the others.
import { z } from "zod";
import { sinkKeys } from "../runs/sink-kinds.ts";
import { evaluations, place, setting, settings, start } from "./config-entry.ts";

const count = z.int().min(0);
const price = z.number().min(0).nullable().default(null);

export const runGroups = {
  Evaluation: {
    eval_every: setting(z.int().min(-1).default(10), "steps between evaluations; 0 or -1: none", { shown: "start" }),
    eval_max_problems: setting(count.default(128), "problems per evaluation, a fixed share of each source; 0: all"),
    eval_num_samples: evaluations(z.int().min(1).default(1), "samples per problem when evaluating"),
    eval_temperature: evaluations(z.number().min(0).default(0), "sampling temperature when evaluating; 0: greedy"),
    eval_max_tokens: evaluations(count.default(0), "most tokens of an evaluated completion; 0: max_tokens"),
  },

  "The run": {
    log_path: start(z.string().default(""), "run directory; empty: ~/code-rl-logs/YYYY_MM_DD-HH_MM_SS"),
    behavior_if_log_dir_exists: start(
      z.enum(["ask", "resume", "delete", "raise"]).default("ask"),
      "what to do with a run directory that exists; without a terminal, ask means: resume the same run, else stop",
    ),
    force_resume: start(z.boolean().default(false), "resume although model, rank, renderer, seed or data changed"),
    keep_journal: setting(
      z.enum(["all", "checkpoint"]).default("all"),
      "checkpoint: tokens and logprobs of steps before the newest checkpoint are dropped from the journal",
    ),
    stage_deadline: setting(
      z.number().min(0).default(1800),
      "seconds without progress after which a stage is named; after twice that the run ends; 0: never",
    ),
    outage_patience: setting(
      z.number().min(0).default(1800),
      "seconds that the server or the sandbox may give no answer before the run ends, to be resumed; 0: until stage_deadline ends it",
    ),
    on_error: setting(
      z.enum(["warn", "pause", "stop", "rollback"]).default("warn"),
      "what a finding of level error does: rollback goes back to the last healthy checkpoint with half the learning rate, twice at most",
    ),
    save_every: setting(z.int().min(-1).default(10), "steps between checkpoints; 0 or -1: only at the end", {
      shown: "start",
    }),
    ttl_seconds: setting(count.default(604_800), "life of periodic checkpoints on the server; 0: for ever"),
  },

  Money: {
    budget: setting(
      z.number().positive().nullable().default(null),
      "US dollars that the run may cost, all its starts together; it saves and stops before they are spent",
    ),
    price_prefill: setting(price, "US dollars per million prompt tokens, instead of the price that is known"),
    price_cached_prefill: setting(
      price,
      "the same for prompt tokens that the server had cached; a fifth of price_prefill unless given",
    ),
    price_sample: setting(price, "the same for sampled tokens"),
    price_train: setting(price, "the same for tokens trained on, prompts included"),
  },

  "Logs, curves and the dashboard": {
    num_groups_to_log: setting(count.default(4), "groups per step written in full to logs.log"),
    dashboard: place(
      z.boolean().default(true),
      "serve the run's dashboard on this machine while it trains, and print its link",
    ),
    ...settings(sinkKeys),
  },
};
