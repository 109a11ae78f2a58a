// The table of sinks: each is a file of its own, with the settings that ask for it. A new one is its file and two words here.
import type { MetricsSink, SinkContext, SinkKind } from "./sinks.ts";
import { tensorBoard } from "./tensorboard.ts";
import { weightsAndBiases } from "./wandb.ts";

const kinds: readonly SinkKind[] = [tensorBoard, weightsAndBiases];

/** The settings of all sinks, for the config of a run. */
export const sinkKeys = { ...tensorBoard.keys, ...weightsAndBiases.keys };

/** The sinks that a run's settings ask for. One that cannot be opened is logged and left out: it never stops training. */
export async function openSinks(
  settings: Readonly<Record<string, unknown>>,
  context: SinkContext,
): Promise<MetricsSink[]> {
  const opened = await Promise.all(kinds.map((kind) => kind.open(settings, context)));
  return opened.filter((sink) => sink !== undefined);
}
