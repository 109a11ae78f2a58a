// What benchmarks of the embedded engine ask of it, and PyTorch's side of them: a process that gets one command a line.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface, type Interface } from "node:readline";
import { fileURLToPath } from "node:url";
import { Random } from "../src/core/random.ts";
import type { Engine, SampleRequest, TrainingDatum } from "../src/engine/engine.ts";
import { openVenv } from "../test/support/venv.ts";
import { median } from "./intervals.ts";
import type { BenchRow } from "./report.ts";

const packages = ["torch", "transformers", "safetensors", "numpy"];

/** Prompts as training has them: `count` different ones of one length. */
export function prompts(count: number, length: number): number[][] {
  const random = new Random("prompts", count, length);
  return Array.from({ length: count }, () => Array.from({ length }, () => 1 + random.integer(900)));
}

export async function sampleAll(
  engine: Engine,
  sampler: string,
  asked: readonly number[][],
  samples: number,
  tokens: number,
  stopTokens: readonly number[] = [],
) {
  const start = performance.now();
  const outputs = await Promise.all(
    asked.map((prompt, seed) => {
      const settings = { maxTokens: tokens, seed, temperature: 1, topK: -1, topP: 1, stopTokens };
      const request: SampleRequest = {
        prompt: Int32Array.from(prompt),
        numSamples: samples,
        settings,
        promptLogprobs: false,
        topkPromptLogprobs: 0,
      };
      return engine.sample(sampler, request);
    }),
  );
  const seconds = (performance.now() - start) / 1000;
  const made = outputs.flatMap(({ sequences }) => sequences).reduce((total, one) => total + one.tokens.length, 0);
  return { seconds, tokensPerSecond: made / seconds };
}

/** A sampler with nothing cached, of a freshly trained adapter: what every training step makes. */
export async function freshSampler(engine: Engine): Promise<{ id: string; milliseconds: number }> {
  const id = `sampler-${counter++}`;
  const start = performance.now();
  await engine.createSampler(id, { kind: "live", modelId: await trainedModel(engine) });
  return { id, milliseconds: performance.now() - start };
}

let counter = 0;
let model: string | undefined;

export async function trainedModel(engine: Engine): Promise<string> {
  if (model !== undefined) return model;
  model = "bench-model";
  const lora = { rank: 32, seed: 1, trainAttn: true, trainMlp: true, trainUnembed: true };
  await engine.createModel(model, { baseModel: "bench", lora });
  return model;
}

export function datumOf(sequence: readonly number[], promptLength: number): TrainingDatum {
  const length = sequence.length - 1;
  const advantages = Float32Array.from({ length }, (_, index) => (index < promptLength - 1 ? 0 : 1));
  const tensor = (data: Float32Array | Int32Array) => ({ data, shape: [length] });
  return {
    tokens: Int32Array.from(sequence.slice(0, -1)),
    lossInputs: {
      target_tokens: tensor(Int32Array.from(sequence.slice(1))),
      logprobs: tensor(new Float32Array(length).fill(-2)),
      advantages: tensor(advantages),
    },
  };
}

export function ratioRow(what: string, tokens: number, ours: number[], other: number[], least?: number): BenchRow {
  const speed = (seconds: number[]) => `${Math.round(tokens / median(seconds))} tok/s`;
  if (other.length === 0) return { what, ours: speed(ours), other: "–", figure: "–" };
  const ratio = median(other) / median(ours);
  const target = least === undefined ? {} : { target: `≥ ${least}×`, met: ratio >= least };
  return { what, ours: speed(ours), other: speed(other), figure: `${ratio.toFixed(2)}×`, ...target };
}

export type Say = (line: string) => void;

export interface Torch {
  versions: string;
  ask<T>(command: Record<string, unknown>): Promise<T>;
  peakMib(): number;
  close(): Promise<void>;
}

/** Starts PyTorch's side, installing it first where needed. WHET_TORCH_PYTHON names an interpreter that has it. */
export async function startTorch(folder: string, threads: number, say: Say): Promise<Torch | { missing: string }> {
  let python = process.env["WHET_TORCH_PYTHON"];
  if (!python) {
    say("preparing PyTorch and transformers (the first time this downloads some gigabytes)");
    const venv = await openVenv(packages);
    if ("missing" in venv) return venv;
    python = venv.python;
  }
  const script = fileURLToPath(new URL("./engine_torch.py", import.meta.url));
  const child = spawn(python, [script, folder, String(threads)], { stdio: ["pipe", "pipe", "pipe"] });
  let errors = "";
  child.stderr.on("data", (chunk: Buffer) => {
    errors = (errors + chunk.toString()).slice(-2000);
  });
  const lines = createInterface({ input: child.stdout });
  const next = nextLine(child, lines, () => errors);
  let peak = 0;
  const hello = JSON.parse(await next()) as { torch: string; transformers: string };
  return {
    versions: `torch ${hello.torch}, transformers ${hello.transformers}`,
    async ask<T>(command: Record<string, unknown>): Promise<T> {
      child.stdin.write(`${JSON.stringify(command)}\n`);
      const answer = JSON.parse(await next()) as { result: T; peak_mib: number };
      peak = answer.peak_mib;
      return answer.result;
    },
    peakMib: () => peak,
    async close() {
      child.stdin.end();
      if (child.exitCode === null) await once(child, "exit");
    },
  };
}

function nextLine(child: ChildProcess, lines: Interface, errors: () => string): () => Promise<string> {
  return () =>
    new Promise<string>((resolve, reject) => {
      const onExit = (code: number | null) => reject(new Error(`PyTorch's side ended with ${code}: ${errors()}`));
      child.once("exit", onExit);
      lines.once("line", (line) => {
        child.off("exit", onExit);
        resolve(line);
      });
    });
}
