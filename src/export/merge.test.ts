// An adapter merged into random base models: every number against the plain formula, in every type, in one file or several.
import { execFileSync } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { expect, test } from "vitest";
import { temporaryFolders } from "../../test/support/folders.ts";
import { randomWeights, tinyConfig, writeTinyModel } from "../../test/support/tiny-model.ts";
import type { Weight } from "../engine/architecture.ts";
import { saveAdapter } from "../engine/checkpoint.ts";
import { initialAdapter } from "../engine/lora.ts";
import { SafetensorsFile } from "../engine/safetensors.ts";
import { writeSafetensors } from "../engine/write-safetensors.ts";
import { Adapter } from "./adapter.ts";
import { openBaseModel } from "./base-model.ts";
import { type MergedType, MergePlan } from "./merge.ts";
import { narrow } from "./narrow.ts";

const newFolder = temporaryFolders();
const quiet = { signal: new AbortController().signal, weights: true, onNotice() {}, onProgress() {} };

const lora = { rank: 3, trainAttn: true, trainMlp: true, trainUnembed: true, seed: 5 };

function writeAdapter(change: Partial<typeof lora> = {}): string {
  const dir = newFolder();
  const spec = { ...lora, ...change };
  const weights = initialAdapter(tinyConfig, spec);
  // B starts as zero, which would hide everything.
  for (const [name, { data }] of weights)
    if (name.includes("lora_B")) data.set(data.map((_, index) => Math.sin(index + name.length) / 7));
  saveAdapter(dir, weights, { baseModel: "tiny", lora: spec });
  return dir;
}

async function merge(
  base: string,
  adapterDir: string,
  type: MergedType = "base",
  maxShardBytes = 1e12,
): Promise<string> {
  const adapter = new Adapter(adapterDir);
  const plan = new MergePlan(await openBaseModel(base, quiet), adapter, type);
  const out = newFolder();
  await plan.write(out, { maxShardBytes, signal: quiet.signal });
  plan.close();
  adapter.close();
  return out;
}

function readAll(dir: string): Map<string, { values: Float32Array; dtype: string; shape: readonly number[] }> {
  const all = new Map();
  for (const name of readdirSync(dir).filter((file) => file.endsWith(".safetensors"))) {
    const file = new SafetensorsFile(join(dir, name));
    for (const [key, { dtype, shape }] of file.entries) all.set(key, { values: file.readFloat32(key), dtype, shape });
    file.close();
  }
  return all;
}

/** W + alpha / rank · B · A, written as plainly as can be. */
function expected(weight: Weight, a: Weight, b: Weight): number[] {
  const [rows, columns, rank] = [b.shape[0]!, a.shape[1]!, a.shape[0]!];
  return Array.from({ length: rows * columns }, (_, index) => {
    const [row, column] = [Math.floor(index / columns), index % columns];
    let sum = 0;
    for (let r = 0; r < rank; r++) sum += b.data[row * rank + r]! * a.data[r * columns + column]!;
    return Math.fround(weight.data[index]! + (32 / rank) * sum);
  });
}

test.each([1, 2, 3, 8])(
  "rank %i: every adapted weight is W + scale · B · A, every other one is untouched",
  async (rank) => {
    const base = newFolder();
    writeTinyModel(base, { seed: 2 });
    const dir = writeAdapter({ rank });
    const merged = readAll(await merge(base, dir));
    const original = randomWeights(tinyConfig, 2);
    const adapter = new SafetensorsFile(join(dir, "adapter_model.safetensors"));
    const part = (name: string): Weight => ({
      data: adapter.readFloat32(name),
      shape: adapter.entries.get(name)!.shape,
    });
    expect([...merged.keys()].sort()).toEqual([...original.keys(), "lm_head.weight"].sort());
    for (const [name, { values, dtype }] of merged) {
      expect(dtype).toBe("F32");
      const layer = `base_model.model.${name.slice(0, -".weight".length)}`;
      const weight = original.get(name === "lm_head.weight" ? "model.embed_tokens.weight" : name)!;
      if (!adapter.entries.has(`${layer}.lora_A.weight`)) expect(values).toEqual(weight.data);
      else
        expect([...values]).toEqual(expected(weight, part(`${layer}.lora_A.weight`), part(`${layer}.lora_B.weight`)));
    }
    adapter.close();
  },
);

