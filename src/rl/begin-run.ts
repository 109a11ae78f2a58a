// The beginning of a process's part in a run: what is recorded of its config, what differs from the part before, and who listens.
import type { Renderer } from "../renderers/index.ts";
import { readRunConfig } from "../runs/directory.ts";
import type { Run } from "../runs/run.ts";
import { completionsPerPrompt, type TrainConfig } from "./config.ts";
import { checkIdentity, configChanges, configHash, describeChange } from "./resume.ts";
import { openSinks } from "./sinks.ts";
import { idsHash, type Task } from "./tasks.ts";
import type { TrainParts } from "./train.ts";

/** What a run works with, besides its settings. */
export interface RunFacts {
  renderer: Renderer;
  engine: string;
  sandbox: string;
  train: { fingerprint: string; size: number };
  test: { fingerprint: string } | undefined;
  testTasks: readonly Task[];
  /** What else config.json is to say. */
  more?: Readonly<Record<string, unknown>>;
}

/**
 * Refuses to go on with another run; writes config.json and the journal's `started`, says what changed since the part before, opens
 * the sinks. Returns what is recorded, and what of it the loop is told.
 */
export async function beginRun(
  run: Run,
  config: TrainConfig,
  { renderer, engine, sandbox, train, test, testTasks, more }: RunFacts,
): Promise<{ record: Record<string, unknown>; told: Pick<TrainParts, "configHash" | "userMetadata"> }> {
  const recorded = readRunConfig(run.path);
  const record = {
    ...config,
    renderer_name: renderer.name,
    completions_per_prompt: completionsPerPrompt(config),
    engine,
    sandbox,
    data_fingerprint: train.fingerprint,
    train_problems: train.size,
    test_fingerprint: test?.fingerprint ?? null,
    eval_problems: testTasks.length,
    eval_ids_hash: idsHash(testTasks),
    ...more,
    wandb_run_id: recorded?.["wandb_run_id"] ?? crypto.randomUUID().slice(0, 8),
    started_at: recorded?.["started_at"] ?? new Date().toISOString(),
  };
  const changes = recorded ? configChanges(recorded, record) : [];
  checkIdentity(changes, config.force_resume);
  for (const change of changes) run.logger.warn(`going on with another setting: ${describeChange(change)}`);
  await run.begin(record, changes);
  run.attach(await openSinks(run, config, record));
  const userMetadata = { renderer_name: renderer.name, log_path: run.path };
  return { record, told: { configHash: configHash(record), userMetadata } };
}
