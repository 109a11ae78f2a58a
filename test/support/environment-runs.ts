// Environments trained for real: the bundled model on one embedded engine, in steps of a second or two.
import { join } from "node:path";
import { type Environment, runTraining, type TrainingOptions, type TrainingProblem } from "whetstone/rl";
import { ServiceClient } from "whetstone/tinker";
import type { EventOf, RunEvent } from "../../src/runs/events.ts";
import { readJournal } from "../../src/runs/read-journal.ts";
import { foldersInMemory } from "./folders.ts";
import { sharedEngine } from "./shared-engine.ts";

export const newFolder = foldersInMemory();

/** A run of an environment; `path` is a new folder unless given. */
export async function trainOn<Problem extends TrainingProblem>(
  environment: Environment<Problem>,
  { config, path = join(newFolder(), "run"), ...options }: Partial<TrainingOptions<Problem>> & { path?: string } = {},
) {
  const { baseUrl, apiKey } = await sharedEngine();
  const service = new ServiceClient({ baseUrl, apiKey });
  try {
    const settings = {
      preset: "nano",
      max_steps: 1,
      prompts_per_step: 2,
      completions_per_prompt: 4,
      max_tokens: 80,
      context_window: 512,
      tensorboard: false,
      log_path: path,
    } as const;
    const result = await runTraining({ service, environment, ...options, config: { ...settings, ...config } });
    return { ...result, events: eventsOf(path) };
  } finally {
    await service.close();
  }
}

export const eventsOf = (path: string): RunEvent[] => [...readJournal(path)].map(({ event }) => event);

export const eventsNamed = <Type extends RunEvent["type"]>(events: readonly RunEvent[], type: Type) =>
  events.filter((event): event is EventOf<Type> => event.type === type);
