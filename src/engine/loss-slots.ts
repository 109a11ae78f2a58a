// Lays out what the head computes for one run: slots, each one target after one row. Positions that need no gradient of their
// own share a slot when they ask for the same target after the same row, as the positions of a shared prompt do.
import type { Loss } from "./losses.ts";
import type { PackedRun } from "./packing.ts";
import type { CheckedDatum } from "./training-batch.ts";

export interface LossSlots {
  /** The head works on chunks of rows, to bound the memory that logits take. */
  chunks: number;
  chunk: number;
  /** Slots per head row. */
  slots: number;
  /** [chunk, row]: the packed row whose output is used. */
  rows: Int32Array;
  /** [chunk, row, slot] */
  targets: Int32Array;
  /** In the order of the loss's inputs, each [chunk, row, slot]. */
  inputs: Float32Array[];
  /** [chunk, row, slot]: 1, or 0 for padding. */
  mask: Float32Array;
  /** For each of the run's sequences: the slot of every [position, slot]. */
  places: Int32Array[];
}

/** One row of the head: an output row and the targets asked of it. */
interface HeadRow {
  row: number;
  targets: Int32Array;
  inputs: Float32Array[];
}

export function layOutSlots(loss: Loss, data: readonly CheckedDatum[], run: PackedRun, maxChunk: number): LossSlots {
  const slots = run.sequences.reduce((most, { index }) => Math.max(most, data[index]!.slots), 1);
  const headRows: HeadRow[] = [];
  const known = new Map<string, number>();
  const places = run.sequences.map(({ index, rows }) => {
    const datum = data[index]!;
    const result = new Int32Array(datum.targets.length);
    for (const [position, row] of rows.entries()) {
      const from = position * datum.slots;
      const targets = datum.targets.subarray(from, from + datum.slots);
      const inputs = datum.inputs.map((values) => values.subarray(from, from + datum.slots));
      const head = placeRow(loss, { row, targets, inputs }, headRows, known);
      for (let slot = 0; slot < datum.slots; slot++) result[from + slot] = head * slots + slot;
    }
    return result;
  });

  const chunks = Math.ceil(headRows.length / maxChunk);
  const chunk = Math.ceil(headRows.length / chunks);
  const size = chunks * chunk * slots;
  const dummy = run.tokens.length - 1;
  const layout: LossSlots = {
    chunks,
    chunk,
    slots,
    rows: new Int32Array(chunks * chunk).fill(dummy),
    targets: new Int32Array(size),
    inputs: loss.inputs.map(() => new Float32Array(size)),
    mask: new Float32Array(size),
    places,
  };
  for (const [i, { row, targets, inputs }] of headRows.entries()) {
    layout.rows[i] = row;
    layout.targets.set(targets, i * slots);
    layout.mask.fill(1, i * slots, i * slots + targets.length);
    for (const [name, values] of inputs.entries()) layout.inputs[name]!.set(values, i * slots);
  }
  return layout;
}

/** Finds or adds the head row for a position, and returns its number. */
function placeRow(loss: Loss, wanted: HeadRow, headRows: HeadRow[], known: Map<string, number>): number {
  const idle = wanted.targets.every((_, slot) => loss.vanishes(wanted.inputs.map((values) => values[slot]!)));
  if (!idle && !loss.linear) return headRows.push(wanted) - 1;
  const key = `${wanted.row}:${wanted.targets.join()}`;
  const found = known.get(key);
  if (found !== undefined) {
    if (!idle) for (const [i, values] of headRows[found]!.inputs.entries()) addTo(values, wanted.inputs[i]!);
    return found;
  }
  // Inputs that put no gradient anywhere become zeros, for which every loss is finite.
  const inputs = wanted.inputs.map((values) => (idle ? new Float32Array(values.length) : values.slice()));
  const index = headRows.push({ ...wanted, inputs }) - 1;
  known.set(key, index);
  return index;
}

function addTo(total: Float32Array, values: Float32Array): void {
  for (const [i, value] of values.entries()) total[i]! += value;
}
