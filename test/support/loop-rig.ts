// The training loop as a library, on a server of this process with the simulated engine behind it: steps of a few milliseconds that are
// really sampled from the weights as they are, and the engine's own account of what was done.
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { type RunEvent, runTraining, type TrainConfig, type TrainingOptions, type TrainingResult } from "whetstone/rl";
import { ServiceClient } from "whetstone/tinker";
import { AuditedEngine, type AuditLine, readAudit } from "../../src/engine/audited.ts";
import { SimulatedEngine, type SimulatedEngineOptions } from "../../src/engine/simulated/engine.ts";
import { readJournal } from "../../src/runs/read-journal.ts";
import { startServer } from "../../src/server/index.ts";
import { foldersInMemory } from "./folders.ts";

export const newFolder = foldersInMemory();

export const problems = Array.from({ length: 200 }, (_, index) => ({
  id: `p${index}`,
  prompt: `problem ${index}`,
  index,
}));
export type Problem = (typeof problems)[number];

export interface LoopRig {
  url: string;
  stateDir: string;
  /** A run of the settings below and those given; `url`: by way of a proxy. */
  train(
    path: string,
    options?: Omit<Partial<TrainingOptions<Problem>>, "config"> & { config?: Partial<TrainConfig>; url?: string },
  ): Promise<TrainingResult>;
  audit(): AuditLine[];
}

const settings: Partial<TrainConfig> = {
  preset: "nano",
  max_steps: 6,
  prompts_per_step: 4,
  completions_per_prompt: 4,
  max_tokens: 12,
  learning_rate: 0.05,
  eval_every: 3,
  save_every: 2,
  tensorboard: false,
  behavior_if_log_dir_exists: "resume",
};

/** Which tokens were drawn decides, so half of the answers are right whatever was learned. */
export const parity = ({ tokens }: { tokens: Int32Array }) => tokens.reduce((sum, token) => sum + token, 0) % 2;

/** Gone when the test has ended. */
export async function loopRig(engine: SimulatedEngineOptions = {}): Promise<LoopRig> {
  const stateDir = newFolder();
  const auditPath = join(stateDir, "audit.jsonl");
  const server = await startServer({
    stateDir,
    createEngine: async () =>
      new AuditedEngine(new SimulatedEngine({ modelName: "nano-coder", vocabSize: 1024, ...engine }), auditPath),
    apiKey: "tml-test",
    drainMs: 0,
  });
  onTestFinished(() => server.close());
  return {
    url: server.url,
    stateDir,
    audit: () => readAudit(auditPath),
    async train(path, { config, url = server.url, ...options } = {}) {
      const service = new ServiceClient({ baseUrl: url, apiKey: "tml-test" });
      try {
        return await runTraining({
          service,
          problems,
          testProblems: problems.slice(0, 3),
          reward: parity,
          ...options,
          config: { ...settings, log_path: path, ...config },
        });
      } finally {
        await service.close();
      }
    },
  };
}

export const eventsOf = (path: string): RunEvent[] => [...readJournal(path)].map(({ event }) => event);

/** What must be the same of two runs whatever the timing: every event that counts without its times, in an order of its own. */
export function whatHappened(events: readonly RunEvent[]): string[] {
  const lines: string[] = [];
  for (const event of events) {
    if (event.type === "group-sampled")
      lines.push(line(event, ["policy", "problem", "seed", "datasetIndex", "samples"]));
    else if (event.type === "graded") lines.push(`${placeOf(event)} ${event.sample} ${event.grade.reward}`);
    else if (event.type === "update-submitted") lines.push(line(event, ["step", "rule", "groups"]));
    else if (event.type === "evaluated") lines.push(line(event, ["step", "final", "outcomes"]));
    else if (event.type === "step-done") lines.push(line(event, ["step", "datasetOffset"]));
    else if (event.type === "saved") {
      const { name, step, dataset_offset: offset } = event.record;
      lines.push(`saved ${name} ${step} ${offset}`);
    }
  }
  return lines.sort();
}

const placeOf = ({ phase, batch, group }: { phase: string; batch: number; group: number }) =>
  `${phase} ${batch} ${group}`;
const line = (event: RunEvent, keys: readonly string[]) =>
  `${event.type} ${"phase" in event ? placeOf(event) : ""} ${JSON.stringify(keys.map((key) => (event as Record<string, unknown>)[key]))}`;

/** The history of the weights that a run's last checkpoint holds, by the engine's own word. */
export function lastWeights(rig: LoopRig, path: string): { steps: number; policy: string } {
  const saved = eventsOf(path).findLast((event) => event.type === "saved")!;
  const [model] = (saved as Extract<RunEvent, { type: "saved" }>).record
    .state_path!.replace("tinker://", "")
    .split("/");
  const { steps, policy } = rig.audit().findLast((entry) => entry.op === "save_state" && entry.model === model) as {
    steps: number;
    policy: string;
  } & AuditLine;
  return { steps, policy };
}
