// The settings that a run is gone on with, from what it wrote down.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test, vi } from "vitest";
import { temporaryFolders } from "../../../test/support/folders.ts";
import { presetConfig } from "../../rl/config.ts";
import { engineOfRun } from "../weights/find-weights.ts";
import { recordedSettings, settingsOfRun } from "./run-settings.ts";

const folders = temporaryFolders();

/** A folder with the config.json of a run. */
function recorded(changes: Record<string, unknown>): string {
  const folder = folders();
  writeFileSync(
    join(folder, "config.json"),
    JSON.stringify({ ...presetConfig("nano"), engine: "embedded", ...changes }),
  );
  return folder;
}

test("every setting is the run's, but for those of one command", () => {
  const once = { log_path: "/elsewhere", behavior_if_log_dir_exists: "delete", force_resume: true };
  const run = recorded({ learning_rate: 1e-3, budget: 5, blocked_ids: ["a"], data_fingerprint: "x", ...once });
  expect(recordedSettings(run)).toEqual({
    config: { ...presetConfig("nano"), engine: "embedded", learning_rate: 1e-3, budget: 5, blocked_ids: ["a"] },
    notices: [],
  });
  expect(recordedSettings(run, { base_url: "http://here:1" }).config.engine).toBe("");
  expect(recordedSettings(recorded({ engine: "hosted" })).config.engine).toBe("");
});

test("a value that somebody broke is named with its file", () => {
  const run = recorded({ learning_rate: "fast" });
  expect(() => recordedSettings(run)).toThrow(
    expect.objectContaining({
      code: "config/bad-value",
      message: expect.stringContaining("config.json: learning_rate"),
    }),
  );
});

test("a value that is refused today does not keep a run from going on with another, nor from being looked at", async () => {
  const run = recorded({ loss_fn: "dro", advantage: "gone", learning_rate: 1e-3 });
  expect(() => recordedSettings(run, { loss_fn: "ppo" })).toThrow(/config\.json: advantage is not valid/);
  const { config } = recordedSettings(run, { loss_fn: "ppo", advantage: "rloo" });
  expect(config).toMatchObject({ learning_rate: 1e-3, loss_fn: "importance_sampling", advantage: "mean" });
  // `eval` and `sample` make no updates.
  expect(await settingsOfRun(run, {}, new Set())).toMatchObject({ model_name: "nano-coder", learning_rate: 1e-3 });
  const unknown = recorded({ comparator: "gone" });
  await expect(settingsOfRun(unknown, {}, new Set())).rejects.toMatchObject({ code: "config/bad-value" });
  const given = { comparator: "lcb" };
  expect(await settingsOfRun(unknown, given, new Set(["comparator"]))).toMatchObject(given);
});

test("a password is not written down, so an address that had one is asked for again", () => {
  const run = recorded({ engine: "server", base_url: "https://***@host/", sandbox_url: "http://***@box:8080" });
  const { config, notices } = recordedSettings(run);
  expect(config).toMatchObject({ base_url: "", sandbox_url: "" });
  expect(notices).toEqual([
    expect.stringMatching(/^base_url was .* give it again$/),
    expect.stringMatching(/^sandbox_url was .* give it again$/),
  ]);
  expect(() => engineOfRun(run, undefined)).toThrow(expect.objectContaining({ code: "config/no-server" }));
  expect(engineOfRun(run, "https://me:secret@host/")).toEqual({ baseUrl: "https://me:secret@host/" });
});

test.each([
  ["embedded", { TINKER_API_KEY: "tml-key" }, { kind: "embedded", baseUrl: "" }],
  ["server", { TINKER_BASE_URL: "http://here:1" }, { baseUrl: "" }],
  ["server", {}, "config/no-server"],
  ["hosted", { TINKER_API_KEY: "tml-key" }, { baseUrl: "" }],
  ["hosted", {}, "config/api-key"],
])("a run of the %s engine with %j", (engine, environment, expected) => {
  for (const name of ["TINKER_API_KEY", "TINKER_BASE_URL"]) vi.stubEnv(name, "");
  for (const [name, value] of Object.entries(environment)) vi.stubEnv(name, value);
  const run = recorded({ engine });
  if (typeof expected === "string")
    expect(() => engineOfRun(run, undefined)).toThrow(expect.objectContaining({ code: expected }));
  else expect(engineOfRun(run, undefined)).toEqual(expected);
});
