// The metrics of every step as columns of numbers: ten thousand steps of a hundred figures are 8 MB, and a chart is one column.

export class Columns {
  readonly #columns = new Map<string, Float64Array>();
  #steps = new Float64Array(64);
  #length = 0;

  get length(): number {
    return this.#length;
  }

  get names(): string[] {
    return [...this.#columns.keys()];
  }

  /** The step of a row; rows are in the order of steps. */
  step(row: number): number {
    return this.#steps[row]!;
  }

  /** The row of a step; -1 where it has none. */
  rowOf(step: number): number {
    let low = 0;
    let high = this.#length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#steps[middle]! < step) low = middle + 1;
      else high = middle;
    }
    return low < this.#length && this.#steps[low] === step ? low : -1;
  }

  push(step: number, figures: Readonly<Record<string, unknown>>): void {
    if (this.#length === this.#steps.length) this.#grow();
    this.#steps[this.#length] = step;
    for (const [name, value] of Object.entries(figures)) {
      let column = this.#columns.get(name);
      if (!column) {
        column = new Float64Array(this.#steps.length).fill(Number.NaN);
        this.#columns.set(name, column);
      }
      // Also the journal's words for what JSON has no number for.
      column[this.#length] = Number(value);
    }
    this.#length++;
  }

  /** Forgets the steps from `step` on. */
  cut(step: number): void {
    let length = this.#length;
    while (length > 0 && this.#steps[length - 1]! >= step) length--;
    for (const column of this.#columns.values()) column.fill(Number.NaN, length, this.#length);
    this.#length = length;
  }

  /** The figures of a row that are known. */
  row(row: number): Record<string, number> {
    const figures: Record<string, number> = {};
    for (const [name, column] of this.#columns) if (!Number.isNaN(column[row]!)) figures[name] = column[row]!;
    return figures;
  }

  /** Rows of some columns, rounded to what a chart can show; null where a figure is missing or not finite. */
  slice(names: readonly string[], from: number, to: number): Slice {
    const columns: Record<string, (number | null)[]> = {};
    for (const name of names) {
      const column = this.#columns.get(name);
      if (column) columns[name] = Array.from(column.subarray(from, to), shown);
    }
    return { from, steps: Array.from(this.#steps.subarray(from, to)), columns };
  }

  #grow(): void {
    const capacity = this.#steps.length * 2;
    const larger = (old: Float64Array) => {
      const array = new Float64Array(capacity).fill(Number.NaN, old.length);
      array.set(old);
      return array;
    };
    this.#steps = larger(this.#steps);
    for (const [name, column] of this.#columns) this.#columns.set(name, larger(column));
  }
}

/** Some rows of some columns. */
export interface Slice {
  from: number;
  steps: number[];
  columns: Record<string, (number | null)[]>;
}

const shown = (value: number) => (Number.isFinite(value) ? Number(value.toPrecision(6)) : null);
