// GGUF files as llama.cpp's Python package, transformers and sentencepiece read them (scripts/gguf-reference.py), to the bit.
import { createHash } from "node:crypto";
import { copyFileSync, readFileSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";
import { foldersInMemory } from "../../test/support/folders.ts";
import { readConfig, readWeights } from "../engine/hf-folder.ts";
import { SafetensorsFile } from "../engine/safetensors.ts";
import { loadTokenizer } from "../tokenizer/index.ts";
import { blockTypes, GgufFile, ggufFolder } from "./index.ts";

const golden = fileURLToPath(new URL("../../test/golden/gguf/", import.meta.url));
const folder = foldersInMemory();
const expected = JSON.parse(readFileSync(join(golden, "expected.json"), "utf8")) as {
  weights: Record<string, Record<string, string>>;
  pieces: { text: string; ids: number[] }[];
};

beforeAll(() => {
  process.env["WHETSTONE_CACHE"] = folder();
});
afterAll(() => {
  delete process.env["WHETSTONE_CACHE"];
});

test.each(Object.values(blockTypes).map(({ name }) => name))("blocks of %s are widened to the same numbers", (name) => {
  const [file, numbers] = [
    new GgufFile(join(golden, "blocks.gguf")),
    new SafetensorsFile(join(golden, "blocks.safetensors")),
  ];
  try {
    expect(file.readFloat32(file.tensors.get(name)!)).toEqual(numbers.readFloat32(name));
  } finally {
    file.close();
    numbers.close();
  }
});

test.each(Object.keys(expected.weights))("the weights of %s are those that transformers loads", async (name) => {
  const dir = await ggufFolder(join(golden, `${name}.gguf`));
  const weights = readWeights(dir, readConfig(dir));
  const hash = (data: Float32Array) =>
    createHash("sha256")
      .update(new Uint8Array(data.buffer, data.byteOffset, data.byteLength))
      .digest("hex");
  expect(Object.fromEntries([...weights].map(([key, { data }]) => [key, hash(data)]))).toEqual(expected.weights[name]);
});

test("positions that llama.cpp keeps as factors are Llama 3's scaling", async () => {
  const dir = await ggufFolder(join(golden, "llama.gguf"));
  expect(JSON.parse(readFileSync(join(dir, "config.json"), "utf8"))).toMatchObject({
    rope_theta: 500_000,
    rope_scaling: { rope_type: "llama3", factor: 32, original_max_position_embeddings: 8192 },
  });
});

test("a vocabulary of pieces with scores cuts texts as sentencepiece does", async () => {
  const tokenizer = await loadTokenizer(join(golden, "llama.gguf"));
  for (const { text, ids } of expected.pieces) {
    expect(tokenizer.encode(text), text).toEqual(ids);
    expect(tokenizer.decode(ids)).toBe(text);
  }
});

test("a byte-level vocabulary has its merges, control tokens and chat template", async () => {
  const tokenizer = await loadTokenizer(join(golden, "qwen3.gguf"));
  // Tokens of bytes stand in the order of the bytes.
  expect(tokenizer.encode("cabs 12")).toEqual([99, 256, 115, 32, 49, 50]);
  expect(tokenizer.tokenId("<|im_end|>")).toBe(259);
  expect([tokenizer.isSpecial(259), tokenizer.isSpecial(260)]).toEqual([true, false]);
  expect(tokenizer.endTokens).toEqual([259]);
  expect(tokenizer.chatTemplate).toContain("add_generation_prompt");
});

test("a damaged file is refused with what is wrong with it", () => {
  const whole = join(golden, "qwen2.gguf");
  const damaged = (change: (path: string) => void) => {
    const path = join(folder(), "model.gguf");
    copyFileSync(whole, path);
    change(path);
    return () => new GgufFile(path).close();
  };
  const patch = (at: number, bytes: Uint8Array) => (path: string) => {
    const content = readFileSync(path);
    content.set(bytes, at);
    writeFileSync(path, content);
  };
  expect(damaged(patch(0, Buffer.from("GGML")))).toThrow("does not begin as a GGUF file");
  expect(damaged(patch(4, Uint8Array.of(9)))).toThrow("version 9");
  expect(damaged(patch(15, Uint8Array.of(1)))).toThrow("counts");
  expect(damaged((path) => truncateSync(path, readFileSync(whole).length - 100))).toThrow("is cut short");
  expect(damaged((path) => truncateSync(path, 3000))).toThrow("ends within its header");
});
