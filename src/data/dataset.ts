// The problems of a run in their order. `index` counts problems from the first one ever used and is never reduced: the same index,
// seed and data give the same problem in every run.
import { createHash } from "node:crypto";
import { countOf } from "../core/count.ts";
import { epochOrder } from "./order.ts";
import type { Problem } from "./problem.ts";

/** What became of the rows that were read. */
export interface DatasetSummary {
  /** Rows in the files. */
  read: number;
  /** Problems that stayed. */
  kept: number;
  /** Rows left out, by reason. */
  dropped: Record<string, number>;
  /** The first row of each reason: file, line, and what is wrong there. */
  firstDropped: Record<string, string>;
  /** Problems that stayed, by source. */
  bySource: Record<string, number>;
}

/** How a data set orders its problems. */
export interface DatasetOptions {
  /** False: problems come in file order, every epoch. */
  shuffle: boolean;
  /** Of the order. */
  seed: number;
}

/** Problems in a fixed order, with what was left out and a fingerprint of their files. */
export class Dataset {
  /** Every problem, in the order of the files. */
  readonly problems: readonly Problem[];
  /** How many rows were read, kept and left out, and why. */
  readonly summary: DatasetSummary;
  /** Changes when a file, the order of problems or a filter's outcome changes. */
  readonly fingerprint: string;
  readonly #options: DatasetOptions;
  readonly #orders = new Map<number, Uint32Array>();
  readonly #byId: Map<string, Problem>;

  constructor(
    problems: readonly Problem[],
    summary: DatasetSummary,
    contentHashes: readonly string[],
    options: DatasetOptions,
  ) {
    this.problems = problems;
    this.summary = summary;
    this.#options = options;
    this.#byId = new Map(problems.map((problem) => [problem.id, problem]));
    const hash = createHash("sha256").update(JSON.stringify(contentHashes));
    for (const { id } of problems) hash.update(JSON.stringify(id));
    this.fingerprint = `sha256:${hash.digest("hex").slice(0, 32)}`;
  }

  /** How many problems there are. */
  get size(): number {
    return this.problems.length;
  }

  /** The pass over the data that a position is in, from 0. */
  epochOf(index: number): number {
    return Math.floor(index / this.size);
  }

  /** The problem at a position; positions past the end go on with the next epoch. */
  at(index: number): Problem {
    const position = index % this.size;
    return this.problems[this.#options.shuffle ? this.#order(this.epochOf(index))[position]! : position]!;
  }

  /** `count` problems from position `offset` on. */
  batch(offset: number, count: number): Problem[] {
    return Array.from({ length: count }, (_, step) => this.at(offset + step));
  }

  /** The problem with this id. */
  byId(id: string): Problem | undefined {
    return this.#byId.get(id);
  }

  #order(epoch: number): Uint32Array {
    let order = this.#orders.get(epoch);
    if (!order) {
      order = epochOrder(this.size, this.#options.seed, epoch);
      // A batch touches at most a few epochs at a time.
      if (this.#orders.size >= 4) this.#orders.clear();
      this.#orders.set(epoch, order);
    }
    return order;
  }
}

/** What was read and what was left out, for the log: one line, and one for each reason with the first row that has it. */
export function describeSummary({ read, kept, dropped, firstDropped, bySource }: DatasetSummary): string {
  const list = (counts: Record<string, number>) =>
    Object.entries(counts)
      .sort(([, first], [, second]) => second - first)
      .map(([name, count]) => `${count} ${name}`)
      .join(", ");
  const reasons = Object.keys(dropped).map((reason) => `\n  ${reason}: first ${firstDropped[reason]}`);
  const left = read === kept ? "" : `; ${read - kept} of ${countOf(read, "row")} left out: ${list(dropped)}`;
  return `${countOf(kept, "problem")} (${list(bySource)})${left}${reasons.join("")}`;
}
