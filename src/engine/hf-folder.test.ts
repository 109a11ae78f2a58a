import { readFileSync, renameSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { foldersInMemory } from "../../test/support/folders.ts";
import { randomWeights, tinyConfig, writeTinyModel } from "../../test/support/tiny-model.ts";
import { ropeFrequencies } from "./config-file.ts";
import { readConfig, readWeights } from "./hf-folder.ts";

const folder = foldersInMemory();
const golden = fileURLToPath(new URL("../../test/golden/engine/", import.meta.url));

function modelWith(change: (config: Record<string, unknown>) => void): string {
  const dir = folder();
  writeTinyModel(dir);
  const path = join(dir, "config.json");
  const config = JSON.parse(readFileSync(path, "utf8")) as Record<string, unknown>;
  change(config);
  writeFileSync(path, JSON.stringify(config));
  return dir;
}

const refusal = (code: string) => expect.objectContaining({ code });

test("a folder gives back the configuration and the weights it was written from", () => {
  const dir = folder();
  writeTinyModel(dir, { seed: 7 });
  const config = readConfig(dir);
  expect(config).toEqual(tinyConfig);
  expect(readWeights(dir, config)).toEqual(randomWeights(tinyConfig, 7));
});

test.each(["grouped", "untied", "multiquery"])(
  "the folder %s, as transformers would load it, has every weight",
  (name) => {
    const config = readConfig(golden + name);
    for (const [weight, { data }] of readWeights(golden + name, config)) {
      expect(data.every(Number.isFinite), weight).toBe(true);
      expect(
        data.some((value) => value !== 0),
        weight,
      ).toBe(true);
    }
  },
);

test("the rope base is found where newer transformers versions write it", () => {
  const dir = modelWith((config) => {
    delete config["rope_theta"];
    config["rope_parameters"] = { rope_type: "default", rope_theta: 500_000 };
  });
  expect(readConfig(dir).ropeFrequencies).toEqual(ropeFrequencies(500_000, tinyConfig.headDim));
});

test("another architecture is named in the error", () => {
  const dir = modelWith((config) => {
    config["architectures"] = ["Gemma3ForCausalLM"];
  });
  expect(() => readConfig(dir)).toThrow(refusal("engine/unknown-architecture"));
  expect(() => readConfig(dir)).toThrow(/Gemma3ForCausalLM.* computes Qwen3ForCausalLM, Qwen2ForCausalLM, /);
});

test("positions are scaled as transformers scales them, and a scaling that lacks a field is refused", () => {
  const scaled = (rope: object) =>
    readConfig(
      modelWith((config) => {
        config["rope_scaling"] = rope;
      }),
    ).ropeFrequencies;
  const plain = ropeFrequencies(10_000, tinyConfig.headDim);
  expect(scaled({ type: "linear", factor: 4 })).toEqual(plain.map((frequency) => frequency / 4));
  const llama3 = { rope_type: "llama3", factor: 8, low_freq_factor: 1, high_freq_factor: 4 };
  const found = scaled({ ...llama3, original_max_position_embeddings: 64 });
  // Waves of 6, 20, 63, 199 … tokens: shorter than 64 / 4 are kept, longer than 64 are stretched.
  expect(found[0]).toBe(plain[0]);
  expect(found[1]).toBeGreaterThan(plain[1]! / 8);
  expect(found[1]).toBeLessThan(plain[1]!);
  expect(found.slice(3)).toEqual(plain.slice(3).map((frequency) => Math.fround(frequency / 8)));
  expect(() => scaled({ rope_type: "llama3", factor: 8 })).toThrow(/rope_scaling.low_freq_factor=null/);
});

test("a sliding window is computed up to its length, which is the context then", () => {
  const mistral = (window: number | null) =>
    readConfig(
      modelWith((config) => {
        Object.assign(config, { architectures: ["MistralForCausalLM"], model_type: "mistral", sliding_window: window });
      }),
    ).maxPositions;
  expect([mistral(null), mistral(100), mistral(4096)]).toEqual([512, 100, 512]);
});

test.each([
  ["rope_scaling", { rope_type: "yarn", factor: 4 }],
  ["attention_bias", true],
  ["use_sliding_window", true],
  ["hidden_act", "gelu"],
  ["quantization_config", { bits: 4 }],
])("%s=%j, which would change the numbers, is refused", (key, value) => {
  const dir = modelWith((config) => {
    config[key] = value;
  });
  expect(() => readConfig(dir)).toThrow(refusal("engine/unsupported-model"));
});

test.each([
  ["hidden_size", 0],
  ["num_hidden_layers", "two"],
  ["num_key_value_heads", 3],
  ["head_dim", 15],
  ["rms_norm_eps", -1],
  ["vocab_size", undefined],
])("%s=%j is refused", (key, value) => {
  const dir = modelWith((config) => {
    config[key] = value;
  });
  expect(() => readConfig(dir)).toThrow(refusal("engine/bad-config"));
  expect(() => readConfig(dir)).toThrow(key);
});

test("weights of another shape than the configuration says are refused", () => {
  const dir = modelWith((config) => {
    config["intermediate_size"] = 128;
  });
  expect(() => readWeights(dir, readConfig(dir))).toThrow(refusal("engine/bad-safetensors"));
});

test("truncated weights, no weights and no folder are three clear errors", () => {
  const dir = modelWith(() => {});
  truncateSync(join(dir, "model.safetensors"), 5000);
  expect(() => readWeights(dir, tinyConfig)).toThrow(refusal("engine/bad-safetensors"));
  renameSync(join(dir, "model.safetensors"), join(dir, "elsewhere"));
  expect(() => readWeights(dir, tinyConfig)).toThrow(refusal("engine/missing-file"));
  expect(() => readConfig("/nowhere")).toThrow(refusal("engine/missing-file"));
});

test("an index may not point outside its folder or leave a weight out", () => {
  const dir = modelWith(() => {});
  renameSync(join(dir, "model.safetensors"), join(dir, "part.safetensors"));
  const index = join(dir, "model.safetensors.index.json");
  const names = [...randomWeights(tinyConfig, 0).keys()];
  const mapTo = (file: string) =>
    writeFileSync(index, JSON.stringify({ weight_map: Object.fromEntries(names.map((n) => [n, file])) }));
  mapTo("part.safetensors");
  expect(readWeights(dir, tinyConfig).size).toBe(names.length);
  mapTo("../part.safetensors");
  expect(() => readWeights(dir, tinyConfig)).toThrow(refusal("engine/bad-config"));
  writeFileSync(index, JSON.stringify({ weight_map: {} }));
  expect(() => readWeights(dir, tinyConfig)).toThrow(refusal("engine/bad-config"));
});
