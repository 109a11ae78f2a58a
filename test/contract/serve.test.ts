// `./whet serve` as a program: what it prints, how it ends, what it keeps.
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { ServiceClient } from "../../src/client/index.ts";
import { readAudit } from "../../src/engine/audited.ts";
import { foldersInMemory } from "../support/folders.ts";
import { type ServeProcess, startServe } from "./serve-process.ts";

const launcher = fileURLToPath(new URL("../../whet", import.meta.url));
const newFolder = foldersInMemory();
const run = (...args: string[]) => spawnSync(launcher, ["serve", ...args], { encoding: "utf8" });
const clientOf = ({ baseUrl, apiKey }: ServeProcess) => new ServiceClient({ baseUrl, apiKey, onWarning: () => {} });
const datum = { modelInput: [1, 2, 3], lossFnInputs: { target_tokens: [2, 3, 4], weights: [1, 1, 1] } };

test("prints one line, ends with 0 on SIGTERM, and frees its folder", async () => {
  const stateDir = newFolder();
  const server = await startServe(["engine=simulated", `state_dir=${stateDir}`]);
  expect(existsSync(join(stateDir, "lock"))).toBe(true);
  // State is for its owner alone.
  for (const name of readdirSync(stateDir))
    expect([name, statSync(join(stateDir, name)).mode & 0o077]).toEqual([name, 0]);
  expect(await server.close()).toBe(0);
  expect(server.errors()).toBe("");
  expect(existsSync(join(stateDir, "lock"))).toBe(false);
});

test("ends when its parent closes standard input, but not at Ctrl-C", async () => {
  const args = ["serve", "engine=simulated", "port=0", `state_dir=${newFolder()}`, "exit_with_parent=true"];
  const child = spawn(launcher, args, { env: { ...process.env, TINKER_API_KEY: "" }, stdio: ["pipe", "pipe", "pipe"] });
  let errors = "";
  child.stderr.on("data", (chunk: Buffer) => {
    errors += chunk.toString();
  });
  const exited = once(child, "exit");
  await once(child.stdout, "data");
  child.kill("SIGINT");
  await new Promise((resolve) => setTimeout(resolve, 100));
  expect(child.exitCode).toBeNull();
  child.stdin.end();
  expect(await exited).toEqual([0, null]);
  // Without api_key and TINKER_API_KEY it makes a key up and says it, on stderr.
  expect(errors).toMatch(/^whetstone: the API key of this server is tml-[\w-]{20,}\n$/);
});

test("refuses what it cannot do, with an exit code and a code", async () => {
  for (const [args, status, code] of [
    [["prot=1"], 2, "config/unknown-key"],
    [["api_key=secret"], 2, "config/bad-value"],
    [["engine=embedded", "model=/nowhere"], 2, "config/bad-value"],
    [["engine=simulated", "training_latency=soon"], 1, "engine/simulated-distribution"],
    [["engine=simulated", "audit=/nowhere/audit.jsonl", `state_dir=${newFolder()}`], 1, "engine/audit"],
  ] as const) {
    const result = run(...args);
    expect([result.status, result.stderr], args.join(" ")).toEqual([status, expect.stringContaining(`[${code}]`)]);
    expect(result.stdout).toBe("");
  }
  const stateDir = newFolder();
  const server = await startServe(["engine=simulated", `state_dir=${stateDir}`]);
  const port = new URL(server.baseUrl).port;
  expect(run("engine=simulated", `port=${port}`, `state_dir=${newFolder()}`).stderr).toContain("[server/listen]");
  expect(run("engine=simulated", "port=0", `state_dir=${stateDir}`).stderr).toContain("[server/state-locked]");
  await server.close();
});

test("after kill -9 the next start has the checkpoints, the sessions and the count of applied steps", async () => {
  const stateDir = newFolder();
  const first = await startServe(["engine=simulated", `state_dir=${stateDir}`]);
  let service = clientOf(first);
  const baseModel = (await service.getServerCapabilities()).supportedModels[0]!.modelName!;
  const training = await service.createLoraTrainingClient({ baseModel, rank: 8 });
  await Promise.all([training.forwardBackward([datum], "cross_entropy"), training.optimStep({ learningRate: 0.1 })]);
  const { path } = await training.saveState("kept");
  const logprobs = await training.forward([datum], "cross_entropy");
  await training.optimStep({ learningRate: 0.1 });
  const exited = once(first.child, "exit");
  first.child.kill("SIGKILL");
  await exited;
  await service.close();

  const second = await startServe(["engine=simulated", `state_dir=${stateDir}`]);
  service = clientOf(second);
  const rest = service.createRestClient();
  const run = await rest.getTrainingRun(training.modelId);
  expect(run.corrupted).toBe(true);
  expect(run.lastCheckpoint?.tinkerPath).toBe(path);
  expect(await rest.listSessions()).toContain(training.modelId.split(":")[0]);
  const resumed = await service.createTrainingClientFromStateWithOptimizer(path);
  expect((await resumed.forward([datum], "cross_entropy")).lossFnOutputs).toEqual(logprobs.lossFnOutputs);
  const raw = await fetch(`${second.baseUrl}/api/v1/training_runs/${training.modelId}`, {
    headers: { "X-API-Key": second.apiKey },
  });
  expect(await raw.json()).toMatchObject({ applied_optim_steps: 2, last_applied_seq_id: 5 });
  await service.close();
  expect(await second.close()).toBe(0);
});

test("the audit counts over kill -9 what was answered, and a policy keeps its name", async () => {
  const stateDir = newFolder();
  const audit = join(newFolder(), "audit.jsonl");
  const args = ["engine=simulated", `state_dir=${stateDir}`, `audit=${audit}`];
  const first = await startServe(args);
  let service = clientOf(first);
  const baseModel = (await service.getServerCapabilities()).supportedModels[0]!.modelName!;
  const training = await service.createLoraTrainingClient({ baseModel, rank: 8 });
  await Promise.all([training.forwardBackward([datum], "cross_entropy"), training.optimStep({ learningRate: 0.1 })]);
  const { path } = await training.saveState("kept");
  const exited = once(first.child, "exit");
  first.child.kill("SIGKILL");
  expect(readAudit(audit).map(({ op }) => op)).toEqual([
    "create_model",
    "forward_backward",
    "optim_step",
    "save_state",
  ]);
  await exited;
  await service.close();

  const second = await startServe(args);
  service = clientOf(second);
  const resumed = await service.createTrainingClientFromStateWithOptimizer(path);
  const sampler = await resumed.saveWeightsAndGetSamplingClient();
  const request = { prompt: [1, 2], numSamples: 2, samplingParams: { maxTokens: 4, seed: 7 } };
  await sampler.sample(request);
  const lines = readAudit(audit);
  expect(lines.slice(4).map(({ op }) => op)).toEqual(["create_model", "load_state", "create_sampler", "sample"]);
  const [updated, sampled] = [lines[2], lines.at(-1)] as { steps: number; policy: string }[];
  expect(sampled).toMatchObject({ steps: 1, policy: updated!.policy, seed: 7, samples: 2 });
  await service.close();
  await second.close();
});
