// The embedded engine behind `./whet serve`, where more than one process is needed: overfitting by the official SDK, and a server
// that is killed and started again.
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, truncateSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ServiceClient, type TrainingClient, tensor } from "../../src/client/index.ts";
import { foldersInMemory } from "../support/folders.ts";
import { writeTinyModel } from "../support/tiny-model.ts";
import { newestSdk } from "../support/venv.ts";
import { sdkVenv } from "./official-sdk.ts";
import { type ServeProcess, startServe } from "./serve-process.ts";

const newFolder = foldersInMemory();

function tinyModel(): string {
  const dir = join(newFolder(), "tiny");
  writeTinyModel(dir);
  return dir;
}

const adam = { learningRate: 1e-2, gradClipNorm: 1 };

function datum(seed: number) {
  const tokens = Array.from({ length: 24 }, (_, index) => (seed * 31 + index * index * 7) % 256);
  return {
    modelInput: tokens.slice(0, -1),
    lossFnInputs: {
      target_tokens: tensor(Int32Array.from(tokens.slice(1))),
      weights: tensor(new Float32Array(23).fill(1)),
    },
  };
}

async function step(training: TrainingClient, seed: number) {
  const update = training.forwardBackward([datum(seed), datum(seed + 1)], "cross_entropy");
  const optim = training.optimStep(adam);
  const output = await update;
  return { logprobs: output.lossFnOutputs.map((one) => [...one["logprobs"]!.data]), norm: (await optim).metrics };
}

test("the official SDK overfits a sentence below 0.05 per token and samples it back greedily", async (context) => {
  const venv = await sdkVenv(newestSdk);
  if ("missing" in venv) {
    console.warn(`skipped: ${venv.missing}`);
    return context.skip(venv.missing);
  }
  const server = await startServe([`model=${tinyModel()}`, `state_dir=${newFolder()}`]);
  try {
    const script = fileURLToPath(new URL("./overfit_sdk.py", import.meta.url));
    const child = spawn(venv.python, [script, "tiny"], {
      env: { ...process.env, TINKER_BASE_URL: server.baseUrl, TINKER_API_KEY: server.apiKey },
      stdio: ["ignore", "pipe", "pipe"],
    });
    let [output, errors] = ["", ""];
    child.stdout.on("data", (chunk: Buffer) => {
      output += chunk.toString();
    });
    child.stderr.on("data", (chunk: Buffer) => {
      errors += chunk.toString();
    });
    const [code] = (await once(child, "close")) as [number | null];
    expect(code, errors).toBe(0);
    const result = JSON.parse(output) as { loss_per_token: number; same: boolean; text: string };
    expect(result.loss_per_token).toBeLessThan(0.05);
    expect(result).toMatchObject({ same: true });
  } finally {
    await server.close();
  }
});

test("a server killed after a save goes on bit for bit from the checkpoint", async () => {
  const [model, state] = [tinyModel(), newFolder()];
  const options = [`model=${model}`, `state_dir=${state}`];
  const first = await startServe(options);
  const before = new ServiceClient({ baseUrl: first.baseUrl, apiKey: first.apiKey, onWarning: () => {} });
  const training = await before.createLoraTrainingClient({ baseModel: "tiny", rank: 4, seed: 1 });
  await step(training, 1);
  await step(training, 2);
  const { path } = await training.saveState("half-way");
  const expected = [await step(training, 3), await step(training, 4)];
  first.child.kill("SIGKILL");
  await once(first.child, "exit");
  await before.close().catch(() => {});

  const second = await startServe(options);
  const after = new ServiceClient({ baseUrl: second.baseUrl, apiKey: second.apiKey, onWarning: () => {} });
  try {
    const resumed = await after.createTrainingClientFromStateWithOptimizer(path);
    expect([await step(resumed, 3), await step(resumed, 4)]).toEqual(expected);
  } finally {
    await after.close();
    expect(await second.close()).toBe(0);
  }
});

