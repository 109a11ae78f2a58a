// What a change of settings makes of answers that an earlier process left.
import { expect, test } from "vitest";
import type { NewEvent, RunEvent } from "../runs/events.ts";
import { configKeys } from "./config-keys.ts";
import { recordedFacts } from "./config-roles.ts";
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

test("what comes before the newest checkpoint is not held, and said not to be", () => {
  const events: NewEvent[] = [0, 1, 2].map((batch) => ({ ...sampled("train"), batch }) as NewEvent);
  const saved = (step: number): NewEvent => ({
    type: "saved",
    record: { name: `${step}`, step, dataset_offset: step, state_path: `tinker://m/${step}` },
    start: 0,
    end: 1,
  });
  const held = (recovered: Recovered, ...more: NewEvent[]) => {
    for (const event of [...events, ...more]) recovered.take({ ...event, at: 0 } as RunEvent);
    const groups = [0, 1, 2].filter((batch) => recovered.group({ phase: "train", batch, group: 0 }));
    return { from: recovered.from, groups, checkpoints: recovered.checkpoints.map(({ step }) => step) };
  };
  const [one, two] = [saved(1), saved(2)];
  expect(held(new Recovered(), one, two)).toEqual({ from: 2, groups: [2], checkpoints: [2, 1] });
  expect(held(new Recovered(1), one, two)).toEqual({ from: 1, groups: [1, 2], checkpoints: [2, 1] });
  const back: NewEvent = { type: "rewound", to: 1, reason: "test" };
  expect(held(new Recovered(), one, two, back)).toEqual({ from: 1, groups: [], checkpoints: [1] });
});

/** Whether another value of a key drops groups that are not trained on yet, and evaluations that have not ended. */
function dropped(key: string): string {
  const changes = [{ key, was: 1, is: 2 }];
  const events: NewEvent[] = [sampled("train"), sampled("eval"), { type: "started", session: 1, config: {}, changes }];
  const recovered = new Recovered();
  for (const event of events) recovered.take({ ...event, at: 0 } as RunEvent, { hasArrays: true, arrays: () => ({}) });
  return [recovered.hasStaleGroups(0) ? "groups" : "", recovered.staleEvaluations().length > 0 ? "evaluations" : ""]
    .filter(Boolean)
    .join(" and ");
}

/** By what another value drops. The keys that are not here drop nothing: what they change is in the record of every update, in the fingerprints, in a checkpoint, or counts from the next batch, save or evaluation on. */
const expected: Readonly<Record<string, string>> = {
  "groups and evaluations":
    "model_name from method lora_rank train_unembed language renderer_name thinking tokenizer seed max_tokens context_window system_role prompt_template reward reward_weights format_coef " +
    "reward_timeout comparator max_tests typecheck sandbox sandbox_python sandbox_packages sandbox_memory_mb data_fingerprint " +
    "max_turns max_tool_calls episode_timeout history environment agent agent_sandbox max_agents",
  groups: "prompts_per_step completions_per_prompt fill_batch temperature overlong_buffer overlong_penalty",
  evaluations: "eval_num_samples eval_temperature eval_max_tokens eval_ids_hash test_fingerprint",
};

test("groups and evaluations are of one value of every setting that says what is asked and how it is judged", () => {
  const known = Object.entries(expected).flatMap(([drops, keys]) => keys.split(" ").map((key) => [key, drops]));
  const names = Object.keys({ ...configKeys, ...recordedFacts });
  const nothing = Object.fromEntries(names.map((key) => [key, ""]));
  expect(Object.fromEntries(names.map((key) => [key, dropped(key)]))).toEqual({
    ...nothing,
    ...Object.fromEntries(known),
  });
});
