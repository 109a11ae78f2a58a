import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test, vi } from "vitest";
import { foldersInMemory } from "../../../test/support/folders.ts";
import { tinyConfig, writeConfig, writeTinyModel } from "../../../test/support/tiny-model.ts";
import { takeLock } from "../../core/lock-file.ts";
import { presetConfig, type TrainConfig } from "../../rl/config.ts";
import { engineKind } from "../parts/connect.ts";
import { isLocal, localEngines } from "./index.ts";

const newFolder = foldersInMemory();
const gguf = fileURLToPath(new URL("../../../test/golden/gguf/llama.gguf", import.meta.url));

test.each([
  [{}, {}, "embedded"],
  [{}, { TINKER_API_KEY: "tml-x" }, "hosted"],
  [{ base_url: "http://here:1" }, { TINKER_API_KEY: "tml-x" }, "server"],
  [{}, { TINKER_BASE_URL: "http://here:1" }, "server"],
  [{ engine: "skyrl" }, { TINKER_BASE_URL: "http://here:1", TINKER_API_KEY: "tml-x" }, "skyrl"],
  [{ engine: "embedded" }, { TINKER_API_KEY: "tml-x" }, "embedded"],
  [{ engine: "server", base_url: "http://here:1" }, {}, "server"],
] as const)("settings %o with %o ask for %s", (settings, environment, kind) => {
  expect(engineKind(settings, environment)).toBe(kind);
});

test("an engine of this machine and an address are two engines; a server has an address", () => {
  const refused = (settings: Parameters<typeof engineKind>[0]) => () => engineKind(settings, {});
  expect(refused({ engine: "skyrl", base_url: "http://me:secret@here:1" })).toThrow(
    /engine=skyrl and base_url=http:\/\/\*{3}@here:1/,
  );
  expect(refused({ engine: "server" })).toThrow(expect.objectContaining({ code: "config/no-server" }));
  expect(["embedded", "skyrl", "server", "toString"].filter(isLocal)).toEqual(["embedded", "skyrl"]);
});

function start(model: string, more: Partial<TrainConfig> = {}, folder = newFolder()) {
  const lines: string[] = [];
  const say = (line: string) => void lines.push(line);
  const logger = { info: say, warn: say, error: say, detail: say };
  const config = { ...presetConfig("small"), model_name: model, ...more };
  const files = { stateDir: join(folder, "engine"), logFile: join(folder, "server.log") };
  return { lines, running: localEngines.skyrl.start({ model, config, ...files, logger }) };
}

const refusedWith = (code: string, message: RegExp) =>
  expect.objectContaining({ code, message: expect.stringMatching(message) });

test("SkyRL is not installed for a model that it cannot compute", async () => {
  const folder = newFolder();
  writeTinyModel(folder);
  const path = join(folder, "config.json");
  const config = JSON.parse(readFileSync(path, "utf8"));
  writeFileSync(path, JSON.stringify({ ...config, architectures: ["Qwen2ForCausalLM"], model_type: "qwen2" }));
  await expect(start(folder).running).rejects.toEqual(refusedWith("cli/skyrl-architecture", /is a Qwen2ForCausalLM/));
  await expect(start(gguf).running).rejects.toEqual(refusedWith("config/bad-value", /reads safetensors alone/));
});

test("nor for one that does not fit, which is said with its size", async () => {
  const folder = newFolder();
  mkdirSync(folder, { recursive: true });
  writeConfig(folder, {
    ...tinyConfig,
    hiddenSize: 16_384,
    intermediateSize: 65_536,
    numLayers: 128,
    vocabSize: 250_000,
  });
  const { running, lines } = start(folder);
  await expect(running).rejects.toEqual(
    refusedWith("cli/engine-too-large", /does not fit: \d+\.\d billion parameters/),
  );
  expect(lines.join("\n")).toMatch(/GPU/);
});

test("what fits is said before anything is fetched", async () => {
  const folder = newFolder();
  writeTinyModel(folder);
  vi.stubEnv("WHET_NO_INSTALL", "1");
  vi.stubEnv("WHETSTONE_CACHE", newFolder());
  const { running, lines } = start(folder);
  await expect(running).rejects.toEqual(refusedWith("cli/skyrl-install", /WHET_NO_INSTALL=1 forbids it/));
  expect(lines.at(-1)).toMatch(/^engine {3}fits: 0 million parameters, .* sampled at once, 8 trained on$/);
});

test("one command at a time has a run's engine", async () => {
  const folder = newFolder();
  mkdirSync(join(folder, "engine"), { recursive: true });
  const lock = takeLock(join(folder, "engine", "lock"));
  await expect(start("nano-coder", {}, folder).running).rejects.toEqual(
    refusedWith("cli/engine-busy", /in use by process \d+/),
  );
  if ("release" in lock) lock.release();
});
