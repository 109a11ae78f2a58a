// Runs ahead of the trainer by a fixed number of policy versions: batch n is sampled from version max(0, n − lag), and after a rewind to
// step s, where sampling begins anew, from version max(s, n − lag); in rounds, lag + 1 batches from the version of the first of them.
// Which policy answers which problem follows from n, the lag and the journal alone, never from which request came back first; so
// nothing grows stale by surprise, nothing is thrown away, and no problem is favoured because its answers are short.
//
// The groups of a batch are admitted together when their version exists, at most lag + 1 batches are under way, and a slow group
// holds back its own batch only. The rule of the tail (`#take`) says for how long: a batch waits for all of its groups, or for a share of
// them, and a later batch waits for the rest, while these may still be trained on. This is the one file of the loop with concurrency in it.
import { enoughOf, reachOf } from "../diagnosis/pace.ts";
import { linkedController } from "./cancellation.ts";
import type { TrainConfig } from "./config.ts";
import type { Policy } from "./policies.ts";
import type { TrainPlace } from "./recovery.ts";
import type { Group, RollOut } from "./rollout.ts";
import type { Task } from "./tasks.ts";

/** The batches to give: from `first` up to, not including, `end`. */
export interface Batches {
  first: number;
  end: number;
  /** The oldest batch with groups to give: the first, or one before it of which some were carried over. */
  oldest?: number;
  /** The step that the run was last rewound to. */
  floor?: number;
  /** What the journal says that a batch was trained on: it is given just that. */
  trainedPlaces?(batch: number): readonly TrainPlace[] | undefined;
  /** A batch's problems by group. */
  tasksOf(batch: number): Promise<ReadonlyMap<number, Task>>;
  /** Asked when a group is judged: what to ask of the same policy as group `next` of the batch, before the batch is whole. */
  further?(batch: number, judged: Group, next: number): Promise<Task> | undefined;
}

export interface PipelineOptions {
  plan: Batches;
  /** How many versions the sampler may be behind the trainer; 0 is the sequential loop. */
  lag: number;
  /** Batches begin in rounds. */
  rounds?: boolean;
  /** The share of its groups that a batch waits for; 1 unless given. */
  share?: number;
  rollOut: RollOut;
  /** Calls `begin` when the batch may begin, in the order of batches; at once unless given. */
  admit?(batch: number, begin: () => void): void;
  /** Aborted: admit nothing more, stop what is under way; `batches` ends. */
  drain: AbortSignal;
  /** Aborted: everything ends with its reason. */
  cancel: AbortSignal;
}

/** Of a batch, what is trained on now and what is left to later ones. */
export interface Ready {
  batch: number;
  /** Carried over from batches before, then the batch's own, each in their order. */
  groups: Group[];
  /** All that is left, in the same order. */
  carried: Pending[];
}

/** A group that was asked for. */
export interface Pending extends TrainPlace {
  /** Undefined until the data have it. */
  task: Task | undefined;
  judged: Group | undefined;
}

/** The share of its groups that a batch waits for: of all but the last. */
export const shareOf = ({ tail, carry_share }: Pick<TrainConfig, "tail" | "carry_share">): number =>
  tail === "carry" ? carry_share : 1;

/** How many versions after its own a group may be trained on. */
export const oldestAnswers = ({ max_lag, tail }: Pick<TrainConfig, "max_lag" | "tail">): number =>
  max_lag + (tail === "carry" ? 1 : 0);

/**
 * The version that batch n is sampled from. Batches before `floor` are those that a rewind kept. Those from there on could in part be
 * sampled from older versions, but whether these are still on the server depends on when it was asked to delete them.
 */
export const versionFor = (...place: Parameters<typeof reach>) => reach(...place).version;
const reach = (batch: number, lag: number, floor = 0, rounds = false) =>
  reachOf(batch, lag, rounds, batch < floor ? 0 : floor);

/** The batches that are sampled from a version. */
export function batchesOf(version: number, lag: number, floor = 0, rounds = false): number[] {
  return Array.from({ length: lag + 1 }, (_, ahead) => version + ahead).filter(
    (batch) => versionFor(batch, lag, floor, rounds) === version,
  );
}

export class Pipeline {
  readonly #options: PipelineOptions;
  readonly #controller: ReturnType<typeof linkedController>;
  readonly #oldest: number;
  /** The groups of batches that have begun and were not given out. */
  readonly #batches = new Map<number, Pending[]>();
  /** Groups of batches that were given out without them. */
  #carried: Pending[] = [];
  #arrived: () => void = () => {};
  #end: number;
  #begun = -1;
  #failure: { error: unknown } | undefined;
  readonly #groups = new Set<Promise<Group>>();
  readonly #beginnings: Promise<void>[] = [];

