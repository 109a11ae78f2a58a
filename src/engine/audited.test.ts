import { appendFileSync, mkdirSync, mkdtempSync, renameSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { AuditedEngine, type AuditLine, readAudit } from "./audited.ts";
import type { AdamSettings, Engine, SampleRequest, TrainingBatch } from "./engine.ts";
import { SimulatedEngine, simulatedModelName } from "./simulated/engine.ts";

const adam: AdamSettings = {
  learningRate: 0.1,
  beta1: 0.9,
  beta2: 0.95,
  epsilon: 1e-12,
  weightDecay: 0,
  gradClipNorm: 0,
};
const spec = { baseModel: simulatedModelName, lora: { rank: 8, trainAttn: true, trainMlp: true, trainUnembed: true } };
const folders: string[] = [];
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "whetstone-audit-"));
  folders.push(folder);
  return folder;
}

const batch = (token: number, forwardOnly = false): TrainingBatch => ({
  data: [
    {
      tokens: Int32Array.of(1, token),
      lossInputs: {
        target_tokens: { data: Int32Array.of(token, 3), shape: [2] },
        weights: { data: Float32Array.of(1, 1), shape: [2] },
      },
    },
  ],
  loss: "cross_entropy",
  lossConfig: {},
  forwardOnly,
});
const request = (seed: number | undefined, prompt = [1, 2, 3]): SampleRequest => ({
  prompt: Int32Array.from(prompt),
  numSamples: 2,
  settings: { seed, temperature: 1, topK: -1, topP: 1, maxTokens: 5, stopTokens: [] },
  promptLogprobs: false,
  topkPromptLogprobs: 0,
});
const of = <Op extends AuditLine["op"]>(file: string, op: Op) =>
  readAudit(file).filter((record): record is AuditLine & { op: Op } => record.op === op);

/** Two updates, then a saved state and weights for sampling, in folders that are moved as the server moves them. */
async function train(engine: Engine, model: string, folder: string) {
  await engine.createModel(model, spec);
  for (const token of [5, 6]) {
    await engine.forwardBackward(model, batch(token));
    await engine.optimStep(model, adam);
  }
  for (const [name, save] of [
    ["state", engine.saveState.bind(engine)],
    ["sampler", engine.saveForSampler.bind(engine)],
  ] as const) {
    mkdirSync(join(folder, "incoming", name), { recursive: true });
    await save(model, join(folder, "incoming", name));
    mkdirSync(join(folder, model), { recursive: true });
    renameSync(join(folder, "incoming", name), join(folder, model, name));
  }
}

test("each completed operation is one line, there before its answer", async () => {
  const file = join(newFolder(), "audit.jsonl");
  const engine = new AuditedEngine(new SimulatedEngine({ samplingLatency: "constant:20" }), file);
  await train(engine, "m", newFolder());
  await engine.createSampler("live", { kind: "live", modelId: "m" });
  const before = engine.sample("live", request(7));
  expect(of(file, "sample")).toEqual([]);
  await before;
  expect(of(file, "sample")).toMatchObject([{ sampler: "live", source: "m", seed: 7, samples: 2, steps: 2 }]);
  await engine.forwardBackward("m", batch(5, true));
  expect(readAudit(file).map(({ op }) => op)).toEqual([
    "create_model",
    "forward_backward",
    "optim_step",
    "forward_backward",
    "optim_step",
    "save_state",
    "save_for_sampler",
    "create_sampler",
    "sample",
    "forward",
  ]);
  const [first, second] = of(file, "forward_backward");
  expect(of(file, "forward")[0]!.data).toBe(first!.data);
  expect(second!.data).not.toBe(first!.data);
  expect(of(file, "optim_step").map(({ data, steps }) => ({ data, steps }))).toEqual([
    { data: [first!.data], steps: 1 },
    { data: [second!.data], steps: 2 },
  ]);
});

test("a sample is told from another by its policy, seed, prompt and output", async () => {
  const file = join(newFolder(), "audit.jsonl");
  const engine = new AuditedEngine(new SimulatedEngine(), file);
  await engine.createModel("m", spec);
  await engine.createSampler("s", { kind: "base", baseModel: simulatedModelName });
  for (const asked of [request(1), request(1), request(2), request(1, [4]), request(undefined)])
    await engine.sample("s", asked);
  const [first, repeat, seed, prompt, unseeded] = of(file, "sample");
  expect({ ...repeat, at: 0 }).toEqual({ ...first, at: 0 });
  expect(seed!.prompt).toBe(first!.prompt);
  expect(seed!.output).not.toBe(first!.output);
  expect(prompt!.prompt).not.toBe(first!.prompt);
  expect(unseeded!.seed).toBeNull();
  expect(first!.policy).toBe("base");
});

test("an operation that fails or is cancelled leaves no line", async () => {
  const file = join(newFolder(), "audit.jsonl");
  const engine = new AuditedEngine(new SimulatedEngine({ samplingLatency: "constant:10000" }), file);
  await expect(engine.optimStep("nobody", adam)).rejects.toMatchObject({ code: "engine/simulated-missing" });
  await engine.createSampler("s", { kind: "base", baseModel: simulatedModelName });
  await expect(engine.sample("s", request(1), { signal: AbortSignal.timeout(10) })).rejects.toThrow();
  expect(readAudit(file).map(({ op }) => op)).toEqual(["create_sampler"]);
});

test("a policy keeps its name over a restart, and the same history gives the same name", async () => {
  const file = join(newFolder(), "audit.jsonl");
  const folder = newFolder();
  await train(new AuditedEngine(new SimulatedEngine(), file), "first", folder);
  appendFileSync(file, '{"op":"sam');
  const engine = new AuditedEngine(new SimulatedEngine(), file);
  await engine.createModel("second", spec);
  await engine.loadState("second", join(folder, "first", "state"), { optimizer: true });
  const [, saved] = of(file, "optim_step");
  expect(of(file, "load_state")).toMatchObject([{ model: "second", steps: 2, policy: saved!.policy }]);
  await engine.createSampler("s", {
    kind: "saved",
    baseModel: simulatedModelName,
    dir: join(folder, "first", "sampler"),
  });
  await engine.sample("s", request(3));
  expect(of(file, "sample")).toMatchObject([
    { steps: 2, policy: saved!.policy, source: join(folder, "first", "sampler") },
  ]);
  await engine.forwardBackward("second", batch(9));
  await engine.optimStep("second", adam);

  await train(engine, "third", folder);
  await engine.forwardBackward("third", batch(9));
  await engine.optimStep("third", adam);
  const after = (model: string) => of(file, "optim_step").findLast((record) => record.model === model);
  expect(after("third")).toMatchObject({ steps: 3, policy: after("second")!.policy });
  // Fresh moments are another history.
  await engine.loadState("third", join(folder, "first", "state"), { optimizer: false });
  expect(of(file, "load_state").at(-1)!.policy).not.toBe(saved!.policy);
});

test("a file that cannot be written is refused at the start", () => {
  expect(() => new AuditedEngine(new SimulatedEngine(), join(newFolder(), "missing", "audit.jsonl"))).toThrow(
    expect.objectContaining({ code: "engine/audit" }),
  );
});
