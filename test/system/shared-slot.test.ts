// A server whose samplers are not frozen, as SkyRL's are not: found, said, and trained on as if there were no lag.
import { join } from "node:path";
import { beforeEach, expect, test, vi } from "vitest";
import { runTraining, type TrainConfig } from "whetstone/rl";
import { ServiceClient } from "whetstone/tinker";
import { runCommand } from "../support/command-process.ts";
import { eventsOf, loopRig, newFolder, parity, problems, whatHappened } from "../support/loop-rig.ts";
import { type SharedSlotServer, sharedSlotServer } from "../support/shared-slot-server.ts";

// What is remembered of servers is no other test's.
beforeEach(() => vi.stubEnv("WHETSTONE_CACHE", newFolder()));

const settings: Partial<TrainConfig> = {
  preset: "nano",
  max_steps: 6,
  prompts_per_step: 4,
  completions_per_prompt: 4,
  max_tokens: 12,
  learning_rate: 0.05,
  eval_every: 2,
  save_every: 2,
  max_lag: 1,
  tensorboard: false,
  behavior_if_log_dir_exists: "resume",
};

async function train(
  server: SharedSlotServer,
  path: string,
  { config = {}, onMessage = (_: string) => {}, signal = new AbortController().signal } = {},
) {
  const service = new ServiceClient({ baseUrl: server.url, apiKey: "tml-test", onWarning: () => {} });
  try {
    return await runTraining({
      service,
      problems,
      testProblems: problems.slice(0, 3),
      reward: parity,
      onMessage,
      signal,
      config: { ...settings, log_path: path, ...config },
    });
  } finally {
    await service.close();
  }
}

test("trains as without lag where samplers are not frozen, whatever max_lag says, and says so once", async () => {
  const rig = await loopRig();
  const apart = join(newFolder(), "run");
  await rig.train(apart, { config: { ...settings, max_lag: 0 } });

  const server = await sharedSlotServer();
  const path = join(newFolder(), "run");
  const said: string[] = [];
  await train(server, path, { onMessage: (line) => said.push(line) });
  expect(whatHappened(eventsOf(path))).toEqual(whatHappened(eventsOf(apart)));
  expect(said.filter((line) => line.includes("not frozen"))).toEqual([
    expect.stringMatching(/max_lag=0 instead of 1, and evaluations between two steps/),
  ]);
  // No name is left at a server that cannot delete one, and every model is let go.
  expect(eventsOf(path).filter((event) => event.type === "policy-published" && event.path !== undefined)).toEqual([]);
  expect(server.engine.adapters).toBe(0);
});

test("asks a server once: the next run knows", async () => {
  const server = await sharedSlotServer();
  const models = () => server.asked.filter((asked) => asked === "POST /create_model").length;
  await train(server, join(newFolder(), "run"), { config: { max_steps: 1 } });
  expect(models()).toBe(2);
  await train(server, join(newFolder(), "run"), { config: { max_steps: 1 } });
  expect(models()).toBe(3);
});

test("a run that is interrupted goes on to where it would have come", async () => {
  const whole = join(newFolder(), "run");
  await train(await sharedSlotServer(), whole);
  const server = await sharedSlotServer();
  const path = join(newFolder(), "run");
  const stop = new AbortController();
  await train(server, path, { signal: stop.signal, onMessage: (line) => /step +2/.test(line) && stop.abort() });
  await train(server, path);
  const happened = (of: string) => [...new Set(whatHappened(eventsOf(of)))].filter((line) => !line.startsWith("saved"));
  expect(happened(path)).toEqual(happened(whole));
});

test("takes a server at its word", async () => {
  const rig = await loopRig();
  const path = join(newFolder(), "run");
  await rig.train(path, { config: { ...settings, max_steps: 2 } });
  expect(rig.audit().filter(({ op }) => op === "create_model")).toHaveLength(1);
});

test("a checkpoint is measured from a new model, since its own is gone; only the model that answers has a place", async () => {
  const server = await sharedSlotServer({}, { maxAdapters: 1 });
  const path = join(newFolder(), "run");
  const options = { env: { TINKER_API_KEY: "tml-test", WHETSTONE_CACHE: newFolder() } };
  const sizes = ["prompts_per_step=1", "completions_per_prompt=2", "max_tokens=8", "eval_max_problems=2"];
  const keys = [`base_url=${server.url}`, "preset=nano", "max_steps=1", "dashboard=false", "tensorboard=false"];
  const trained = await runCommand(["train", `log_path=${path}`, ...keys, ...sizes], options);
  expect(trained.code).toBe(0);
  expect(trained.stderr).toMatch(/^step +0/m);
  expect(trained.stderr).not.toMatch(/loss 0\.0000/);
  const measured = await runCommand(["eval", `run=${path}`], options);
  expect(measured.stderr).not.toContain("not loaded");
  expect(measured.stdout).toMatch(/Pass@1 .* 2 problems/);
  expect(server.engine.adapters).toBe(0);
});
