// The public names of five entries: a change here is a change for users.
import { expect, test } from "vitest";
import * as data from "../../src/data/index.ts";
import * as renderers from "../../src/renderers/index.ts";
import * as rl from "../../src/rl/index.ts";
import * as sandbox from "../../src/sandbox/index.ts";
import * as tokenizer from "../../src/tokenizer/index.ts";

test("whetstone/tokenizer", () => {
  expect(Object.keys(tokenizer).sort()).toEqual(["TokenizerError", "loadTokenizer"]);
});

test("whetstone/renderers", () => {
  expect(Object.keys(renderers).sort()).toEqual([
    "RendererError",
    "chooseRenderer",
    "getRenderer",
    "recommendedRenderer",
    "rendererNames",
    "rendererWarning",
    "suitableRenderers",
    "thinkingModes",
    "trainOnModes",
  ]);
});

test("whetstone/data", () => {
  expect(Object.keys(data).sort()).toEqual([
    "DataError",
    "Dataset",
    "buildMessages",
    "buildQuestion",
    "deepcoderConfigs",
    "deepcoderId",
    "defaultQuestionTemplate",
    "describeSummary",
    "epochOrder",
    "loadDataset",
    "questionTemplateHash",
    "readQuestionTemplate",
  ]);
});

test("whetstone/rl", () => {
  expect(Object.keys(rl).sort()).toEqual([
    "Chat",
    "ConfigError",
    "EpisodeOver",
    "RolloutError",
    "TrainError",
    "Unavailable",
    "WhetstoneError",
    "advantageNames",
    "batchAdvantages",
    "computeAdvantages",
    "environment",
    "presetConfig",
    "runTraining",
    "shouldSkip",
    "toDatum",
  ]);
});

test("whetstone/sandbox", () => {
  expect(Object.keys(sandbox).sort()).toEqual([
    "SandboxError",
    "WhetstoneError",
    "defaultLimits",
    "maxSourceBytes",
    "openSandbox",
  ]);
});
