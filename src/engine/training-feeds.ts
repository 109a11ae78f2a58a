// What the training graph is fed for one run, by the names of its inputs.
import type { HeadRows, LossSlots } from "./loss-slots.ts";
import type { PackedRun } from "./packing.ts";
import type { PlainFeeds, PlainValue } from "./training-runner.ts";

/** A run's tokens and layout. */
export function packedFeeds(run: PackedRun): PlainFeeds {
  const rows = run.tokens.length;
  const feeds: Record<string, PlainValue> = {
    tokens: value(run.tokens, [rows]),
    positions: value(run.positions, [rows]),
    places: value(run.places, [rows]),
  };
  for (const { kind, groups, members, length, prefixLength, ...block } of run.blocks) {
    const keys = prefixLength + length;
    feeds[`${kind}.rows`] = value(block.rows, [groups, members, length]);
    feeds[`${kind}.places`] = value(block.places, [rows]);
    feeds[`${kind}.bias`] = value(block.bias, kind === "plain" ? [length, 1, length] : [groups, 1, length, 1, keys]);
    if (block.prefixRows) feeds["shared.prefix_rows"] = value(block.prefixRows, [groups, prefixLength]);
    if (block.prefixPlaces) feeds["shared.prefix_places"] = value(block.prefixPlaces, [rows]);
  }
  return feeds;
}

/** A run's targets and loss inputs; `inputs` are the names of the loss's. */
export function slotFeeds({ active, idle, slots }: LossSlots, inputs: readonly string[]): PlainFeeds {
  const shape = [active.chunks, active.chunk, slots];
  const feeds: Record<string, PlainValue> = {
    ...headFeeds("active", active, slots),
    "active.mask": value(active.mask, shape),
  };
  for (const [i, name] of inputs.entries()) feeds[`loss.${name}`] = value(active.inputs[i]!, shape);
  return idle ? { ...feeds, ...headFeeds("idle", idle, slots) } : feeds;
}

function headFeeds(part: string, { chunks, chunk, rows, targets }: HeadRows, slots: number): PlainFeeds {
  return {
    [`${part}.rows`]: value(rows, [chunks, chunk]),
    [`${part}.targets`]: value(targets, [chunks, chunk, slots]),
  };
}

const value = (data: PlainValue["data"], shape: readonly number[]): PlainValue => ({ data, shape });
