// What a journal says about going on: the checkpoints, and from one of them on everything that need not be done again.
import { type CheckpointRecord, LiveCheckpoints } from "../runs/checkpoints.ts";
import type { Arrays, EventOf, JournalEntry, RunEvent, UpdateRule } from "../runs/events.ts";
import { dropCarried, isGroupUndone, undoSteps, undoVersions } from "../runs/rewinds.ts";
import { teaches } from "./batch.ts";
import type { Role } from "./config-entry.ts";
import { roleOf } from "./config-roles.ts";
import { ControlState } from "./control-state.ts";
import { isJudged, placeKey, type RememberedGroup, rememberGroup } from "./remembered-groups.ts";
import type { Place } from "./rollout.ts";

/** Roles of keys whose change makes a phase's unused groups stale: they are sampled and graded again. */
const staleRoles: Readonly<Record<Place["phase"], readonly Role[]>> = {
  train: ["identity", "answers", "groups"],
  eval: ["identity", "answers", "evaluations"],
};

/** Where training stands: the next step, and how many prompts were consumed before it. Each step has its own, so it can be held across an await. */
export interface Position {
  readonly step: number;
  readonly datasetOffset: number;
}

/** A group of training: its batch, and its place there. */
export type TrainPlace = Pick<Place, "batch" | "group">;

/** An update that was submitted: its step is trained again from the same groups. */
interface Update {
  rule: UpdateRule;
  /** The groups that it was made of, in its order. */
  groups: readonly TrainPlace[];
  /** Groups that it was made without: later ones are to have them. */
  carried: EventOf<"update-submitted">["carried"];
  /** Where in the order of the data the next batch begins. */
  nextOffset: number;
  /** What references thought of its examples. */
  arrays(): Arrays;
}

/** Checkpoints that a run can resume from, newest first. */
export const resumable = (checkpoints: readonly CheckpointRecord[]): CheckpointRecord[] =>
  checkpoints.filter(({ state_path: path }) => path !== undefined).reverse();

/** Everything the journal has from a version on; unless that is named, from the newest checkpoint on. */
export class Recovered {
  readonly #named: number | undefined;
  #from = 0;
  readonly #checkpoints = new LiveCheckpoints();
  readonly #groups = new Map<string, RememberedGroup>();
  /** Groups, by their keys, that were made under settings which changed since. */
  readonly #stale = new Set<string>();
  /** Versions that were measured. */
  readonly evaluated = new Set<number>();
  /** Versions whose evaluation was begun. */
  readonly evaluationsBegun = new Set<number>();
  /** Steps done, oldest first. */
  readonly steps = new Map<number, EventOf<"step-done">>();
  /** Snapshots by version, but for those that the run itself has deleted. */
  readonly policies = new Map<number, string>();
  /** Every snapshot that was published and not deleted, also those that no longer count. */
  readonly stored = new Set<string>();
  /** What earlier processes trained, by the server's names. */
  readonly models = new Set<string>();
  /** The step that the run was last rewound to. */
  floor = 0;
  /** What was asked of the run. */
  readonly controlState = new ControlState();
  readonly #updates = new Map<number, Update>();

  constructor(from?: number) {
    this.#named = from;
    this.#from = from ?? 0;
  }

  /** The version that this has everything from on. */
  get from(): number {
    return this.#from;
  }

  /** Those that the run can go on from, newest first. */
  get checkpoints(): CheckpointRecord[] {
    return resumable(this.#checkpoints.records);
  }

  group(place: Place): RememberedGroup | undefined {
    return this.#groups.get(placeKey(place));
  }

  /** Whether a batch of `count` groups that teach, or of `maxCount` in all, is there whole, with every verdict. */
  isComplete(batch: number, count: number, maxCount = count): boolean {
    let wanted = count;
    for (let group = 0; group < wanted; group++) {
      const recorded = this.group({ phase: "train", batch, group });
      if (!isJudged(recorded)) return false;
      if (wanted < maxCount && !teaches(recorded.graded.map((verdict) => verdict!))) wanted++;
    }
    return true;
  }

  /** The update of a step; undefined when it was not submitted. */
  update(step: number): Readonly<Update> | undefined {
    return this.#updates.get(step);
  }

  /** Groups that a step's update left to later ones. */
  carriedFrom(step: number): Update["carried"] {
    return this.update(step)?.carried ?? [];
  }

  /** Whether groups of a batch from `step` on, or carried over into it, were made under other settings. */
  hasStaleGroups(step: number): boolean {
    return this.#staleGroups("train").some((place) => this.#isToTrain(place, step));
  }

  /** Whether an update from `step` on is to have a group. */
  #isToTrain({ batch, group }: TrainPlace, step: number): boolean {
    return batch >= step || this.carriedFrom(step - 1).some((left) => left.batch === batch && left.group === group);
  }

