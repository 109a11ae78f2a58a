import { spawnSync } from "node:child_process";
import { readdirSync, truncateSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { foldersInMemory } from "../../test/support/folders.ts";
import { tinyConfig } from "../../test/support/tiny-model.ts";
import { Random } from "../core/random.ts";
import { typescriptFlags } from "../core/workers.ts";
import type { Weight } from "./architecture.ts";
import { loadAdapter, loadOptimizer, readLora, saveAdapter, saveTrainingState } from "./checkpoint.ts";

const folder = foldersInMemory();
const shapes = new Map([
  ["model.layers.0.self_attn.q_proj.lora_A.weight", [2, 3]],
  ["model.layers.0.self_attn.q_proj.lora_B.weight", [4, 2]],
]);
const info = { baseModel: "tiny", lora: { rank: 2, trainAttn: true, trainMlp: false, trainUnembed: false } };

function randomTensors(seed: number): Map<string, Weight> {
  const random = new Random(seed);
  return new Map(
    [...shapes].map(([name, shape]) => [
      name,
      {
        data: Float32Array.from({ length: shape[0]! * shape[1]! }, () => random.normal() * 10 ** random.integer(9)),
        shape,
      },
    ]),
  );
}

test("weights and optimizer state come back bit for bit", () => {
  const dir = folder();
  const optimizer = { step: 17, firstMoment: randomTensors(2), secondMoment: randomTensors(3) };
  saveTrainingState(dir, { weights: randomTensors(1), optimizer }, info);
  expect(loadAdapter(dir, shapes)).toEqual(randomTensors(1));
  expect(loadOptimizer(dir, shapes)).toEqual(optimizer);
  expect(readLora(dir, tinyConfig)).toEqual(info.lora);
});

test("a sampler's checkpoint is PEFT's two files", () => {
  const dir = folder();
  saveAdapter(dir, randomTensors(1), info);
  expect(readdirSync(dir).sort()).toEqual(["adapter_config.json", "adapter_model.safetensors"]);
  expect(() => loadOptimizer(dir, shapes)).toThrow(expect.objectContaining({ code: "engine/bad-checkpoint" }));
});

test("a checkpoint of another rank or of other layers is refused with the name that differs", () => {
  const dir = folder();
  saveAdapter(dir, randomTensors(1), info);
  const wider = new Map([...shapes].map(([name]) => [name, [4, 4]]));
  expect(() => loadAdapter(dir, wider)).toThrow(/shape \[2,3\].*\[4,4\]/);
  expect(() => loadAdapter(dir, new Map([...shapes, ["lm_head.lora_A.weight", [2, 3]]]))).toThrow(/lacks.*lm_head/);
  expect(() => loadAdapter(dir, new Map([...shapes].slice(0, 1)))).toThrow(/lora_B.*does not have/);
});

test("a truncated checkpoint is refused", () => {
  const dir = folder();
  saveAdapter(dir, randomTensors(1), info);
  truncateSync(join(dir, "adapter_model.safetensors"), 200);
  expect(() => loadAdapter(dir, shapes)).toThrow(expect.objectContaining({ code: "engine/bad-safetensors" }));
});

const bubblewrap = spawnSync("bwrap", ["--dev-bind", "/", "/", "--size", "65536", "--tmpfs", "/mnt", "true"]);
const smallDisk = bubblewrap.status === 0;
if (!smallDisk) console.warn("skipped: a full disk needs bubblewrap and user namespaces to be made");

test.skipIf(!smallDisk)("a full disk is named, and leaves no file behind", () => {
  const program = `
    import { readdirSync } from "node:fs";
    import { saveAdapter } from ${JSON.stringify(new URL("./checkpoint.ts", import.meta.url).href)};
    const weights = new Map([["a", { data: new Float32Array(50_000), shape: [50_000] }]]);
    try {
      saveAdapter("/mnt", weights, ${JSON.stringify(info)});
    } catch (error) {
      console.log(JSON.stringify({ code: error.code, fault: error.fault, left: readdirSync("/mnt") }));
    }`;
  const node = [process.execPath, ...typescriptFlags, "--input-type=module", "-e", program];
  const { stdout, stderr } = spawnSync(
    "bwrap",
    ["--dev-bind", "/", "/", "--size", "65536", "--tmpfs", "/mnt", ...node],
    {
      encoding: "utf8",
    },
  );
  expect(stderr).not.toMatch(/Error/);
  expect(JSON.parse(stdout)).toEqual({ code: "engine/disk-full", fault: "server", left: [] });
});
