// How much memory a training run takes, so that batches are cut to size and one that cannot fit is refused instead of taking
// the process down.
import { totalmem } from "node:os";
import type { DecoderConfig } from "./architecture.ts";
import type { PackedRun } from "./packing.ts";

/** Runs are planned to take about this much for activations, or a third of what one run may take. */
const maxPlannedBytes = 4e9;
/** Beyond this, longer runs are no faster: their activations leave the processor's caches. */
const maxTokens = 1280;
const minTokens = 64;
/** What one run may take of the machine's memory. The rest is for weights, samplers and everything else. */
const shareOfMemory = 0.6;

function plannedBytes(): number {
  return Math.min(maxPlannedBytes, defaultMemoryLimit() / 3);
}

/** About how many tokens a run should have. */
export function plannedTokens(config: DecoderConfig): number {
  return Math.max(minTokens, Math.min(maxTokens, Math.floor(plannedBytes() / bytesPerToken(config))));
}

/** How a run goes through the layers. */
export interface RunKind {
  backward: boolean;
  recompute: boolean;
}

/**
 * The bytes a run takes at its peak. A backward pass needs what every layer computed, or every layer's input and one layer
 * computed again; attention's weights come on top, thrice for the layer at work.
 */
export function runBytes(config: DecoderConfig, run: PackedRun, { backward, recompute }: RunKind): number {
  const pairs = run.blocks.reduce(
    (total, { groups, members, length, prefixLength }) => total + groups * members * length * (prefixLength + length),
    0,
  );
  const rows = run.tokens.length;
  const keptLayers = backward && !recompute ? config.numLayers : 1;
  const inputs = backward && recompute ? 4 * rows * config.numLayers * config.hiddenSize : 0;
  const perLayer = rows * (bytesPerToken(config) / config.numLayers);
  return inputs + keptLayers * perLayer + 4 * config.numHeads * pairs * (keptLayers + 3);
}

/** Layers are recomputed where keeping them would take far more than planned: runs of one very long sequence. */
export function needsRecompute(config: DecoderConfig, run: PackedRun, backward: boolean): boolean {
  return backward && runBytes(config, run, { backward, recompute: false }) > 2 * plannedBytes();
}

function bytesPerToken(config: DecoderConfig): number {
  const { hiddenSize, intermediateSize, numHeads, numKvHeads, headDim, numLayers } = config;
  return 4 * numLayers * (8 * hiddenSize + 6 * (numHeads + numKvHeads) * headDim + 8 * intermediateSize);
}

/** The most bytes one run may take on this machine, or in this container. */
export function defaultMemoryLimit(): number {
  const constrained = process.constrainedMemory() || Number.POSITIVE_INFINITY;
  return shareOfMemory * Math.min(totalmem(), constrained);
}