  /** Versions whose evaluation was begun under other settings. */
  staleEvaluations(): number[] {
    return [...new Set(this.#staleGroups("eval").map(({ batch }) => batch))];
  }

  #staleGroups(phase: Place["phase"]): Place[] {
    return [...this.#groups].flatMap(([key, { sampled }]) =>
      sampled.phase === phase && this.#stale.has(key) ? [sampled] : [],
    );
  }

  /** Versions whose evaluation was begun, or asked for, and has not ended. */
  openEvaluations(): number[] {
    const asked = new Set([...this.evaluationsBegun, ...this.controlState.evaluations]);
    return [...asked].filter((version) => !this.evaluated.has(version));
  }

  /** The first step that was never trained, and the prompts consumed before it. */
  frontier(start: Position): Position {
    let { step, datasetOffset } = start;
    for (let update = this.update(step); update; update = this.update(++step)) datasetOffset = update.nextOffset;
    return { step, datasetOffset };
  }

  /** Whether every trained step can be trained again: its groups' tokens were not thinned away. */
  canRetrain(start: Position): boolean {
    const { step: end } = this.frontier(start);
    return ![...this.#groups.values()].some(
      ({ sampled, hasArrays }) => sampled.phase === "train" && sampled.batch < end && !hasArrays,
    );
  }

  /** Settings are other ones from here on. What was trained on is trained again as it was. */
  #changed(keys: readonly string[]): void {
    const isStale = (phase: Place["phase"]) => keys.some((key) => staleRoles[phase].includes(roleOf(key)));
    for (const [key, { sampled }] of this.#groups) if (isStale(sampled.phase)) this.#stale.add(key);
  }

  #dropEvaluation(version: number): void {
    for (const [key, { sampled }] of this.#groups)
      if (sampled.phase === "eval" && sampled.batch === version) this.#groups.delete(key);
  }

  /** Drops what training will not go on from any more, as a run is long; what was carried over into `step` stays. */
  #forgetBefore(step: number): void {
    for (const [key, { sampled }] of this.#groups)
      if (sampled.phase === "train" && !this.#isToTrain(sampled, step)) this.#groups.delete(key);
    for (const earlier of [...this.#updates.keys()]) if (earlier < step - 1) this.#updates.delete(earlier);
  }

  take(event: RunEvent, entry: Pick<JournalEntry, "arrays" | "hasArrays"> = noArrays): void {
    this.controlState.take(event);
    this.#checkpoints.take(event);
    rememberGroup(this.#groups, event, entry);
    switch (event.type) {
      case "started":
        this.#changed(event.changes.map(({ key }) => key));
        break;
      case "resumed":
        this.models.add(event.model);
        break;
      case "group-sampled":
        this.#stale.delete(placeKey(event));
        break;
      case "update-submitted":
        this.#updates.set(event.step, {
          rule: event.rule,
          groups: event.groups.map(({ batch, group }) => ({ batch, group })),
          carried: event.carried,
          nextOffset: event.nextOffset,
          arrays: entry.arrays,
        });
        // Of what comes before, only what is carried over.
        if (event.step < this.#from) this.#forgetBefore(event.step + 1);
        break;
      case "step-done":
        this.steps.set(event.step, event);
        break;
      case "policy-published":
        if (event.path === undefined) break;
        this.policies.set(event.version, event.path);
        this.stored.add(event.path);
        break;
      case "policy-deleted":
        // The run had no more use for it. Whoever has one now, under another max_lag, did not lose it on the server.
        this.stored.delete(event.path);
        for (const [version, path] of this.policies) if (path === event.path) this.policies.delete(version);
        break;
      case "evaluation-started":
        this.evaluationsBegun.add(event.step);
        this.#dropEvaluation(event.step);
        break;
      case "evaluated":
        this.evaluated.add(event.step);
        this.#dropEvaluation(event.step);
        break;
      case "saved":
        if (event.record.state_path === undefined) break;
        if (this.#named === undefined) this.#from = Math.max(this.#from, event.record.step);
        if (event.record.step === this.#from) this.#forgetBefore(this.#from);
        break;
      case "rewound":
        this.floor = event.to;
        if (this.#named === undefined) this.#from = Math.min(this.#from, event.to);
        for (const [key, { sampled }] of this.#groups) if (isGroupUndone(sampled, event.to)) this.#groups.delete(key);
        undoSteps(event.to, this.steps, this.#updates);
        dropCarried(event.to, this.#updates);
        undoVersions(event.to, this.policies, this.evaluated, this.evaluationsBegun);
        break;
    }
  }
}

const noArrays = { hasArrays: false, arrays: () => ({}) };
