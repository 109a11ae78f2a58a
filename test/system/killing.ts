// Runs that are killed at random moments and go on, and what must be true of them in the end: the engine's and the sandbox's own
// accounts say that nothing written down was done twice, and the adapter is bit for bit that of a run nobody touched.
import type { ChildProcess } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "vitest";
import { readJsonLines } from "../../src/core/jsonl.ts";
import type { AuditRecord } from "../../src/engine/audited.ts";
import { Meter } from "../../src/rl/meter.ts";
import { versionFor } from "../../src/rl/pipeline.ts";
import type { EventOf, RunEvent } from "../../src/runs/events.ts";
import { readJournal } from "../../src/runs/read-journal.ts";
import { runCommand } from "../support/command-process.ts";
import { runWhet } from "../support/whet.ts";

/** Runs a training command; kills it after `killAfterMs` when given. Returns its exit code, null when killed. */
export async function train(
  args: readonly string[],
  { killAfterMs, env = {} }: { killAfterMs?: number | undefined; env?: Record<string, string> } = {},
): Promise<number | null> {
  let timer: NodeJS.Timeout | undefined;
  const kill = (child: ChildProcess) => {
    timer = setTimeout(() => child.kill("SIGKILL"), killAfterMs);
  };
  const result = await (killAfterMs === undefined
    ? runCommand(["train", ...args], { env })
    : runWhet(["train", ...args], { env, onStart: kill }));
  clearTimeout(timer);
  if (result.code !== 0 && result.signal !== "SIGKILL") throw new Error(result.stderr);
  return result.code;
}

/** The metrics without what depends on the clock, on what was graded before and on what was paid for by then. */
export function metricsOf(path: string): Record<string, unknown>[] {
  return (readJsonLines(join(path, "metrics.jsonl")) as Record<string, unknown>[]).map((record) =>
    Object.fromEntries(
      Object.entries(record).filter(
        ([name]) => !/^(time|grade|pipeline|journal|cost)\/|^episode\/own_time|^tokens\/.*_total$/.test(name),
      ),
    ),
  );
}

/** The same, one record for each step: an evaluation that was cut short is in a record of its own. */
export function mergedMetrics(path: string): object[] {
  const records = new Map<unknown, object>();
  for (const record of metricsOf(path)) records.set(record["step"], { ...records.get(record["step"]), ...record });
  return [...records.values()];
}

/** The hash of the final adapter's weights, found through the run's last checkpoint record: a kill may leave others, unrecorded. */
export function finalAdapter(path: string, stateDir = join(path, "engine")): string {
  const last = readJsonLines(join(path, "checkpoints.jsonl")).at(-1) as { name: string; sampler_path: string };
  expect(last.name).toBe("final");
  const [model, ...rest] = last.sampler_path.replace("tinker://", "").split("/");
  const folder = join(stateDir, "checkpoints", encodeURIComponent(model!), ...rest);
  const [file, ...others] = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((name) =>
    name.endsWith("adapter_model.safetensors"),
  );
  expect(others).toEqual([]);
  return createHash("sha256")
    .update(readFileSync(join(folder, file!)))
    .digest("hex");
}

type Sampled = EventOf<"group-sampled">;
type Turn = EventOf<"turn-sampled">;
type Graded = EventOf<"graded">;

const placeOf = ({ phase, batch, group }: Sampled | Turn | Graded) => `${phase} ${batch} ${group}`;
const eventsOf = (path: string): RunEvent[] =>
  existsSync(join(path, "journal")) ? [...readJournal(path)].map(({ event }) => event) : [];
const linesOf = (path: string): unknown[] => (existsSync(path) ? readJsonLines(path) : []);

/** What was written down, and what the engine and the sandbox had done, at the moment of a kill. */
export interface Moment {
  sampled: ReadonlySet<string>;
  engineLines: number;
}

export function momentOf(path: string, audit: string): Moment {
  const sampled = eventsOf(path).flatMap((event) =>
    event.type === "group-sampled" || event.type === "turn-sampled" ? [identityOf(event)] : [],
  );
  return { sampled: new Set(sampled), engineLines: linesOf(audit).length };
}

/** A request as the engine's account names it. */
const identityOf = ({ phase, seed, policy }: Sampled | Turn) =>
  `${phase === "eval" ? `eval ${policy}` : "train"} ${seed}`;

/** Checks the accounts of a run that was killed at `moments` and has ended: what was done, and what it cost. */
export function expectAccounts(path: string, audit: string, moments: readonly Moment[], sandboxAudit?: string): void {
  expectNothingTwice(path, audit, moments, sandboxAudit);
  expectMetered(path, audit, moments);
}

