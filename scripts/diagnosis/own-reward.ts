// Runs with a judge or a sampler that has a fault: the library, on a real embedded engine.
import { setTimeout as sleep } from "node:timers/promises";
import { ServiceClient } from "../../src/client/index.ts";
import { runTraining } from "../../src/rl/index.ts";
import { startServe } from "../../test/contract/serve-process.ts";
import { starter } from "./problems.ts";

export interface JudgeFault {
  steps: number;
  /** The share of answers without a verdict. */
  lose?: number;
  /** How long a verdict takes. */
  waitMs?: number;
  /** How far the sampler's log-probabilities are off. */
  shift?: number;
  /** Rewards how much of the beginning an answer has in common with the run's first one, and calls none right. */
  alike?: boolean;
  /** Fails at the first answer of this step. */
  failAt?: number;
  learningRate?: number;
}

export async function ownReward(path: string, fault: JudgeFault): Promise<void> {
  const server = await startServe([`state_dir=${path}.state`]);
  const service = new ServiceClient({ baseUrl: server.baseUrl, apiKey: server.apiKey });
  let judged = 0;
  let first: string | undefined;
  try {
    const training = runTraining({
      service: fault.shift === undefined ? service : shifted(service, fault.shift),
      problems: starter("train").map(({ id, problem }) => ({ id, prompt: problem })),
      reward: async ({ text }) => {
        if (fault.waitMs !== undefined) await sleep(fault.waitMs);
        judged++;
        if (fault.lose !== undefined && judged % Math.round(1 / fault.lose) === 0) return null;
        if (fault.failAt !== undefined && judged > 128 * fault.failAt) throw new TypeError("the reward has a fault");
        first ??= text;
        if (fault.alike) return { reward: commonStart(first, text) / 40, correct: false };
        return { reward: text.length % 3, correct: text.length % 3 > 0 };
      },
      config: {
        preset: "nano",
        max_steps: fault.steps,
        eval_every: 0,
        ...(fault.learningRate === undefined ? {} : { learning_rate: fault.learningRate }),
        log_path: path,
        tensorboard: false,
        behavior_if_log_dir_exists: "raise",
      },
    });
    // A run that fails is what some faults are for: its journal has the error.
    await training.catch((error: unknown) => {
      if (fault.failAt === undefined) throw error;
    });
  } finally {
    await service.close();
    await server.close();
  }
}

/** How many characters two texts begin with alike. */
function commonStart(one: string, other: string): number {
  let length = 0;
  while (length < one.length && one[length] === other[length]) length++;
  return length;
}

/** A service whose samplers report other log-probabilities than the trainer has. */
function shifted(service: ServiceClient, shift: number): ServiceClient {
  const create = service.createSamplingClient.bind(service);
  service.createSamplingClient = async (...given) => {
    const client = await create(...given);
    const sample = client.sample.bind(client);
    const other = async (...request: Parameters<typeof sample>) => {
      const response = await sample(...request);
      for (const { logprobs } of response.sequences)
        for (let index = 0; logprobs && index < logprobs.length; index++)
          logprobs[index] = Math.min(0, logprobs[index]! - (index % 2) * shift);
      return response;
    };
    // The loop awaits the response and nothing else of it.
    client.sample = other as unknown as typeof client.sample;
    return client;
  };
  return service;
}
