// Which problems of the data are worth a step's answers. A problem that is nearly always solved, or never, teaches little: while the run's
// own outcomes say so, it comes in every fourth epoch only. Never for good, since the policy changes.
//
// Estimates are Beta laws, shared among problems of one source and difficulty as long as little is known of a problem. What a batch is
// chosen by follows from the updates before its policy, and those are in the journal: a run is the same after any kill.
import { Random } from "../core/random.ts";
import type { RunEvent } from "../runs/events.ts";
import { versionFor } from "./pipeline.ts";
import { offsetAfter, type Position } from "./recovery.ts";
import type { Task, TaskSource } from "./tasks.ts";

/** A problem that teaches little comes once in so many epochs. */
export const epochsBetween = 4;
/** Below this share of the most that an answer can tell, a problem teaches little: solved in about 4% of the tries, or in 96%. */
const least = 0.15;
/** Answers that the estimate of a source and difficulty counts for beside a problem's own. */
const priorStrength = 1;
/** How much older outcomes count, at a problem's next visit and at a step of its source: the policy has changed since. */
const keptOfProblem = 0.75;
const keptOfStratum = 0.9;

interface Counts {
  right: number;
  wrong: number;
}

/** What a run's outcomes say about how often problems are solved. */
export class SolveRates {
  readonly #problems = new Map<string, Counts>();
  readonly #strata = new Map<string, Counts>();

  /** The outcomes of one step. */
  take(outcomes: readonly { problem: string; stratum: string; graded: number; passed: number }[]): void {
    for (const counts of this.#strata.values()) fade(counts, keptOfStratum);
    for (const problem of new Set(outcomes.map((outcome) => outcome.problem)))
      fade(countsIn(this.#problems, problem), keptOfProblem);
    for (const { problem, stratum, graded, passed } of outcomes)
      for (const counts of [countsIn(this.#problems, problem), countsIn(this.#strata, stratum)]) {
        counts.right += passed;
        counts.wrong += graded - passed;
      }
  }

  /** The expectation of 4 p (1 − p): how much an answer to a problem can tell, 1 at most. */
  information(problem: string, stratum: string): number {
    const own = this.#problems.get(problem) ?? { right: 0, wrong: 0 };
    const alike = this.#strata.get(stratum) ?? { right: 0, wrong: 0 };
    const rate = (alike.right + 1) / (alike.right + alike.wrong + 2);
    const [a, b] = [priorStrength * rate + own.right, priorStrength * (1 - rate) + own.wrong];
    return (4 * a * b) / ((a + b) * (a + b + 1));
  }
}

export interface CurriculumOptions {
  source: TaskSource;
  prompts: number;
  lag: number;
  seed: number;
  /** The first batch that was never trained, and where its data begin. */
  frontier: Position;
  /** What the journal has. */
  entries: Iterable<{ event: RunEvent }>;
}

/** The tasks of batches under `curriculum=posterior`. */
export class Curriculum {
  readonly #options: CurriculumOptions;
  readonly #rates = new SolveRates();
  readonly #strata = new Map<string, string>();
  readonly #outcomes = new Map<number, Parameters<SolveRates["take"]>[0]>();
  readonly #chosen = new Map<number, Task[]>();
  #folded = 0;
  #next: Position;
  #turn: Promise<unknown> = Promise.resolve();

  constructor(options: CurriculumOptions) {
    this.#options = options;
    this.#next = options.frontier;
    for (const { event } of options.entries) this.take(event);
  }

  /** An event of the journal. */
  take(event: RunEvent): void {
    if (event.type === "group-sampled" && event.phase === "train") this.#strata.set(event.problem, stratumOf(event));
    else if (event.type === "update-submitted")
      this.#outcomes.set(
        event.step,
        event.groups.map(({ problem, graded = 0, passed = 0 }) => {
          return { problem, stratum: this.#strata.get(problem) ?? "", graded, passed };
        }),
      );
    else if (event.type === "rewound")
      for (const step of [...this.#outcomes.keys()]) if (step >= event.to) this.#outcomes.delete(step);
  }

  /** The tasks of a batch. Batches may be asked for in any order; they are chosen one after another. */
  tasks(batch: number): Promise<Task[]> {
    const turn = this.#turn.then(async () => {
      while (this.#next.step <= batch) await this.#choose();
      const tasks = this.#chosen.get(batch)!;
      this.#chosen.delete(batch);
      return tasks;
    });
    this.#turn = turn.catch(() => {});
    return turn;
  }

  async #choose(): Promise<void> {
    const { source, prompts, lag } = this.#options;
    const { step, datasetOffset } = this.#next;
    for (; this.#folded < versionFor(step, lag); this.#folded++) {
      const outcomes = this.#outcomes.get(this.#folded);
      if (outcomes) this.#rates.take(outcomes);
      this.#outcomes.delete(this.#folded);
    }
    const tasks: Task[] = [];
    for (let index = datasetOffset; tasks.length < prompts; index++) {
      const [task] = await source.batch(index, 1);
      if (this.#isWanted(task!, Math.floor(index / source.size))) tasks.push(task!);
    }
    this.#chosen.set(step, tasks);
    this.#next = { step: step + 1, datasetOffset: offsetAfter(tasks, datasetOffset) };
  }

  #isWanted(task: Task, epoch: number): boolean {
    if (this.#rates.information(task.id, stratumOf(task)) >= least) return true;
    const turn = new Random("curriculum", this.#options.seed, task.id).integer(epochsBetween);
    return epoch % epochsBetween === turn;
  }
}

const stratumOf = ({ source, difficulty = "" }: { source: string; difficulty?: string | undefined }) =>
  `${source} ${difficulty}`;

function countsIn(known: Map<string, Counts>, key: string): Counts {
  const counts = known.get(key) ?? { right: 0, wrong: 0 };
  known.set(key, counts);
  return counts;
}

function fade(counts: Counts, kept: number): void {
  counts.right *= kept;
  counts.wrong *= kept;
}
