// Where a run begins or goes on: the newest checkpoint the server still has, given weights, or a fresh adapter; and what the journal
// has from there on, so that nothing is sampled, graded or paid for twice.
import { createHash } from "node:crypto";
import type { ServiceClient, TrainingClient } from "../client/index.ts";
import { countOf } from "../core/count.ts";
import { ConfigError, messageOf, WhetstoneError } from "../core/errors.ts";
import { whet } from "../core/program.ts";
import type { CheckpointRecord } from "../runs/checkpoints.ts";
import type { Journal } from "../runs/journal.ts";
import type { Run } from "../runs/run.ts";
import type { TrainConfig } from "./config.ts";
import { meaningOf, roleOf } from "./config-roles.ts";
import { isGone } from "./lost.ts";
import { type Position, Recovered } from "./recovery.ts";

/** A run that cannot go on as it is. */
export class TrainError extends WhetstoneError {}

export interface Start {
  training: TrainingClient;
  /** The policy version that `training` holds, and the prompts consumed before it. */
  position: Position;
  recovered: Recovered;
  /** The checkpoint it was loaded from. */
  from: CheckpointRecord | undefined;
}

export interface Change {
  key: string;
  was: unknown;
  is: unknown;
}

/** What differs between the recorded config and this one. */
export function configChanges(
  recorded: Readonly<Record<string, unknown>>,
  current: Readonly<Record<string, unknown>>,
): Change[] {
  return [...new Set([...Object.keys(recorded), ...Object.keys(current)])]
    .filter((key) => !["place", "start"].includes(roleOf(key)))
    .filter((key) => JSON.stringify(recorded[key] ?? null) !== JSON.stringify(current[key] ?? null))
    .map((key) => ({ key, was: recorded[key], is: current[key] }));
}

export const describeChange = ({ key, was, is }: Change) =>
  `${meaningOf(key)}${key} was ${JSON.stringify(was)} and is now ${JSON.stringify(is)}`;

/** Refuses to resume a run whose identity changed, naming what differs. */
export function checkIdentity(changes: readonly Change[], force: boolean): void {
  const changed = changes.filter(({ key }) => roleOf(key) === "identity");
  if (changed.length === 0 || force) return;
  throw new ConfigError(
    "config/resume-mismatch",
    `This run directory belongs to another run: ${changed.map(describeChange).join("; ")}. Set the same values again, name another ` +
      "log_path, or set force_resume=true if you mean it.",
  );
}

/** A short name for the whole config, written into checkpoint records. */
export function configHash(config: Readonly<Record<string, unknown>>): string {
  return createHash("sha256").update(JSON.stringify(config)).digest("hex").slice(0, 16);
}

interface MakingOptions {
  userMetadata: Record<string, string>;
  signal: AbortSignal;
}

/** Makes the training client, or takes the one that was `made` for a run without a checkpoint, and reads what the journal has from its version on. */
export async function resume(
  service: ServiceClient,
  config: TrainConfig,
  run: Run,
  options: MakingOptions & { made?: TrainingClient | undefined; recovered?: Recovered | undefined },
): Promise<Start> {
  const { journal } = run;
  let recovered = options.recovered ?? following(journal);
  const { training, from } = await openTraining(service, config, run, { ...options, records: recovered.checkpoints });
  const position = { step: from?.step ?? 0, datasetOffset: from?.dataset_offset ?? 0 };
  // The server has lost the newest: what comes before it was not held.
  if (position.step < recovered.from) {
    journal.leave(recovered);
    recovered = following(journal, position.step);
  }
  const frontier = recovered.frontier(position);
  const rewind = !recovered.canRetrain(position)
    ? { to: position.step, reason: "the tokens of later steps were thinned from the journal (keep_journal=checkpoint)" }
    : recovered.hasStaleGroups(frontier.step)
      ? { to: frontier.step, reason: "groups that were sampled or graded ahead under another config are not used" }
      : undefined;
  const evaluations = recovered.staleEvaluations();
  if (rewind) {
    run.logger.warn(`going on at step ${rewind.to}: ${rewind.reason}`);
    await journal.append({ type: "rewound", ...rewind });
  }
  for (const step of evaluations) {
    run.logger.warn(`the evaluation of policy ${step}, begun under another config, begins anew`);
    await journal.append({ type: "evaluation-started", step });
  }
  journal.leave(recovered);
  await journal.append({
    type: "resumed",
    version: position.step,
    checkpoint: from?.name ?? null,
    datasetOffset: position.datasetOffset,
    model: training.modelId,
  });
  const begun = describeStart(position.step, recovered.frontier(position).step, config, from?.name);
  if (begun) run.logger.info(begun);
  return { training, position, recovered, from };
}

