// What a run's journal says of its earlier sessions, read once for everything that goes on from there.
import type { Run } from "../runs/run.ts";
import { Budget } from "./budget.ts";
import type { TrainConfig } from "./config.ts";
import { Findings } from "./findings.ts";
import { Meter } from "./meter.ts";
import type { Tariff } from "./prices.ts";
import { Recovered } from "./recovery.ts";
import { extraReads } from "./references.ts";
import { updateRule } from "./train-step.ts";

/** What counts a run's cost, and what ends it when that is spent. */
export interface Money {
  meter: Meter;
  budget: Budget | undefined;
}

export interface History {
  findings: Findings;
  money: Money;
  /** Follows the journal until a session begins with it. */
  recovered: Recovered;
}

/** Begins this process's part of the run; what is returned has taken what the journal had, and takes what it gets. */
export async function beginWithHistory(
  run: Run,
  config: TrainConfig,
  { tariff, maxTurns }: { tariff: Tariff | undefined; maxTurns?: number | undefined },
  { record, changes }: { record: Readonly<Record<string, unknown>>; changes: Parameters<Run["begin"]>[1] },
): Promise<History> {
  const findings = new Findings(run, config);
  const meter = new Meter();
  const { budget: limit } = config;
  const budget =
    limit === null || !tariff
      ? undefined
      : new Budget(limit, tariff, meter, config, { turns: maxTurns, reads: extraReads(updateRule(config)) });
  const recovered = new Recovered();
  await run.begin(record, changes, [findings, meter, ...(budget ? [budget] : []), recovered]);
  return { findings, money: { meter, budget }, recovered };
}
