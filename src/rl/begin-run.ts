// The beginning of a process's part in a run: what is recorded of its config, what differs from the part before, and who listens: what
// goes on from earlier sessions reads the journal here, once for all.
import type { Renderer } from "../renderers/index.ts";
import { readRunConfig } from "../runs/directory.ts";
import { redact } from "../runs/log.ts";
import type { Run } from "../runs/run.ts";
import { openSinks } from "../runs/sink-kinds.ts";
import { Budget } from "./budget.ts";
import type { TrainConfig } from "./config.ts";
import { keysWith } from "./config-roles.ts";
import { Findings } from "./findings.ts";
import { Meter } from "./meter.ts";
import type { Tariff } from "./prices.ts";
import { Recovered } from "./recovery.ts";
import { extraReads } from "./references.ts";
import { type Change, checkIdentity, configChanges, configHash, describeChange } from "./resume.ts";
import { idsHash, type Task } from "./tasks.ts";
import { updateRule } from "./train-step.ts";

/** What a run works with, besides its settings. */
export interface RunFacts {
  renderer: Renderer;
  engine: string;
  /** What the engine charges; undefined where nobody knows. */
  tariff: Tariff | undefined;
  sandbox: string;
  /** Answers of an episode, at most; default 1. */
  maxTurns?: number | undefined;
  train: { fingerprint: string; size: number };
  test: { fingerprint: string } | undefined;
  testTasks: readonly Task[];
  /** What else config.json is to say. */
  more?: Readonly<Record<string, unknown>>;
}

/** What config.json is to say of a run in this directory, and what differs from what it says. Refuses another run's directory. */
export function runRecord(
  path: string,
  config: TrainConfig,
  { renderer, engine, tariff, sandbox, train, test, testTasks, more }: RunFacts,
): { record: Record<string, unknown>; changes: Change[] } {
  const recorded = readRunConfig(path);
  const record = {
    ...config,
    ...Object.fromEntries(keysWith("secret").map((key) => [key, redact(config[key])])),
    renderer_name: renderer.name,
    engine,
    tariff: tariff ?? null,
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
  return { record, changes };
}

/** What has taken what the journal had when the run began, and takes what it gets. */
export interface History {
  findings: Findings;
  meter: Meter;
  budget: Budget | undefined;
  /** Follows the journal until a session begins with it. */
  recovered: Recovered;
}

/** A run that a process has begun, or goes on with. */
export interface BegunRun {
  /** What config.json says of it. */
  record: Readonly<Record<string, unknown>>;
  /** A short name for all of that. */
  configHash: string;
  /** What the server is to know of it. */
  userMetadata: Record<string, string>;
  history: History;
}

/**
 * Refuses to go on with another run; writes config.json and the journal's `started`, says what changed since the part before, opens
 * the sinks.
 */
export async function beginRun(run: Run, config: TrainConfig, facts: RunFacts): Promise<BegunRun> {
  const { record, changes } = runRecord(run.path, config, facts);
  for (const change of changes) run.logger.warn(`going on with another setting: ${describeChange(change)}`);
  const history = await beginWithHistory(run, config, facts, { record, changes });
  run.attach(await openSinks(config, { runPath: run.path, logger: run.logger, record }));
  const userMetadata = { renderer_name: facts.renderer.name, log_path: run.path };
  return { record, configHash: configHash(record), userMetadata, history };
}

/** Begins this process's part of a run of which config.json is to say `record`. */
export async function beginWithHistory(
  run: Run,
  config: TrainConfig,
  { tariff, maxTurns: turns }: Pick<RunFacts, "tariff" | "maxTurns">,
  { record, changes }: ReturnType<typeof runRecord>,
): Promise<History> {
  const [findings, meter, recovered] = [new Findings(run, config), new Meter(), new Recovered()];
  const { budget: limit } = config;
  const reads = extraReads(updateRule(config));
  const budget = limit === null || !tariff ? undefined : new Budget({ limit, tariff, meter, config, turns, reads });
  await run.begin(record, changes, [findings, meter, ...(budget ? [budget] : []), recovered]);
  return { findings, meter, budget, recovered };
}