  constructor(options: PipelineOptions) {
    this.#options = options;
    const { first, end, oldest = first } = options.plan;
    this.#end = end;
    this.#oldest = first < end ? oldest : first;
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
    const { plan, lag, rounds, admit = (_, begin) => begin() } = this.#options;
    for (const batch of batchesOf(policy.version, lag, plan.floor, rounds)) {
      if (batch < this.#oldest || batch >= this.#end || this.#controller.signal.aborted) continue;
      admit(batch, () => this.#begin(batch, policy));
    }
  }

  /** Begins nothing more. What is under way is given out, then `batches` ends. */
  stop(): void {
    this.#end = Math.min(this.#end, Math.max(this.#options.plan.first, this.#begun + 1));
    this.#arrived();
  }

  /** A policy could not be made: nothing more will come. */
  fail(error: unknown): void {
    if (!this.#controller.signal.aborted) this.#failure ??= { error };
    this.#controller.abort(error);
  }

  /** The batches in order, each when its groups are done as far as it waits for them. Ends at `end`, or when drained. */
  async *batches(): AsyncGenerator<Ready, void, undefined> {
    const { plan, drain, cancel } = this.#options;
    const { first } = plan;
    try {
      for (let batch = this.#oldest; batch < first; batch++) {
        const isOver = () => first >= this.#end;
        this.#carried.push(...((await this.#until(() => this.#batches.get(batch), isOver)) ?? []));
        this.#batches.delete(batch);
      }
      for (let batch = first; batch < this.#end; batch++) {
        const isOver = () => batch >= this.#end;
        const ready = await this.#until(() => this.#take(batch), isOver);
        if (drain.aborted || !ready) return;
        this.#batches.delete(batch);
        this.#carried = ready.carried;
        yield ready;
      }
    } catch (error) {
      if (drain.aborted) return;
      cancel.throwIfAborted();
      // What failed first is the cause; the others were stopped because of it.
      throw this.#failure ? this.#failure.error : error;
    }
  }

  /**
   * The rule of the tail. A batch is ready when enough of its own groups are judged, and all groups that may not be in a later batch. It
   * then gets every group that is judged at the moment when the trainer is free. So a group is trained on at most lag + 1 versions after
   * its own: in the next batch, unless batches begin in rounds. The last batch waits for all. A batch that was trained on before gets the
   * same groups again.
   */
  #take(batch: number): Ready | undefined {
    const { plan, lag, rounds, share = 1 } = this.#options;
    const own = this.#batches.get(batch);
    if (!own) return undefined;
    const before = plan.trainedPlaces?.(batch);
    const isDue = (pending: Pending) =>
      batch + 1 >= this.#end || reach(pending.batch, lag, plan.floor, rounds).last <= batch;
    const isGiven = (pending: Pending) =>
      before ? before.some(isPlaceOf(pending)) : pending.judged !== undefined || isDue(pending);
    const all = [...this.#carried, ...own];
    const given = all.filter(isGiven);
    const isEnough = before
      ? given.length === before.length
      : own.filter(({ judged }) => judged).length >= enoughOf(own.length, share);
    if (!isEnough || given.some(({ judged }) => !judged)) return undefined;
    const carried = all.filter((pending) => !given.includes(pending));
    return { batch, groups: given.map(({ judged }) => judged!), carried };
  }

  /** Stops what is under way and waits until it has stopped. */
  async close(): Promise<void> {
    this.#controller.abort(new Error("the pipeline was closed"));
    await Promise.allSettled([...this.#beginnings, ...this.#groups]);
    this.#controller.unlink();
  }

  #begin(batch: number, policy: Policy): void {
    if (batch >= this.#end || this.#controller.signal.aborted) return;
    this.#begun = Math.max(this.#begun, batch);
    // A failure ends the others at once, and is kept until a batch is asked for.
    this.#beginnings.push(this.#askAll(batch, policy).catch((error: unknown) => this.fail(error)));
  }

  /** Asks for the batch's groups: those of its tasks, and what comes further. */
  async #askAll(batch: number, policy: Policy): Promise<void> {
    const { plan } = this.#options;
    const asked: Pending[] = [];
    const ask = async (group: number, task: Task | Promise<Task>): Promise<void> => {
      const pending: Pending = { batch, group, task: undefined, judged: undefined };
      asked.push(pending);
      pending.task = await task;
      const judged = await this.#rollOut(pending, pending.task, policy);
      pending.judged = judged;
      // Asked for in the same moment: nobody sees the batch whole in between.
      const further = plan.further?.(batch, judged, asked.length);
      const next = further && ask(asked.length, further);
      this.#arrived();
      await next;
    };
    const tasks = await plan.tasksOf(batch);
    const asking = [...tasks].map(([group, task]) => ask(group, task));
    this.#batches.set(batch, asked);
    this.#arrived();
    await Promise.all(asking);
  }

  #rollOut({ batch, group }: TrainPlace, task: Task, policy: Policy): Promise<Group> {
    const { signal } = this.#controller;
    signal.throwIfAborted();
    const running = this.#options.rollOut({ phase: "train", batch, group }, task, policy, signal);
    this.#groups.add(running);
    const over = () => this.#groups.delete(running);
    running.then(over, over);
    return running;
  }

  /** Waits until there is what is looked for; undefined when it will not come. */
  async #until<Found>(find: () => Found | undefined, isOver: () => boolean): Promise<Found | undefined> {
    for (;;) {
      const { signal } = this.#controller;
      if (signal.aborted) throw signal.reason;
      const found = find();
      if (found !== undefined || isOver()) return found;
      await new Promise<void>((resolve) => {
        this.#arrived = resolve;
      });
    }
  }
}

const isPlaceOf = (place: TrainPlace) => (other: TrainPlace) =>
  place.batch === other.batch && place.group === other.group;
