import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, test, vi } from "vitest";
import { temporaryFolders } from "../../../test/support/folders.ts";
import { presetConfig } from "../../rl/config.ts";
import { trainOptionsHelp } from "./shown-defaults.ts";
import { parseTrainArguments, resolveConfig } from "./train-config.ts";

const folders = temporaryFolders();
const resolved = (...args: string[]) => resolveConfig(parseTrainArguments(args), presetConfig("nano")).config;
const sizes = (...args: string[]) => {
  const { prompts_per_step, completions_per_prompt } = resolved(...args);
  return [prompts_per_step, prompts_per_step * completions_per_prompt];
};

afterEach(() => vi.unstubAllEnvs());

describe("the sizes of a step", () => {
  test.each([
    [[], [8, 64]],
    [["prompts_per_step=4"], [4, 32]],
    [["completions_per_prompt=4"], [8, 32]],
    [
      ["prompts_per_step=4", "completions_per_prompt=8"],
      [4, 32],
    ],
    [["group_size=4"], [4, 64]],
    [["batch_size=128"], [8, 128]],
    [
      ["group_size=4", "batch_size=32"],
      [4, 32],
    ],
    [
      ["group_size=4", "completions_per_prompt=8"],
      [4, 32],
    ],
    [
      ["prompts_per_step=4", "group_size=4"],
      [4, 32],
    ],
    [
      ["prompts_per_step=4", "batch_size=32"],
      [4, 32],
    ],
    [
      ["prompts_per_step=4", "completions_per_prompt=8", "batch_size=32"],
      [4, 32],
    ],
  ])("%j", (args, expected) => {
    expect(sizes(...args)).toEqual(expected);
  });

  test.each([
    [["prompts_per_step=4", "group_size=8"]],
    [["completions_per_prompt=4", "batch_size=128"]],
    [["prompts_per_step=4", "completions_per_prompt=8", "batch_size=64"]],
  ])("%j contradicts itself", (args) => {
    expect(() => sizes(...args)).toThrow(expect.objectContaining({ code: "config/conflict" }));
  });

  test("a file first, then the command line over it", () => {
    const file = join(folders(), "run.json");
    writeFileSync(file, '{"group_size": 4, "batch_size": 32, "completions_per_prompt": 8}');
    expect(sizes(`@${file}`)).toEqual([4, 32]);
    expect(sizes(`@${file}`, "prompts_per_step=2")).toEqual([2, 16]);
    expect(sizes(`@${file}`, "completions_per_prompt=4")).toEqual([4, 16]);
    expect(sizes(`@${file}`, "batch_size=64")).toEqual([4, 64]);
    expect(sizes(`@${file}`, "group_size=2")).toEqual([2, 32]);
  });
});

test("the config of a run gives the same config again", () => {
  const config = resolved("learning_rate=1e-3", "blocked_ids=a,b", 'loss_fn_config={"x":1}', "prompts_per_step=4");
  const file = join(folders(), "config.json");
  writeFileSync(file, JSON.stringify({ ...config, started_at: "x", data_fingerprint: "y", eval_problems: 3 }));
  expect(resolved(`@${file}`)).toEqual(config);
  expect(resolved(`@${file}`, "seed=3")).toEqual({ ...config, seed: 3 });
});

describe("help shows what this invocation would use", () => {
  const shown = (...args: string[]) => {
    const text = trainOptionsHelp(args);
    return (key: string) => new RegExp(`^  ${key}=(.*)$`, "m").exec(text)?.[1];
  };

  test("after the preset that the engine decides", () => {
    for (const name of ["TINKER_API_KEY", "TINKER_BASE_URL"]) vi.stubEnv(name, "");
    expect(shown()("max_steps")).toMatch(/^40 /);
    expect(shown()("model_name")).toMatch(/^nano-coder /);
    vi.stubEnv("TINKER_API_KEY", "tml-secret-secret");
    expect(shown()("model_name")).toMatch(/^Qwen\/Qwen3-8B /);
    expect(trainOptionsHelp([])).toMatch(/preset=deepcoder \(TINKER_API_KEY is set\)/);
    expect(trainOptionsHelp([])).not.toContain("secret");
    expect(shown("preset=nano")("max_steps")).toMatch(/^40 /);
  });

  test("after files, what was typed, and the environment", () => {
    const file = join(folders(), "run.json");
    writeFileSync(file, '{"preset": "nano",\n "max_steps": 3}');
    vi.stubEnv("SANDBOX_URL", "http://me:password@box:8080");
    const of = shown(`@${file}`, "seed=9", "prompts_per_step=2");
    expect(of("max_steps")).toMatch(/^3 .*run\.json, line 2\)$/);
    expect(of("seed")).toMatch(/^9 .*\(as typed\)$/);
    expect(of("batch_size")).toMatch(/^16 /);
    expect(of("completions_per_prompt")).toMatch(/^8 /);
    expect(of("sandbox_url")).toMatch(/^http:\/\/\*\*\*@box:8080 .*\(SANDBOX_URL\)$/);
  });

  test("a mistake does not hide the keys", () => {
    const text = trainOptionsHelp(["learning_rte=1"]);
    expect(text).toMatch(/Did you mean "learning_rate"/);
    expect(text).toMatch(/^ {2}learning_rate=/m);
  });
});

test("the word of the seed's command line is passed over; any other is refused", () => {
  expect(parseTrainArguments(["main", "seed=1"]).notices).toHaveLength(1);
  expect(() => parseTrainArguments(["main", "again"])).toThrow(expect.objectContaining({ code: "config/stray-word" }));
  expect(resolved("main")).toEqual(presetConfig("nano"));
});
