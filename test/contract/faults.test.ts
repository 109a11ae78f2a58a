// What happens when things break: every fault of the script, on every kind of request, and hundreds of random schedules of them.
// A client finishes or raises a documented error; no optimizer step that was acknowledged is missing, none is applied twice.
import { afterAll, describe, expect, test } from "vitest";
import type { DatumInput, ServiceClient, TrainingClient } from "../../src/client/index.ts";
import { Random } from "../../src/core/random.ts";
import { SimulatedEngine } from "../../src/engine/simulated/engine.ts";
import { type FaultKind, type FaultRuleInput, faultKinds } from "../support/faults.ts";
import { foldersInMemory } from "../support/folders.ts";
import { documentedCode, type FaultyServer, silenceMs, startFaulty } from "./fault-harness.ts";

const newFolder = foldersInMemory();

function datum(seed: number): DatumInput {
  const random = new Random("faults", seed);
  const tokens = Array.from({ length: 9 }, () => random.integer(512));
  return {
    modelInput: tokens.slice(0, -1),
    lossFnInputs: { target_tokens: tokens.slice(1), weights: new Array<number>(8).fill(1) },
  };
}
const probe = datum(0);

async function outcomeOf(run: () => PromiseLike<unknown>): Promise<string> {
  try {
    await run();
    return "finishes";
  } catch (error) {
    return documentedCode(error);
  }
}

function ruleOf(fault: FaultKind, route: string): FaultRuleInput {
  const storm = fault === "429" || fault === "408" || fault.startsWith("50");
  const ms = fault === "429" ? 5 : fault === "slow-body" ? silenceMs / 10 : fault.startsWith("restart") ? 5 : silenceMs;
  return { route, fault, times: storm ? 3 : 1, ms };
}

describe("one fault at a time", () => {
  // What the client does, where it does not simply finish. `submit`: the fault hits the request itself; `poll`: the wait for its result.
  const expected: Readonly<Record<string, string>> = {
    "410 on submit, train step": "client/gone",
    "410 on poll, train step": "client/request-lost",
    "restart-before on submit, train step": "client/model-lost",
    "restart-before on poll, train step": "client/request-lost",
    "restart-after on submit, train step": "client/model-lost",
    "restart-after on poll, train step": "client/request-lost",
    "410 on submit, sample": "client/gone",
    "410 on submit, save": "client/gone",
    "410 on poll, save": "client/request-lost",
    "restart-before on submit, save": "client/model-lost",
    "restart-before on poll, save": "client/request-lost",
    "restart-after on submit, save": "client/model-lost",
    "restart-after on poll, save": "client/request-lost",
  };
  const routes = { "train step": "optimStep", sample: "sample", save: "saveWeights" } as const;
  let faulty: FaultyServer | undefined;
  let steps = 0;
  afterAll(async () => {
    await faulty?.close();
  });

  for (const fault of faultKinds)
    for (const place of ["submit", "poll"] as const)
      for (const work of ["train step", "sample", "save"] as const) {
        const name = `${fault} on ${place}, ${work}`;
        test(`${name}: ${expected[name] ?? "finishes"}`, async () => {
          faulty ??= await startFaulty(newFolder());
          const { service, faults, applied, server } = faulty;
          const [{ modelName }] = (await service.getServerCapabilities()).supportedModels as [{ modelName: string }];
          const training = await service.createLoraTrainingClient({ baseModel: modelName, rank: 8 });
          const sampler = await service.createSamplingClient({ baseModel: modelName });
          await training.forwardBackward([datum(1)], "cross_entropy");
          const learningRate = 1e-4 * (1 + ++steps);
          faults.add([ruleOf(fault, place === "submit" ? routes[work] : "retrieveFuture")]);
          const fired = faults.fired.length;
          let submitted = false;
          const outcome = await outcomeOf(async () => {
            if (work === "sample") return sampler.sample({ prompt: [1, 2], samplingParams: { maxTokens: 4, seed: 1 } });
            const call = work === "save" ? training.saveState(`s${steps}`) : training.optimStep({ learningRate });
            submitted = await call.submitted.then(
              () => true,
              () => false,
            );
            return call;
          });
          expect(faults.fired.length, "the fault has to hit").toBeGreaterThan(fired);
          expect(outcome).toBe(expected[name] ?? "finishes");
          if (work !== "train step") return;
          // The server's count is the client's: a step that has its request id is applied once; the journal counts the same.
          const count = applied.get(learningRate) ?? 0;
          expect(count).toBeLessThanOrEqual(1);
          if (outcome === "finishes" || (submitted && !fault.startsWith("restart"))) expect(count).toBe(1);
          if (outcome === "client/gone") expect(count).toBe(0);
          expect(server.app.registry.model(training.modelId).appliedSteps).toBe(count);
        });
      }
});

