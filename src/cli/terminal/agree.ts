// Before a run that is billed: what it may cost at most, said in any case and, on a terminal, asked about once. This is known from the
// settings alone, so it comes first: before a folder is made, data are fetched, or the server is asked for anything.

import { countOf } from "../../core/count.ts";
import type { TrainConfig } from "../../rl/config.ts";
import { describeCost, forecastAtMost } from "../../rl/forecast.ts";
import { costOf, dollars, type EngineName, noPrice, type Tariff, tariffForBudget, tariffOf } from "../../rl/prices.ts";
import { chargedAs } from "../parts/connect.ts";
import { askYes } from "./ask.ts";

interface BilledPlan {
  config: TrainConfig;
  kind: EngineName;
}

/** A run that is resumed. */
interface BegunRun {
  config: TrainConfig;
  engine: string;
  /** Whether nothing more will be billed. */
  isOver(): boolean;
}

/** True where nothing is billed, nobody can be asked, or somebody says yes. A run is asked about again only if it may cost more than before. */
export async function agreesToCost({ config, kind }: BilledPlan, yes: boolean, begun?: BegunRun): Promise<boolean> {
  const { tariff, isBilled, unpriced } = chargeOf({ config, kind });
  if (!isBilled || begun?.isOver()) return true;
  console.error(tariff ? describeCost(forecastAtMost(config), tariff) : unpriced);
  console.error(`      ${whatEndsIt(config, tariff)}`);
  const agreed = begun?.engine === kind && !costsMore(config, begun.config, tariff);
  return yes || agreed || saysYes(begun ? "Go on?" : "Begin?");
}

/**
 * The same for several runs, asked about once. What they may cost at most is agreed to together with them: they are asked about again only
 * where it has become more than `before`. Undefined for a no.
 */
export async function agreesToCostOf(
  plans: readonly BilledPlan[],
  yes: boolean,
  before: number | undefined,
): Promise<number | undefined> {
  const runs = plans.map((plan) => ({ ...plan, ...chargeOf(plan) })).filter(({ isBilled }) => isBilled);
  const max = runs.reduce((sum, { config, tariff }) => sum + maxCostOf(config, tariff), 0);
  const [first] = runs;
  if (!first) return max;
  const unknown = runs.find(({ tariff }) => !tariff) ?? first;
  const all = `cost: at most ${dollars(max)} for ${countOf(runs.length, "run")} (${first.tariff?.basis})`;
  console.error(unknown.tariff ? all : unknown.unpriced);
  console.error(`      each run: ${whatEndsIt(first.config, unknown.tariff)}`);
  return yes || (before !== undefined && max <= before) || (await saysYes("Begin?")) ? max : undefined;
}

/** What is charged for a run, and what to say where nobody knows. */
function chargeOf({ config, kind }: BilledPlan) {
  const charged = chargedAs(config, process.env, kind);
  const tariff = tariffForBudget(config, charged);
  return {
    tariff,
    isBilled: tariff ? tariff.prefill + tariff.sample + tariff.train > 0 : charged === "hosted",
    unpriced: `cost: billed; ${noPrice(config.model_name, tariffOf(config, charged).missing)}`,
  };
}

/** Asks where somebody can be asked. */
async function saysYes(question: string): Promise<boolean> {
  if (!process.stdin.isTTY || (await askYes(question))) return true;
  console.error("nothing was begun, nothing was billed; yes=true goes ahead without a question");
  return false;
}

function whatEndsIt(
  { budget, max_steps: steps, eval_every, eval_max_problems: problems }: TrainConfig,
  tariff: Tariff | undefined,
): string {
  const all = eval_every > 0 && problems === 0 ? "evaluations of all problems come on top; " : "";
  if (budget !== null)
    return `${all}budget=${budget}: it saves and stops before more than ${dollars(budget)} are spent`;
  const end = steps < 0 ? "max_steps=-1: it has no end of its own; " : "";
  return `${all}that is if every answer is as long as it may be; ${end}budget=USD saves and stops before more is spent${tariff ? "" : ", with the prices set"}`;
}

/** Whether the most that a run may cost is more than it was. */
function costsMore(config: TrainConfig, before: TrainConfig, tariff: Tariff | undefined): boolean {
  // What was agreed to was the budget, however much less the steps of then could cost.
  if (config.budget !== null && before.budget !== null && config.budget <= before.budget) return false;
  const [now, then] = [maxCostOf(config, tariff), maxCostOf(before, tariff)];
  const stepCost = (settings: TrainConfig) => costOf(tariff ?? byTokens, forecastAtMost(settings).step).total;
  return now > then || (now === Number.POSITIVE_INFINITY && stepCost(config) > stepCost(before));
}

/** Without prices, by the tokens. */
const byTokens: Tariff = { prefill: 1, cachedPrefill: 1, sample: 1, train: 1, basis: "" };

function maxCostOf(config: TrainConfig, tariff: Tariff = byTokens): number {
  const { run } = forecastAtMost(config);
  return Math.min(
    config.budget ?? Number.POSITIVE_INFINITY,
    run ? costOf(tariff, run).total : Number.POSITIVE_INFINITY,
  );
}