test("a tied head gets weights of its own; without an adapter on the head it stays tied", async () => {
  const base = newFolder();
  writeTinyModel(base);
  const config = (dir: string) => JSON.parse(readFileSync(join(dir, "config.json"), "utf8")) as Record<string, unknown>;
  expect(config(base)["tie_word_embeddings"]).toBe(true);
  const untied = await merge(base, writeAdapter());
  expect(config(untied)["tie_word_embeddings"]).toBe(false);
  const tied = await merge(base, writeAdapter({ trainUnembed: false }));
  expect(config(tied)["tie_word_embeddings"]).toBe(true);
  expect(readAll(tied).has("lm_head.weight")).toBe(false);
  expect(readdirSync(tied)).toEqual(expect.arrayContaining(["tokenizer.json", "tokenizer_config.json"]));
});

test("several files and an index hold the same tensors as one file", async () => {
  const base = newFolder();
  writeTinyModel(base);
  const adapter = writeAdapter();
  const one = await merge(base, adapter);
  const several = await merge(base, adapter, "base", 40_000);
  const shards = readdirSync(several).filter((name) => name.endsWith(".safetensors"));
  expect(shards.length).toBeGreaterThan(2);
  expect(shards[0]).toBe(`model-00001-of-${String(shards.length).padStart(5, "0")}.safetensors`);
  const index = JSON.parse(readFileSync(join(several, "model.safetensors.index.json"), "utf8")) as {
    metadata: { total_size: number };
    weight_map: Record<string, string>;
  };
  const [whole, parts] = [readAll(one), readAll(several)];
  expect(Object.keys(index.weight_map).sort()).toEqual([...whole.keys()].sort());
  expect(index.metadata.total_size).toBe([...whole.values()].reduce((sum, { values }) => sum + 4 * values.length, 0));
  for (const [name, { values }] of whole) expect(parts.get(name)!.values).toEqual(values);
  // A merged model in several files is a base again.
  expect(readAll(await merge(several, adapter)).size).toBe(whole.size);
});

test("a base in bfloat16 stays in bfloat16, rounded to the nearest; dtype= says otherwise, in the config too", async () => {
  const base = newFolder();
  writeTinyModel(base);
  const adapter = writeAdapter();
  const exact = readAll(await merge(base, adapter));
  const half = await merge(base, adapter, "bfloat16");
  for (const [name, { values, dtype }] of readAll(half)) {
    expect(dtype).toBe("BF16");
    for (const [index, value] of values.entries())
      expect(Math.abs(value - exact.get(name)!.values[index]!)).toBeLessThanOrEqual(Math.abs(value) * 2 ** -8);
  }
  const kept = readAll(await merge(half, adapter));
  expect(new Set([...kept.values()].map(({ dtype }) => dtype))).toEqual(new Set(["BF16"]));
  const wide = await merge(half, adapter, "float32");
  expect(new Set([...readAll(wide).values()].map(({ dtype }) => dtype))).toEqual(new Set(["F32"]));
});

test("a base of another size, a quantized one, and a folder without weights are named", async () => {
  const adapter = writeAdapter();
  const other = newFolder();
  writeTinyModel(other, { hiddenSize: 48 });
  await expect(merge(other, adapter)).rejects.toMatchObject({ code: "export/other-base" });
  const shorter = newFolder();
  writeTinyModel(shorter, { numLayers: 1 });
  await expect(merge(shorter, adapter)).rejects.toThrow(/has no model\.layers\.1/);
  const quantized = newFolder();
  writeTinyModel(quantized);
  const config = JSON.parse(readFileSync(join(quantized, "config.json"), "utf8")) as object;
  writeFileSync(join(quantized, "config.json"), JSON.stringify({ ...config, quantization_config: { bits: 4 } }));
  await expect(merge(quantized, adapter)).rejects.toThrow(/quantized/);
  const empty = newFolder();
  writeFileSync(join(empty, "config.json"), "{}");
  await expect(merge(empty, adapter)).rejects.toMatchObject({ code: "export/no-base" });
  await expect(merge(join(empty, "nowhere"), adapter)).rejects.toMatchObject({ code: "export/no-base" });
});

