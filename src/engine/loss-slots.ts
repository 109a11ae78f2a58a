// Lays out what the head computes for one run. A head row is one output row and the targets asked of it, its slots. Positions
// whose inputs put no gradient on them are idle: they only need log-probabilities, so they go through a part of the graph that has no
// backward pass. Idle positions that ask for the same targets after the same row, as in a shared prompt, share one head row. So do
// positions with a gradient where the loss lets their inputs be added up: samples that said the same, each with its own advantage.
import type { Loss } from "./losses.ts";
import type { PackedRun } from "./packing.ts";
import type { PreparedDatum } from "./training-batch.ts";

/** Head rows in chunks, which bound the memory that logits take. */
export interface HeadRows {
  chunks: number;
  chunk: number;
  /** [chunk, row]: the packed row whose output is used. */
  rows: Int32Array;
  /** [chunk, row, slot] */
  targets: Int32Array;
}

export interface LossSlots {
  /** Slots per head row. */
  slots: number;
  /** At least one chunk, so that the graph always has something to do. */
  active: HeadRows & {
    /** In the order of the loss's inputs, each [chunk, row, slot]. */
    inputs: Float32Array[];
    /** [chunk, row, slot]: 1, or 0 for padding. */
    mask: Float32Array;
  };
  /** Undefined where no position is idle. */
  idle?: HeadRows;
  /** For each of the run's sequences, for each of its [position, slot]: where its log-probability is, active first, then idle. */
  places: Int32Array[];
}

export function layOutSlots(loss: Loss, data: readonly PreparedDatum[], run: PackedRun, maxChunk: number): LossSlots {
  const slots = run.sequences.reduce((max, { index }) => Math.max(max, data[index]!.slots), 1);
  const [active, idle] = [new RowCollector(), new RowCollector()];
  /** The head row of every position, one sequence after the other; idle ones are stored as -1 - row. */
  const headRows: number[] = [];
  for (const { index, rows } of run.sequences) {
    const datum = data[index]!;
    for (let position = 0; position < rows.length; position++) {
      const source = { row: rows[position]!, datum, from: position * datum.slots };
      if (isIdle(loss, source)) headRows.push(-1 - idle.shared(source));
      else
        headRows.push(loss.adds === undefined ? active.add(source) : active.shared(source, otherInputs(loss, source)));
    }
  }

  const dummy = run.tokens.length - 1;
  const activeRows = active.layOut(slots, maxChunk, dummy);
  const size = activeRows.targets.length;
  const mask = new Float32Array(size);
  const inputs = loss.inputs.map(() => new Float32Array(size));
  let next = 0;
  const allPlaces = run.sequences.map(({ index, rows }) => {
    const datum = data[index]!;
    const places = new Int32Array(rows.length * datum.slots);
    for (let position = 0; position < rows.length; position++) {
      const head = headRows[next++]!;
      for (let slot = 0; slot < datum.slots; slot++) {
        const from = position * datum.slots + slot;
        const to = (head >= 0 ? head : -1 - head) * slots + slot;
        places[from] = head >= 0 ? to : size + to;
        if (head < 0) continue;
        mask[to] = 1;
        for (const [i, values] of inputs.entries())
          values[to] = datum.inputs[i]![from]! + (i === loss.adds ? values[to]! : 0);
      }
    }
    return places;
  });
  return {
    slots,
    active: { ...activeRows, inputs, mask },
    ...(idle.count > 0 ? { idle: idle.layOut(slots, maxChunk, dummy) } : {}),
    places: allPlaces,
  };
}

/** A position: its packed row, and where its targets and inputs start in its datum. */
interface Source {
  row: number;
  datum: PreparedDatum;
  from: number;
}

function isIdle(loss: Loss, { datum, from }: Source): boolean {
  for (let slot = from; slot < from + datum.slots; slot++) {
    if (!loss.vanishes(datum.inputs.map((values) => values[slot]!))) return false;
  }
  return true;
}

/** What positions must have in common to be added up. */
function otherInputs({ adds }: Loss, { datum, from }: Source): string {
  const others = datum.inputs.filter((_, input) => input !== adds);
  return others.map((values) => values.subarray(from, from + datum.slots).join()).join(":");
}

/** Head rows as they are found. */
class RowCollector {
  readonly #rows: Source[] = [];
  readonly #known = new Map<string, number>();

  get count(): number {
    return this.#rows.length;
  }

  add(source: Source): number {
    return this.#rows.push(source) - 1;
  }

  /** The row that asks for the same targets after the same packed row and is alike in what else counts, added if there is none yet. */
  shared(source: Source, alike = ""): number {
    const { row, datum, from } = source;
    const key = `${row}:${datum.slots === 1 ? datum.targets[from] : datum.targets.subarray(from, from + datum.slots).join()}:${alike}`;
    let found = this.#known.get(key);
    if (found === undefined) {
      found = this.add(source);
      this.#known.set(key, found);
    }
    return found;
  }

  layOut(slots: number, maxChunk: number, dummy: number): HeadRows {
    const chunks = Math.max(1, Math.ceil(this.count / maxChunk));
    const chunk = Math.max(1, Math.ceil(this.count / chunks));
    const rows = new Int32Array(chunks * chunk).fill(dummy);
    const targets = new Int32Array(chunks * chunk * slots);
    for (const [i, { row, datum, from }] of this.#rows.entries()) {
      rows[i] = row;
      for (let slot = 0; slot < datum.slots; slot++) targets[i * slots + slot] = datum.targets[from + slot]!;
    }
    return { chunks, chunk, rows, targets };
  }
}
