// The sinks that a run's config asks for.

import type { Run } from "../runs/run.ts";
import type { MetricsSink } from "../runs/sinks.ts";
import { TensorBoardSink } from "../runs/tensorboard.ts";
import { WandbSink } from "../runs/wandb.ts";
import type { TrainConfig } from "./config.ts";

export async function openSinks(
  run: Run,
  config: TrainConfig,
  record: Readonly<Record<string, unknown>>,
): Promise<MetricsSink[]> {
  const sinks: MetricsSink[] = [];
  if (config.tensorboard) sinks.push(new TensorBoardSink(run.path));
  const apiKey = process.env["WANDB_API_KEY"];
  if (config.wandb_project !== "" && !apiKey)
    run.logger.warn("wandb_project is set but WANDB_API_KEY is not; Weights & Biases is left out");
  if (config.wandb_project !== "" && apiKey) {
    const baseUrl = process.env["WANDB_BASE_URL"];
    try {
      const sink = await WandbSink.start({
        apiKey,
        project: config.wandb_project,
        name: config.wandb_name || (run.path.split("/").at(-1) ?? run.path),
        runId: String(record["wandb_run_id"]),
        config: record,
        onTrouble: (message) => run.logger.warn(message),
        ...(baseUrl ? { baseUrl } : {}),
      });
      run.logger.info(`wandb    ${sink.url}`);
      sinks.push(sink);
    } catch (error) {
      run.logger.warn(`Weights & Biases is left out: ${(error as Error).message}`);
    }
  }
  return sinks;
}
