// Runs ahead of the trainer by a fixed number of policy versions: batch n is sampled from version max(0, n − lag), and after a rewind to
// step s, where sampling begins anew, from version max(s, n − lag). Which policy answers which problem follows from n, the lag and the
// journal alone, never from which request came back first; so nothing grows stale by surprise, nothing is thrown away, and no problem
// is favoured because its answers are short.
//
// The groups of a batch are admitted together when their version exists, at most lag + 1 batches are under way, and a slow group
// holds back its own batch only. This is the one file of the loop with concurrency in it.
import { linkedController } from "./cancellation.ts";
import type { Policy } from "./policies.ts";
import type { Group, RollOut } from "./rollout.ts";
import type { Task } from "./tasks.ts";

export interface PipelineOptions {
  /** How many versions the sampler may be behind the trainer; 0 is the sequential loop. */
  lag: number;
  /** The step that the run was last rewound to. */
  floor?: number;
  /** The batches to give: from `first` up to, not including, `end`. */
  first: number;
  end: number;
  tasksOf(batch: number): Promise<readonly Task[]>;
  rollOut: RollOut;
  /** Asked when a group is judged: what to ask of the same policy as group `next` of the batch, before the batch is whole. */
  further?(batch: number, judged: Group, next: number): Promise<Task> | undefined;
  /** Calls `begin` when the batch may begin, in the order of batches; at once unless given. */
  admit?(batch: number, begin: () => void): void;
  /** Aborted: admit nothing more, stop what is under way; `batches` ends. */
  drain: AbortSignal;
  /** Aborted: everything ends with its reason. */
  cancel: AbortSignal;
}

/**
 * The version that batch n is sampled from. Batches before `floor` are those that a rewind kept. Those from there on could in part be
 * sampled from older versions, but whether these are still on the server depends on when it was asked to delete them.
 */
export const versionFor = (batch: number, lag: number, floor = 0) => Math.max(batch < floor ? 0 : floor, batch - lag);

/** The batches that are sampled from a version. */
export function batchesOf(version: number, lag: number, floor = 0): number[] {
  return Array.from({ length: lag + 1 }, (_, ahead) => version + ahead).filter(
    (batch) => versionFor(batch, lag, floor) === version,
  );
}

export class Pipeline {
  readonly #options: PipelineOptions;
  readonly #controller: ReturnType<typeof linkedController>;
  readonly #batches = new Map<number, Promise<Group[]>>();
  #arrived: () => void = () => {};
  #end: number;
  #begun = -1;
  #failure: { error: unknown } | undefined;
  readonly #groups = new Set<Promise<Group>>();

  constructor(options: PipelineOptions) {
    this.#options = options;
    this.#end = options.end;
    this.#controller = linkedController(options.drain, options.cancel);
    this.#controller.signal.addEventListener("abort", () => this.#arrived(), { once: true });
  }

  /** Groups admitted and not finished. */
  get groupsInFlight(): number {
    return this.#groups.size;
  }

  /** Batches admitted and not given out. */
  get batchesInFlight(): number {
    return this.#batches.size;
  }

  /** A policy version exists: the batches that are sampled from it begin. */
  use(policy: Policy): void {
    const { lag, floor, first, admit = (_, begin) => begin() } = this.#options;
    for (const batch of batchesOf(policy.version, lag, floor)) {
      if (batch < first || batch >= this.#end || this.#controller.signal.aborted) continue;
      admit(batch, () => this.#begin(batch, policy));
    }
  }

  /** Begins nothing more. What is under way is given out, then `batches` ends. */
  stop(): void {
    this.#end = Math.min(this.#end, Math.max(this.#options.first, this.#begun + 1));
    this.#arrived();
  }

  /** A policy could not be made: nothing more will come. */
  fail(error: unknown): void {
    if (!this.#controller.signal.aborted) this.#failure ??= { error };
    this.#controller.abort(error);
  }

  /** The batches in order, each when its last group is done. Ends at `end`, or when drained. */
  async *batches(): AsyncGenerator<{ batch: number; groups: Group[] }, void, undefined> {
    for (let batch = this.#options.first; batch < this.#end; batch++) {
      let groups: Group[] | undefined;
      try {
        groups = await this.#batch(batch);
      } catch (error) {
        if (this.#options.drain.aborted) return;
        this.#options.cancel.throwIfAborted();
        // What failed first is the cause; the others were stopped because of it.
        throw this.#failure ? this.#failure.error : error;
      }
      if (this.#options.drain.aborted || !groups) return;
      this.#batches.delete(batch);
      yield { batch, groups };
    }
  }

  /** Stops what is under way and waits until it has stopped. */
  async close(): Promise<void> {
    this.#controller.abort(new Error("the pipeline was closed"));
    await Promise.allSettled([...this.#batches.values(), ...this.#groups]);
    this.#controller.unlink();
  }

  #begin(batch: number, policy: Policy): void {
    if (batch >= this.#end || this.#controller.signal.aborted) return;
    const { tasksOf } = this.#options;
    const running = (async () => this.#rollOutAll(batch, await tasksOf(batch), policy))();
    // A failure is kept until the batch is asked for, and ends the others at once.
    running.catch((error: unknown) => this.fail(error));
    this.#batches.set(batch, running);
    this.#begun = Math.max(this.#begun, batch);
    this.#arrived();
  }

  /** The batch's groups in their order: those of its tasks, and what comes further. */
  async #rollOutAll(batch: number, tasks: readonly Task[], policy: Policy): Promise<Group[]> {
    const groups: Group[] = [];
    let asked = tasks.length;
    const rollOut = async (group: number, task: Task) => {
      const judged = await this.#rollOut(batch, group, task, policy);
      groups[group] = judged;
      const next = asked;
      const further = this.#options.further?.(batch, judged, next);
      if (!further) return;
      asked++;
      await rollOut(next, await further);
    };
    await Promise.all(tasks.map((task, group) => rollOut(group, task)));
    return groups;
  }

  #rollOut(batch: number, group: number, task: Task, policy: Policy): Promise<Group> {
    const { signal } = this.#controller;
    signal.throwIfAborted();
    const running = this.#options.rollOut({ phase: "train", batch, group }, task, policy, signal);
    this.#groups.add(running);
    const over = () => this.#groups.delete(running);
    running.then(over, over);
    return running;
  }

  /** Waits until the batch has begun, then for its groups; undefined when it will not. */
  async #batch(batch: number): Promise<Group[] | undefined> {
    for (;;) {
      const { signal } = this.#controller;
      if (signal.aborted) throw signal.reason;
      const running = this.#batches.get(batch);
      if (running) return running;
      if (batch >= this.#end) return undefined;
      await new Promise<void>((resolve) => {
        this.#arrived = resolve;
      });
    }
  }
}