/** The meter has all that the engine did but what was under way at a kill, and that is within what it says was lost. */
function expectMetered(path: string, audit: string, moments: readonly Moment[]): void {
  const meter = Meter.over(readJournal(path));
  const lines = linesOf(audit) as AuditRecord[];
  const done = { prefill: 0, sample: 0, train: 0 };
  let largestUpdate = 0;
  for (const line of lines) {
    if (line.op === "sample") {
      done.prefill += line.promptTokens;
      done.sample += line.tokens;
    }
    if (line.op === "forward_backward") {
      done.train += line.tokens;
      largestUpdate = Math.max(largestUpdate, line.tokens);
    }
  }
  const missing = (kind: keyof typeof done) => done[kind] - meter.tokens[kind];
  for (const kind of ["prefill", "sample", "train"] as const) expect(missing(kind), kind).toBeGreaterThanOrEqual(0);
  expect(missing("prefill")).toBeLessThanOrEqual(meter.tokensFor("lost").prefill);
  // Answers that never came are estimated at the mean length; none of them is counted where no request was lost.
  if (meter.tokensFor("lost").prefill === 0) expect(missing("sample")).toBe(0);
  // A step that was being trained again at a kill is not written down.
  expect(missing("train")).toBeLessThanOrEqual(meter.tokensFor("lost").train + moments.length * largestUpdate);
}

/** Nothing that was written down was done again. The engine's account may have other runs before line `from`. */
export function expectNothingTwice(
  path: string,
  audit: string,
  moments: readonly Moment[],
  sandboxAudit?: string,
  from = 0,
): void {
  const events = eventsOf(path);
  const sampled = events.filter((event): event is Sampled => event.type === "group-sampled");
  const turns = events.filter((event): event is Turn => event.type === "turn-sampled");
  const graded = events.filter((event): event is Graded => event.type === "graded");

  // The journal has every group and every verdict once.
  expect(sampled.length).toBe(new Set(sampled.map(placeOf)).size);
  expect(turns.length).toBe(new Set(turns.map((turn) => `${placeOf(turn)} ${turn.sample} ${turn.turn}`)).size);
  expect(graded.length).toBe(new Set(graded.map((event) => `${placeOf(event)} ${event.sample}`)).size);

  // No request of a group that was written down before a kill reached the engine after it.
  const lines = linesOf(audit) as AuditRecord[];
  const samples = lines.flatMap((line, index) => (line.op === "sample" ? [{ line, index }] : []));
  const measured = [...sampled, ...turns].filter(({ phase }) => phase === "eval");
  const evaluations = new Map(measured.map(({ seed }) => [seed, true]));
  for (const moment of moments) {
    const repeated = samples.filter(
      ({ line, index }) =>
        index >= moment.engineLines &&
        moment.sampled.has(evaluations.has(line.seed) ? `eval ${line.steps} ${line.seed}` : `train ${line.seed}`),
    );
    expect(repeated).toEqual([]);
  }

  // Every update went into its model once, and every model's history is a beginning of one and the same.
  const stepsOf = new Map<string, number>();
  const policyAt = new Map<number, string>();
  for (const line of lines.slice(from)) {
    if (line.op === "load_state" || line.op === "create_model") stepsOf.set(line.model, line.steps);
    if (line.op !== "optim_step") continue;
    expect(line.steps).toBe((stepsOf.get(line.model) ?? 0) + 1);
    stepsOf.set(line.model, line.steps);
    expect(policyAt.get(line.steps) ?? line.policy).toBe(line.policy);
    policyAt.set(line.steps, line.policy);
  }

  // The sandbox ran what has a verdict of its own, and at each kill at most what was under way without one.
  if (sandboxAudit === undefined) return;
  const ran = linesOf(sandboxAudit).length;
  const verdicts = graded.filter(({ grade }) => grade.codeHash !== null && !grade.cached).length;
  expect(ran).toBeGreaterThanOrEqual(verdicts);
  expect(ran - verdicts).toBeLessThanOrEqual(moments.length * 16);
}

/** Every group of every batch is trained on once, at most one step late unless in rounds, and at most lag + 1 versions after its own. */
export function expectAllTrained(path: string, lag: number, steps: number, rounds = false): void {
  const sampled = new Map(
    eventsOf(path).flatMap((event) =>
      event.type === "group-sampled" && event.phase === "train" ? [[`${event.batch} ${event.group}`, event]] : [],
    ),
  );
  const updates = eventsOf(path).filter((event) => event.type === "update-submitted");
  const trained = updates.flatMap((update) => update.groups.map((entry) => ({ ...entry, step: update.step })));
  const names = trained.map(({ batch, group }) => `${batch} ${group}`);
  expect(names.toSorted()).toEqual([...sampled.keys()].toSorted());
  expect(names).toHaveLength(steps * 4);
  for (const { step, batch, group, problem } of trained) {
    const event = sampled.get(`${batch} ${group}`)!;
    expect(event.problem).toBe(problem);
    expect(event.policy).toBe(versionFor(batch, lag, 0, rounds));
    expect(step - batch).toBeLessThanOrEqual(rounds ? lag + 1 : 1);
    expect(step - event.policy).toBeLessThanOrEqual(lag + 1);
    for (const update of updates) {
      const left = update.carried.filter((one) => one.batch === batch && one.group === group);
      const isLeft = batch <= update.step && update.step < step;
      expect(left).toEqual(isLeft ? [{ batch, group, problem, datasetIndex: event.datasetIndex }] : []);
    }
  }
  expect(updates.at(-1)!.carried).toEqual([]);
  expect(trained.filter(({ step, batch }) => step > batch).length).toBeGreaterThan(0);
}
