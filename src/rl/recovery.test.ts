// What a change of settings makes of answers that an earlier process left.
import { expect, test } from "vitest";
import type { NewEvent, RunEvent } from "../runs/events.ts";
import { TrainConfig } from "./config.ts";
import { Recovered } from "./recovery.ts";

const sampled = (phase: "train" | "eval"): NewEvent => ({
  type: "group-sampled",
  phase,
  batch: 0,
  group: 0,
  policy: 0,
  problem: "p",
  source: "s",
  datasetIndex: 0,
  seed: 1,
  temperature: 1,
  promptTokens: 1,
  cachedTokens: 0,
  samples: [],
  start: 0,
  end: 1,
});

/** Whether another value of a key drops groups that are not trained on yet, and evaluations that have not ended. */
function dropped(key: string): string {
  const changes = [{ key, was: 1, is: 2 }];
  const events: NewEvent[] = [sampled("train"), sampled("eval"), { type: "started", session: 1, config: {}, changes }];
  const recovered = new Recovered(
    events.map((event) => ({ event: { ...event, at: 0 } as RunEvent, hasArrays: true, arrays: () => ({}) })),
    0,
  );
  return [recovered.hasStaleGroups(0) ? "groups" : "", recovered.staleEvaluations().length > 0 ? "evaluations" : ""]
    .filter(Boolean)
    .join(" and ");
}

/** Every key of the config, and what stands in config.json besides. A new key has to be put somewhere. */
const expected: Readonly<Record<string, string>> = {
  "groups and evaluations":
    "model_name renderer_name thinking tokenizer seed max_tokens context_window system_role prompt_template reward format_coef " +
    "reward_timeout comparator max_tests sandbox sandbox_python sandbox_packages sandbox_memory_mb",
  groups: "batch_size group_size temperature data_fingerprint",
  evaluations: "eval_num_samples eval_temperature eval_max_tokens eval_ids_hash test_fingerprint",
  "":
    // In the record of every update.
    "learning_rate loss_fn loss_fn_config loss_scale advantage num_substeps mask_truncated beta1 beta2 eps weight_decay grad_clip_norm " +
    // What they change about the problems is in the fingerprints.
    "train_data test_data max_tests_bytes blocked_ids min_generation eval_max_problems " +
    // A checkpoint's own.
    "lora_rank load_checkpoint_path " +
    // From the next batch, save or evaluation on.
    "max_steps max_lag allow_unclipped eval_every save_every ttl_seconds canary_every on_error budget keep_journal stage_deadline outage_patience " +
    // Where things are, how many at a time, what is shown and paid.
    "preset base_url sandbox_url sandbox_max_concurrency log_path behavior_if_log_dir_exists force_resume num_groups_to_log dashboard " +
    "price_prefill price_cached_prefill price_sample price_train tensorboard wandb_project wandb_name",
};

test("groups and evaluations are of one value of every setting that says what is asked and how it is judged", () => {
  const known = Object.entries(expected).flatMap(([drops, keys]) => keys.split(" ").map((key) => [key, drops]));
  expect(Object.fromEntries(known.map(([key]) => [key, dropped(key!)]))).toEqual(Object.fromEntries(known));
  const names = new Set(known.map(([key]) => key));
  expect(Object.keys(TrainConfig.shape).filter((key) => !names.has(key))).toEqual([]);
});