describe("random schedules", () => {
  const schedules = Number(process.env["WHET_FAULTS"] ?? 120);
  const routes = [
    "optimStep",
    "forwardBackward",
    "retrieveFuture",
    "sample",
    "saveWeights",
    "saveWeightsForSampler",
    "*",
  ];

  const title = `${schedules} of them: nothing lost, nothing doubled, and the weights are those of an undisturbed run`;
  test(title, { timeout: 600_000 }, async () => {
    const totals = { fired: 0, steps: 0, recoveries: 0, lost: 0, doubled: 0 };
    const queue = Array.from({ length: schedules }, (_, seed) => seed);
    // Several servers at once, each with one schedule after another: most of the time goes by waiting on silent connections.
    const worker = async () => {
      const faulty = await startFaulty(newFolder());
      try {
        for (let seed = queue.shift(); seed !== undefined; seed = queue.shift())
          await runSchedule(seed, faulty, totals);
      } finally {
        await faulty.close();
      }
    };
    await Promise.all(Array.from({ length: 6 }, worker));
    if (process.env["WHETSTONE_FIGURES"]) console.log(totals);
    expect(totals).toMatchObject({ lost: 0, doubled: 0 });
    // The schedules have to bite: on average at least one fault and several steps each.
    expect(totals.fired).toBeGreaterThan(schedules);
    expect(totals.steps).toBeGreaterThanOrEqual(schedules * stepsPerRun);
    expect(totals.recoveries).toBeGreaterThan(0);
  });

  const stepsPerRun = 3;

  async function runSchedule(
    seed: number,
    { service, faults, applied, server }: FaultyServer,
    totals: { fired: number; steps: number; recoveries: number; lost: number; doubled: number },
  ): Promise<void> {
    const random = new Random("schedule", seed);
    const fired = faults.fired.length;
    applied.clear();
    faults.add(
      Array.from({ length: 1 + random.integer(4) }, () => {
        const fault = faultKinds[random.integer(faultKinds.length)]!;
        const rule = ruleOf(fault, routes[random.integer(routes.length)]!);
        return { ...rule, skip: random.integer(12) };
      }),
    );
    const run = new Run(service, server.app.engine.models[0]!.name, seed);
    await run.finish();
    faults.clear();
    totals.fired += faults.fired.length - fired;
    totals.steps += run.acknowledged.length;
    totals.recoveries += run.recoveries;
    for (const rate of run.acknowledged) if (!applied.has(rate)) totals.lost++;
    for (const count of applied.values()) if (count > 1) totals.doubled++;
    expect(run.finalLogprobs, `schedule ${seed}`).toEqual(await undisturbed(run.history));
    expect(server.app.registry.model(run.modelId).appliedSteps).toBe(run.stepsOfModel);
  }

  /** A training run that goes back to its last checkpoint whenever an error says that the model or a step is lost. */
  class Run {
    readonly #service: ServiceClient;
    readonly #baseModel: string;
    readonly #seed: number;
    #training: TrainingClient | undefined;
    #checkpoint: { path: string; history: [seed: number, rate: number][] } | undefined;
    #attempts = 0;
    history: [seed: number, rate: number][] = [];
    acknowledged: number[] = [];
    recoveries = 0;
    /** Steps acknowledged for the model of the moment. */
    stepsOfModel = 0;
    finalLogprobs: number[] = [];

    constructor(service: ServiceClient, baseModel: string, seed: number) {
      this.#service = service;
      this.#baseModel = baseModel;
      this.#seed = seed;
    }

    get modelId(): string {
      return this.#training!.modelId;
    }

    async finish(): Promise<void> {
      for (let failures = 0; ; failures++) {
        try {
          await this.#work();
          return;
        } catch (error) {
          documentedCode(error);
          if (failures > 40) throw error;
          this.recoveries++;
          this.#training = undefined;
        }
      }
    }

    async #work(): Promise<void> {
      this.#training ??= await this.#resume();
      const training = this.#training;
      while (this.history.length < stepsPerRun) {
        const rate = 1e-4 * (1 + this.#attempts++);
        const seed = this.#seed * 10 + this.history.length;
        const [update, step] = await Promise.allSettled([
          training.forwardBackward([datum(seed), datum(seed + 5)], "cross_entropy"),
          training.optimStep({ learningRate: rate }),
        ]);
        if (step.status === "fulfilled") {
          this.acknowledged.push(rate);
          this.stepsOfModel++;
        }
        for (const part of [update, step]) if (part.status === "rejected") throw part.reason;
        this.history.push([seed, rate]);
        if (this.history.length === 2) await this.#save(training);
      }
      const sampler = await training.saveWeightsAndGetSamplingClient();
      await Promise.all(
        [1, 2].map((seed) => sampler.sample({ prompt: [1, 2, 3], samplingParams: { maxTokens: 3, seed } })),
      );
      const output = await training.forward([probe], "cross_entropy");
      this.finalLogprobs = Array.from(output.lossFnOutputs[0]!["logprobs"]!.data as Float32Array);
    }

    async #save(training: TrainingClient): Promise<void> {
      const { path } = await training.saveState(`after-${this.#attempts}`);
      this.#checkpoint = { path, history: [...this.history] };
    }

    async #resume(): Promise<TrainingClient> {
      this.history = [...(this.#checkpoint?.history ?? [])];
      this.stepsOfModel = 0;
      return this.#checkpoint
        ? this.#service.createTrainingClientFromStateWithOptimizer(this.#checkpoint.path)
        : this.#service.createLoraTrainingClient({ baseModel: this.#baseModel, rank: 8 });
    }
  }

  /** The same steps on an engine of its own, without a server. */
  async function undisturbed(history: readonly [seed: number, rate: number][]): Promise<number[]> {
    const engine = new SimulatedEngine();
    const lora = { rank: 8, trainAttn: true, trainMlp: true, trainUnembed: true };
    await engine.createModel("m", { baseModel: engine.models[0]!.name, lora });
    const batch = (data: DatumInput[], forwardOnly: boolean) => ({
      data: data.map(({ modelInput, lossFnInputs }) => ({
        tokens: Int32Array.from(modelInput as number[]),
        lossInputs: {
          target_tokens: { data: Int32Array.from(lossFnInputs["target_tokens"] as number[]), shape: [8] },
          weights: { data: Float32Array.from(lossFnInputs["weights"] as number[]), shape: [8] },
        },
      })),
      loss: "cross_entropy" as const,
      lossConfig: {},
      forwardOnly,
    });
    for (const [seed, learningRate] of history) {
      await engine.forwardBackward("m", batch([datum(seed), datum(seed + 5)], false));
      await engine.optimStep("m", {
        learningRate,
        beta1: 0.9,
        beta2: 0.95,
        epsilon: 1e-12,
        weightDecay: 0,
        gradClipNorm: 0,
      });
    }
    const output = await engine.forwardBackward("m", batch([probe], true));
    return Array.from(output.logprobs[0]!.data);
  }
});
