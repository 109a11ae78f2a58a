import { expect, test } from "vitest";
import { presetConfig } from "./config.ts";
import { resolveSettings } from "./given-settings.ts";
import type { TrainSettings } from "./settings.ts";

test("the sizes of a step by the names of docs/config.md, over the preset's", () => {
  expect(resolveSettings()).toEqual(presetConfig("deepcoder"));
  expect(resolveSettings({ preset: "nano", prompts_per_step: 3, completions_per_prompt: 4 })).toEqual({
    ...presetConfig("nano"),
    prompts_per_step: 3,
    completions_per_prompt: 4,
  });
  expect(resolveSettings({ prompts_per_step: 4 })).toMatchObject({ prompts_per_step: 4, completions_per_prompt: 16 });
  expect(resolveSettings({ group_size: 4 })).toMatchObject({ prompts_per_step: 4, completions_per_prompt: 32 });
  expect(resolveSettings({ batch_size: 32 })).toMatchObject({ prompts_per_step: 8, completions_per_prompt: 4 });
});

test("a key that is undefined is the preset's", () => {
  const settings = { preset: "nano", learning_rate: undefined } as unknown as TrainSettings;
  expect(resolveSettings(settings)).toEqual(presetConfig("nano"));
});

test.each([
  [{ learning_rte: 1 }, "config/unknown-key", /config has no key "learning_rte"\. Did you mean "learning_rate"/],
  [{ nonsense_of_mine: 1 }, "config/unknown-key", /docs\/config\.md lists/],
  [{ learning_rate: "fast" }, "config/bad-value", /config\.learning_rate is not valid/],
  [{ prompts_per_step: 0 }, "config/bad-value", /config\.prompts_per_step is not valid/],
  [{ prompts_per_step: 2, group_size: 3 }, "config/conflict", /two names of one setting/],
  [{ batch_size: 130 }, "config/batch-size", /128 or 136/],
  [{ engine: "skyrl" }, "config/conflict", /started by the command alone/],
  [{ completions_per_prompt: 3, batch_size: 8 }, "config/conflict", /batch_size=8 was given too/],
])("%j is refused", (settings, code, message) => {
  expect(() => resolveSettings(settings as TrainSettings)).toThrow(
    expect.objectContaining({ code, message: expect.stringMatching(message) }),
  );
});