test("what is no plain LoRA adapter is refused; hosted Tinker's name of the head is PEFT's afterwards", () => {
  const cases: [Record<string, unknown>, Record<string, number[]>, RegExp][] = [
    [{ r: 2, lora_alpha: 32, use_dora: true }, { "a.lora_A.weight": [2, 4], "a.lora_B.weight": [4, 2] }, /use_dora/],
    [{ r: 2, lora_alpha: 32 }, { "a.lora_A.weight": [2, 4] }, /only one of the two/],
    [{ r: 3, lora_alpha: 32 }, { "a.lora_A.weight": [2, 4], "a.lora_B.weight": [4, 2] }, /rank 3 is stated/],
    [{ r: 2, lora_alpha: 32 }, { "a.weight": [2, 4] }, /no part of a LoRA adapter/],
    [
      { r: 2, lora_alpha: 32 },
      { "m.experts.w1.lora_A.weight": [2, 2, 4], "m.experts.w1.lora_B.weight": [2, 4, 2] },
      /experts/,
    ],
    [{ lora_alpha: 32 }, { "a.lora_A.weight": [2, 4], "a.lora_B.weight": [4, 2] }, /r=undefined/],
  ];
  const write = (config: Record<string, unknown>, shapes: Record<string, number[]>) => {
    const dir = newFolder();
    writeFileSync(join(dir, "adapter_config.json"), JSON.stringify(config));
    const tensors = Object.entries(shapes).map(([name, shape]): [string, Weight] => [
      name,
      { shape, data: new Float32Array(shape.reduce((a, b) => a * b, 1)) },
    ]);
    writeSafetensors(join(dir, "adapter_model.safetensors"), new Map(tensors));
    return dir;
  };
  for (const [config, shapes, message] of cases) expect(() => new Adapter(write(config, shapes))).toThrow(message);
  const hosted = new Adapter(
    write(
      { r: 2, lora_alpha: 32 },
      {
        "base_model.model.model.unembed_tokens.lora_A.weight": [2, 4],
        "base_model.model.model.unembed_tokens.lora_B.weight": [9, 2],
      },
    ),
  );
  const out = newFolder();
  mkdirSync(join(out, "peft"));
  hosted.write(join(out, "peft"), "owner/model");
  hosted.close();
  const again = new Adapter(join(out, "peft"));
  expect([...again.layers.keys()]).toEqual(["lm_head"]);
  expect([...again.file.entries.keys()]).toEqual([
    "base_model.model.lm_head.lora_A.weight",
    "base_model.model.lm_head.lora_B.weight",
  ]);
  again.close();
});

test("narrowing rounds as Python's half precision does, and to the nearest bfloat16", () => {
  const random = fc.sample(fc.float({ noNaN: true, min: Math.fround(-65000), max: Math.fround(65000) }), 4000);
  const edges = [
    0,
    -0,
    2 ** -24,
    2 ** -25,
    1.5 * 2 ** -24,
    2 ** -14,
    2 ** -14 - 2 ** -26,
    65504,
    1 + 2 ** -11,
    1 + 3 * 2 ** -11,
    6e-8,
    1e-9,
  ];
  const values = Float32Array.from([...edges, ...random]);
  const script =
    "import struct,sys; d=sys.stdin.buffer.read(); n=len(d)//4; sys.stdout.buffer.write(struct.pack(f'<{n}e', *struct.unpack(f'<{n}f', d)))";
  const wanted = execFileSync("python3", ["-c", script], { input: Buffer.from(values.buffer) });
  expect(Buffer.from(narrow(values.slice(), "F16")).equals(wanted)).toBe(true);
  const half = new Uint16Array(
    narrow(Float32Array.from([65520, Number.POSITIVE_INFINITY, Number.NaN]), "F16").slice().buffer,
  );
  expect([half[0], half[1], (half[2]! & 0x7fff) > 0x7c00]).toEqual([0x7c00, 0x7c00, true]);

  const brain = new Uint16Array(narrow(values.slice(), "BF16").slice().buffer);
  const value = (bits: number) => new Float32Array(Uint32Array.of(bits << 16).buffer)[0]!;
  for (const [index, bits] of brain.entries()) {
    const distance = Math.abs(value(bits) - values[index]!);
    for (const neighbour of [bits - 1, bits + 1])
      if ((neighbour & 0x7f80) !== 0x7f80 && neighbour >= 0)
        expect(distance).toBeLessThanOrEqual(Math.abs(value(neighbour) - values[index]!));
  }
});