test("a model folder with truncated weights ends the start with its error, and no server", async () => {
  const model = tinyModel();
  truncateSync(join(model, "model.safetensors"), 9000);
  await expect(startServe([`model=${model}`, `state_dir=${newFolder()}`])).rejects.toThrow(/engine\/bad-safetensors/);
  expect(existsSync(model)).toBe(true);
});

describe("bad input over HTTP is refused with a documented code, and the server stays up", () => {
  let server: ServeProcess;
  let service: ServiceClient;
  let training: TrainingClient;
  beforeAll(async () => {
    server = await startServe([`model=${tinyModel()}`, `state_dir=${newFolder()}`]);
    service = new ServiceClient({ baseUrl: server.baseUrl, apiKey: server.apiKey, onWarning: () => {} });
    training = await service.createLoraTrainingClient({ baseModel: "tiny", rank: 4, seed: 1 });
  });
  afterAll(async () => {
    await service.close();
    expect(await server.close()).toBe(0);
  });

  const rollout = (advantage: number) => ({
    modelInput: [1, 2, 3],
    lossFnInputs: { target_tokens: [2, 3, 4], logprobs: [-1, -1, -1], advantages: [0, advantage, 1] },
  });
  const supervised = (modelInput: number[], targets: number[], weights: number[]) => ({
    modelInput,
    lossFnInputs: { target_tokens: targets, weights },
  });
  const bad: [what: string, call: () => PromiseLike<unknown>][] = [
    ["an input token out of range", () => training.forward([supervised([1, 264], [1, 2], [1, 1])], "cross_entropy")],
    ["a target out of range", () => training.forward([supervised([1, 2], [1, 264], [1, 1])], "cross_entropy")],
    ["a NaN advantage", () => training.forwardBackward([rollout(Number.NaN)], "importance_sampling")],
    ["an infinite advantage", () => training.forwardBackward([rollout(Number.POSITIVE_INFINITY)], "ppo")],
    ["missing loss inputs", () => training.forward([supervised([1, 2], [1, 2], [1, 1])], "importance_sampling")],
    ["misshapen loss inputs", () => training.forward([supervised([1, 2, 3], [1, 2, 3], [1])], "cross_entropy")],
    [
      "a sequence too long",
      () => {
        const long = new Array<number>(600).fill(1);
        return training.forward([supervised(long, long, long)], "cross_entropy");
      },
    ],
    [
      "a sampled prompt with a token out of range",
      async () => (await service.createSamplingClient({ baseModel: "tiny" })).sample({ prompt: [1, 264] }),
    ],
  ];
  test.each(bad)("%s", async (_, call) => {
    const error = await Promise.resolve()
      .then(call)
      .then(
        () => undefined,
        (thrown: { code?: string; serverCode?: string }) => thrown,
      );
    // Where our client sees it first, it says so itself.
    expect(error?.serverCode ?? error?.code).toMatch(/^(server|engine|client)\//);
    expect((await training.forward([supervised([1, 2], [1, 2], [1, 1])], "cross_entropy")).lossFnOutputs).toHaveLength(
      1,
    );
  });
});

const smallDisk =
  spawnSync("bwrap", ["--dev-bind", "/", "/", "--size", "65536", "--tmpfs", "/mnt", "true"]).status === 0;
if (!smallDisk) console.warn("skipped: a full disk needs bubblewrap and user namespaces to be made");

test.skipIf(!smallDisk)("a disk that fills up while saving fails the save; training goes on", async () => {
  const room = String(300 * 1024);
  const wrapper = ["bwrap", "--dev-bind", "/", "/", "--size", room, "--tmpfs", "/mnt"];
  const server = await startServe([`model=${tinyModel()}`, "state_dir=/mnt/state"], "tml-local", wrapper);
  const service = new ServiceClient({ baseUrl: server.baseUrl, apiKey: server.apiKey, onWarning: () => {} });
  try {
    const training = await service.createLoraTrainingClient({ baseModel: "tiny", rank: 32, seed: 1 });
    await step(training, 1);
    await expect(Promise.resolve(training.saveState("too-big"))).rejects.toMatchObject({
      serverCode: "engine/disk-full",
    });
    await step(training, 2);
  } finally {
    await service.close();
    await server.close();
  }
});
