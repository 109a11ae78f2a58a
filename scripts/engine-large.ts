// Writes a random Qwen3 in the shape of the 0.6B model (bf16, 1.2 GB), loads it, samples from it and takes a LoRA step; prints
// times and peak memory. Nothing a test does: it takes minutes on a small machine.
//     node --import ./src/core/ts-loader.mjs scripts/engine-large.ts [FOLDER]
import { closeSync, existsSync, mkdirSync, openSync, readFileSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Random } from "../src/core/random.ts";
import { type DecoderConfig, weightShapes } from "../src/engine/architecture.ts";
import { qwen3 } from "../src/engine/architectures/qwen3.ts";
import { ropeFrequencies } from "../src/engine/config-file.ts";
import { createEmbeddedEngine } from "../src/engine/index.ts";
import { writeConfig, writeTokenizer } from "../test/support/tiny-model.ts";

const config: DecoderConfig = {
  architecture: qwen3,
  hiddenSize: 1024,
  intermediateSize: 3072,
  numLayers: 28,
  numHeads: 16,
  numKvHeads: 8,
  headDim: 128,
  vocabSize: 151_936,
  ropeFrequencies: ropeFrequencies(1_000_000, 128),
  rmsNormEps: 1e-6,
  tieWordEmbeddings: true,
  maxPositions: 4096,
};

/** Noise is drawn once and read from shifting places: 600 million draws would take longer than everything else. */
function writeModel(dir: string): void {
  mkdirSync(dir, { recursive: true });
  writeConfig(dir, config);
  writeTokenizer(dir);
  const random = new Random("large");
  const noise = Float32Array.from({ length: 1 << 22 }, () => random.normal());
  const scaled = new Float32Array(noise.length);
  const bits = new Uint32Array(scaled.buffer);
  const narrow = new Uint16Array(noise.length);
  const header: Record<string, unknown> = {};
  let offset = 0;
  const shapes = [...weightShapes(config)];
  for (const [name, shape] of shapes) {
    const bytes = 2 * shape.reduce((product, size) => product * size, 1);
    header[name] = { dtype: "BF16", shape, data_offsets: [offset, offset + bytes] };
    offset += bytes;
  }
  const text = Buffer.from(JSON.stringify(header));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(text.byteLength));
  const file = openSync(join(dir, "model.safetensors"), "w");
  writeSync(file, length);
  writeSync(file, text);
  for (const [name, shape] of shapes) {
    const isNorm = shape.length === 1;
    const deviation = isNorm ? 0.1 : name.includes("embed_tokens") ? 0.3 : 1 / Math.sqrt(shape[1]!);
    let left = shape.reduce((product, size) => product * size, 1);
    while (left > 0) {
      const count = Math.min(left, noise.length);
      const start = random.integer(noise.length - count + 1);
      for (let i = 0; i < count; i++) scaled[i] = (isNorm ? 1 : 0) + deviation * noise[start + i]!;
      for (let i = 0; i < count; i++) narrow[i] = bits[i]! >>> 16;
      writeSync(file, new Uint8Array(narrow.buffer, 0, 2 * count));
      left -= count;
    }
  }
  closeSync(file);
}

/** The most memory this process has held, in GiB. */
function peakGib(): string {
  const line = /VmHWM:\s+(\d+) kB/.exec(readFileSync("/proc/self/status", "utf8"));
  return (Number(line?.[1] ?? 0) / 2 ** 20).toFixed(1);
}

async function timed<T>(what: string, work: () => Promise<T>, tokens?: number): Promise<T> {
  const start = performance.now();
  const result = await work();
  const seconds = (performance.now() - start) / 1000;
  const speed = tokens === undefined ? "" : `, ${(tokens / seconds).toFixed(1)} tokens/s`;
  console.log(`${what}: ${seconds.toFixed(1)} s${speed}; peak ${peakGib()} GiB`);
  return result;
}

const dir = process.argv[2] ?? join(tmpdir(), "whetstone-random-0.6b");
if (!existsSync(join(dir, "model.safetensors"))) await timed(`writing ${dir}`, async () => writeModel(dir));
const engine = await timed("loading", () => createEmbeddedEngine({ models: [{ name: "large", dir }] }));
const tokens = (length: number, seed: number) => {
  const random = new Random("tokens", seed);
  return Int32Array.from({ length }, () => random.integer(config.vocabSize));
};
const settings = { maxTokens: 16, seed: 1, temperature: 1, topK: -1, topP: 1, stopTokens: [] };
const lora = { rank: 32, seed: 1, trainAttn: true, trainMlp: true, trainUnembed: false };
await engine.createModel("m", { baseModel: "large", lora });
const sample = async (samples: number) => {
  await engine.createSampler(`s${samples}`, { kind: "live", modelId: "m" });
  const request = {
    prompt: tokens(64, 1),
    numSamples: samples,
    settings,
    promptLogprobs: false,
    topkPromptLogprobs: 0,
  };
  return engine.sample(`s${samples}`, request);
};
await timed("sampling 2 × 16 tokens after a prompt of 64", () => sample(2), 32);
await timed("sampling 8 × 16 tokens after a prompt of 64", () => sample(8), 128);
const data = [tokens(129, 2), tokens(129, 3)].map((sequence) => ({
  tokens: sequence.slice(0, -1),
  lossInputs: {
    target_tokens: { data: sequence.slice(1), shape: [128] },
    weights: { data: new Float32Array(128).fill(1), shape: [128] },
  },
}));
const batch = { data, loss: "cross_entropy" as const, lossConfig: {}, forwardOnly: false };
const { metrics } = await timed(
  "forward+backward of 2 × 128 tokens, rank 32",
  () => engine.forwardBackward("m", batch),
  256,
);
const adam = { learningRate: 1e-4, beta1: 0.9, beta2: 0.95, epsilon: 1e-12, weightDecay: 0, gradClipNorm: 0 };
const step = await timed("Adam step", () => engine.optimStep("m", adam));
console.log(`loss:sum ${metrics["loss:sum"]!.toFixed(2)}, gradient norm ${step["grad_norm"]!.toFixed(2)}`);
await engine.close();
