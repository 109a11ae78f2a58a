// Which checkpoints of a run may go: none that it would be resumed from, none that is to be kept, none that another run refers to.

import { parseTinkerPath } from "../client/index.ts";
import { percent } from "../core/count.ts";
import { ConfigError } from "../core/errors.ts";
import type { CheckpointRecord } from "../runs/checkpoints.ts";
import type { JournalEntry } from "../runs/events.ts";
import { RunView } from "../runs/view.ts";
import { summarizeOutcomes } from "./evaluate.ts";
import { Recovered } from "./recovery.ts";

/** What `keep=` asks for. */
export interface KeepRule {
  best: boolean;
  final: boolean;
  last: number;
}

export function parseKeep(text: string): KeepRule {
  const rule: KeepRule = { best: false, final: false, last: 0 };
  for (const word of text.split(",").map((part) => part.trim())) {
    const last = /^last(?::(\d{1,6}))?$/.exec(word);
    if (word === "best") rule.best = true;
    else if (word === "final") rule.final = true;
    else if (last) rule.last = Number(last[1] ?? 1);
    else if (word !== "" && word !== "none")
      throw new ConfigError(
        "config/bad-value",
        `keep=${text} has "${word}", which is none of best, final, last:N and none.`,
      );
  }
  return rule;
}

/** What the journal of a run says about what lies on the server. */
interface RunCheckpoints {
  /** Ids that the run's models had on the server. */
  ids: string[];
  /** What a path is to the run: "checkpoint 000010", "policy 12". */
  names: Map<string, string>;
  /** Paths that must stay for the run to go on. */
  needed: Set<string>;
  /** Paths that a rule keeps, with its name. */
  kept(rule: KeepRule): Map<string, string>;
}

/** Reads it. `exists` says whether a path is still there: the newest checkpoint that is must stay. */
export function runCheckpoints(
  entries: Iterable<JournalEntry>,
  exists: (path: string) => boolean = () => true,
): RunCheckpoints {
  const view = new RunView();
  const names = new Map<string, string>();
  const recovered = new Recovered();
  for (const entry of entries) {
    const { event } = entry;
    view.take(event);
    recovered.take(event, entry);
    if (event.type === "policy-published" && event.path !== undefined) names.set(event.path, `policy ${event.version}`);
    if (event.type === "saved")
      for (const path of pathsOf(event.record)) names.set(path, `checkpoint ${event.record.name}`);
  }
  const live = new Set(view.checkpoints.flatMap(pathsOf));
  for (const [path, name] of names)
    if (name.startsWith("checkpoint") && !live.has(path)) names.set(path, `${name}, discarded`);
  const { checkpoints: records, policies } = recovered;
  const newest = records.find(({ state_path: path }) => exists(path!));
  const needed = new Set(newest ? pathsOf(newest) : []);
  // Batches under way are finished by the policies that began them; a longer max_steps goes on from those of its end.
  const lag = Number(view.config["max_lag"] ?? 0) + (view.config["tail"] === "carry" ? 1 : 0);
  for (const [version, path] of policies) if (version >= (newest?.step ?? 0) - lag) needed.add(path);
  const ids = [...new Set([...names.keys()].map((path) => parseTinkerPath(path).trainingRunId))];
  return { ids, names, needed, kept: (rule) => keptBy(rule, view, records) };
}

function keptBy(rule: KeepRule, view: RunView, newestFirst: readonly CheckpointRecord[]): Map<string, string> {
  const kept = new Map<string, string>();
  const keep = (record: CheckpointRecord, why: string) => {
    for (const path of pathsOf(record)) if (!kept.has(path)) kept.set(path, why);
  };
  if (rule.final) for (const record of newestFirst) if (record.final) keep(record, "final");
  if (rule.best) {
    const rates = newestFirst.flatMap((record) => {
      const outcomes = view.evaluations.get(record.step)?.outcomes;
      const rate = outcomes && summarizeOutcomes(outcomes).pass1?.rate;
      return rate === undefined ? [] : [{ record, rate }];
    });
    const best = rates.reduce<(typeof rates)[number] | undefined>(
      (top, next) => (top && top.rate >= next.rate ? top : next),
      undefined,
    );
    if (best) keep(best.record, `best, Pass@1 ${percent(best.rate)}`);
  }
  for (const record of newestFirst.slice(0, rule.last)) keep(record, "last");
  return kept;
}

/** Both paths of a record. */
export const pathsOf = ({ state_path: state, sampler_path: sampler }: CheckpointRecord): string[] =>
  [state, sampler].filter((path) => path !== undefined);
