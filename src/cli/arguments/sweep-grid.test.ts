// How words become runs: what takes several values, in which way, and that the same runs come of them however they are written.

import { describe, expect, test } from "vitest";
import type { z } from "zod";
import { choicesOf, sortArguments, takesCommas } from "./options.ts";
import { gridOf, SweepArguments } from "./sweep-grid.ts";
import { parseTrainArguments, TrainArguments } from "./train-config.ts";

const grid = (...args: string[]) => gridOf(sortArguments(SweepArguments, args));
const names = (...args: string[]) => grid(...args).members.map(({ name }) => name);
const fields = Object.entries(TrainArguments.shape) as [string, z.ZodType][];

test("every combination is a run, named by its values; the last key changes from run to run", () => {
  const { keys, members } = grid("seed=0,1", "max_steps=8", "learning_rate=1e-3,4e-3,0.01", "--train-unembed=no,yes");
  expect(keys).toEqual(["learning_rate", "train_unembed", "seed"]);
  expect(members).toHaveLength(12);
  expect(new Set(members.map(({ name }) => name)).size).toBe(12);
  expect(members[0]).toMatchObject({
    name: "learning_rate-0.001+train_unembed-false+seed-0",
    values: ["0.001", "false", "0"],
    words: ["max_steps=8", "learning_rate=1e-3", "train_unembed=no", "seed=0"],
    parsed: { given: { learning_rate: 1e-3, train_unembed: false, seed: 0, max_steps: 8 } },
  });
  expect(members[1]!.values).toEqual(["0.001", "false", "1"]);
});

test("the same values in other words are the same runs", () => {
  const once = names("learning_rate=0.004,1e-3", "seed=1,2");
  expect(names("seed=1", "--learning-rate", "4e-3,0.001", "seed=2").toSorted()).toEqual(once.toSorted());
});

describe("what is split at commas follows from the schema", () => {
  test("what is split has no value with a comma", () => {
    const split = fields.filter(([, field]) => !takesCommas(field));
    expect(split.length).toBeGreaterThan(50);
    for (const [key, field] of split) {
      const values = choicesOf(field).length > 1 ? choicesOf(field).slice(0, 2) : ["1", "0"];
      expect(() => parseTrainArguments([`${key}=${values.join(",")}`]), key).toThrow("is not valid");
    }
  });

  test("text, lists and JSON stay whole, and are given once for each value", () => {
    expect(grid("train_data=a.jsonl,b.jsonl", "blocked_ids=x,y", 'reward_weights={"tests":1,"length":2}').keys).toEqual(
      [],
    );
    const { keys, members } = grid(
      "train_data=a,b",
      "seed=0",
      'reward_weights={"tests":1}',
      "train_data=c",
      'reward_weights={"tests":2}',
    );
    expect(keys).toEqual(["train_data", "reward_weights"]);
    expect(members.map(({ parsed: { given } }) => [given.train_data, given.reward_weights])).toEqual([
      ["a,b", { tests: 1 }],
      ["a,b", { tests: 2 }],
      ["c", { tests: 1 }],
      ["c", { tests: 2 }],
    ]);
    for (const { name } of members) expect(name).toMatch(/^[\w.+-]+$/);
  });

  test("names are folders whatever the values are", () => {
    const long = ["x".repeat(300), "../../y", "$(rm)", "a/b", "a-b", ""].map((text) => `teacher=${text}`);
    const found = names(
      ...long,
      ...["1", "2"].flatMap((n) => [`from=${"f".repeat(99)}${n}`, `tokenizer=${"t".repeat(99)}${n}`]),
      "wandb_name=a",
      "wandb_name=b",
      "wandb_project=p",
      "wandb_project=q",
    );
    expect(new Set(found).size).toBe(6 * 2 * 2 * 2 * 2);
    for (const name of found) expect(name).toMatch(/^(?=.{1,255}$)[\w][\w.+-]*$/);
  });
});

test.each([
  [["learning_rate=1e-3,0.001"], "config/sweep-twice", /learning_rate=0\.001 is named twice/],
  [["seed=0,x"], "config/bad-value", /seed=x is not valid/],
  [["seed=0,"], "config/bad-value", /seed= is not valid/],
  [["lerning_rate=1,2"], "config/unknown-key", /Did you mean "learning_rate"/],
  [["behavior_if_log_dir_exists=delete", "seed=0,1"], "config/sweep-key", /Leave behavior_if_log_dir_exists out/],
  [
    [`seed=${Array.from({ length: 51 }, (_, seed) => seed).join(",")}`, "lora_rank=4,8"],
    "config/sweep-size",
    /are 102 runs.* 100 at most/,
  ],
])("%j is refused", (args, code, message) => {
  expect(() => grid(...args)).toThrow(expect.objectContaining({ code, message: expect.stringMatching(message) }));
});