/** The step before which training ends that begins at `first`: what a checkpoint has cannot be taken back. */
export const endOf = ({ max_steps: most }: Pick<TrainConfig, "max_steps">, first: number): number =>
  most < 0 ? Number.POSITIVE_INFINITY : Math.max(most, first);

/** What becomes of the steps that the journal has: those up to `frontier` were trained before. Undefined for a run that begins. */
export function describeStart(
  first: number,
  frontier: number,
  config: Pick<TrainConfig, "max_steps">,
  checkpoint: string | undefined,
): string | undefined {
  if (checkpoint === undefined && frontier === first) return undefined;
  const end = endOf(config, first);
  const again = Math.min(frontier, end) - first;
  const left = frontier - first - again;
  const later = (count: number) => `${countOf(count, "later step")} of the journal ${count === 1 ? "is" : "are"}`;
  return [
    `resuming at step ${first} from ${checkpoint === undefined ? "the start" : `checkpoint ${checkpoint}`}`,
    ...(again > 0 ? [`${later(again)} trained again, nothing is sampled again`] : []),
    ...(end === first ? [`max_steps=${config.max_steps} leaves nothing to train`] : []),
    ...(left > 0 ? [`${later(left)} kept for a larger max_steps`] : []),
  ].join("; ");
}

function following(journal: Journal, from?: number): Recovered {
  const recovered = new Recovered(from);
  journal.follow([recovered]);
  return recovered;
}

/** Newest checkpoint first, an older one where the server has lost it; fresh only for a run that never saved. */
async function openTraining(
  service: ServiceClient,
  config: TrainConfig,
  run: Run,
  { made, records, ...options }: MakingOptions & { made?: TrainingClient | undefined; records: CheckpointRecord[] },
): Promise<{ training: TrainingClient; from: CheckpointRecord | undefined }> {
  for (const record of records) {
    try {
      const training = await service.createTrainingClientFromStateWithOptimizer(record.state_path!, options);
      return { training, from: record };
    } catch (error) {
      if (!(await isGone(error, service))) throw error;
      run.logger.warn(`checkpoint ${record.name} is gone from the server (${messageOf(error)})`);
    }
  }
  if (records.length > 0) {
    throw new TrainError(
      "rl/checkpoints-gone",
      `None of the ${records.length} checkpoints of ${run.path} is on the server any more (the newest was ${records[0]!.name}, step ${records[0]!.step}). ` +
        "Is this the server and the account that trained it? If they have expired, start a new run in another log_path; " +
        "from= starts it from weights that were kept. Nothing was changed.",
    );
  }
  return { training: made ?? (await freshTraining(service, config, options)), from: undefined };
}

/** The model that a run begins with: given weights, or a fresh adapter. */
export function freshTraining(
  service: ServiceClient,
  config: TrainConfig,
  options: MakingOptions,
): Promise<TrainingClient> {
  if (config.from !== "") return fromWeights(service, config, options);
  const { model_name: baseModel, lora_rank: rank, train_unembed: trainUnembed, seed } = config;
  return service.createLoraTrainingClient({ baseModel, rank, trainUnembed, seed, ...options });
}

/** Given weights, if they are an adapter of the shape that the config says. */
async function fromWeights(
  service: ServiceClient,
  config: TrainConfig,
  options: MakingOptions,
): Promise<TrainingClient> {
  const { from, model_name: model, lora_rank: rank, train_unembed: unembed } = config;
  const rest = service.createRestClient();
  // Not every server says what it has; then loading decides.
  const info = await rest.getWeightsInfoByTinkerPath(from, { signal: options.signal }).catch(() => undefined);
  options.signal.throwIfAborted();
  const other = [
    { key: "model_name", is: info?.baseModel, asked: model },
    { key: "lora_rank", is: info?.loraRank, asked: rank },
    { key: "train_unembed", is: info?.trainUnembed, asked: unembed },
  ].find(({ is, asked }) => is !== undefined && is !== asked);
  if (other)
    throw new ConfigError(
      "config/other-start",
      `from=${from} was trained with ${other.key}=${String(other.is)}, and ${other.key}=${String(other.asked)} is asked for. Set ${other.key}=${String(other.is)}, or leave from out.`,
    );
  try {
    return await service.createTrainingClientFromState(from, options);
  } catch (error) {
    if (!(await isGone(error, service))) throw error;
    throw new TrainError(
      "rl/start-gone",
      `from=${from} is not on this server (${messageOf(error)}). Nothing was trained. Name a checkpoint that it has (${whet} checkpoints lists them), or the server that has this one.`,
      { cause: error },
    );
  }
}
