// What hosted Tinker charges, as far as it is known here: US dollars, with the day of each figure. The service has no route that tells
// its prices, so this table is read where a cost is shown, and an unknown model has no cost rather than a guessed one.
import { z } from "zod";
import { ConfigError } from "../core/errors.ts";
import type { NewEvent } from "../runs/events.ts";
import { type engineNames, localEngineNames } from "./config-keys.ts";

export type EngineName = (typeof engineNames)[number];

/** Prices of one model, in US dollars per million tokens. */
export interface ModelPrice {
  model: string;
  /** Tokens of a prompt that are read before sampling. */
  prefill: number;
  /** Tokens that are sampled. */
  sample: number;
  /** Tokens of a forward and backward pass. */
  train: number;
  /** The day, or month, that the figures are from. */
  asOf: string;
  /** True: the service has taken the model out of its offer. */
  withdrawn?: true;
}

export const modelPrices: readonly ModelPrice[] = [
  { model: "Qwen/Qwen3-8B", prefill: 0.195, sample: 0.6, train: 0.44, asOf: "2026-10-07" },
  {
    model: "Qwen/Qwen3-4B-Instruct-2507",
    prefill: 0.07,
    sample: 0.22,
    train: 0.22,
    asOf: "2026-01",
    withdrawn: true,
  },
];

/** A prompt that the service has read before costs this share of its price. */
const cachedPrefillShare = 0.2;
/** US dollars for one gigabyte of checkpoints, kept for one month. */
export const storagePerGigabyteMonth = 0.1;

/** The prices of a model; variants such as `MODEL:peft:131072` are not known to cost the same. */
export function priceOf(model: string): ModelPrice | undefined {
  return modelPrices.find((price) => price.model === model);
}

/** What a run pays, in US dollars per million tokens, and where the figures are from. */
export const Tariff = z.object({
  prefill: z.number().min(0),
  cachedPrefill: z.number().min(0),
  sample: z.number().min(0),
  train: z.number().min(0),
  basis: z.string(),
});
/** What a run pays, in US dollars per million tokens, and where the figures are from. */
export type Tariff = z.output<typeof Tariff>;

/** The config keys that set a price. */
export const priceKeys = ["price_prefill", "price_sample", "price_train"] as const;

type PriceOverrides = Record<(typeof priceKeys)[number] | "price_cached_prefill", number | null>;

/**
 * The prices of a run: what the config says, then what the engine is known to cost. `missing` names the keys that would have to be set
 * where that is not enough; a price is never guessed.
 */
export function tariffOf(
  config: PriceOverrides & { model_name: string },
  engine: EngineName,
): { tariff: Tariff | undefined; missing: string[] } {
  const listed = engine === "hosted" ? priceOf(config.model_name) : undefined;
  const free = localEngineNames.some((name) => name === engine) ? 0 : undefined;
  const prefill = config.price_prefill ?? listed?.prefill ?? free;
  const sample = config.price_sample ?? listed?.sample ?? free;
  const train = config.price_train ?? listed?.train ?? free;
  if (prefill === undefined || sample === undefined || train === undefined)
    return { tariff: undefined, missing: priceKeys.filter((key) => config[key] === null) };
  const given = [...priceKeys, "price_cached_prefill" as const].filter((key) => config[key] !== null);
  const own = given.map((key) => `${key}=${config[key]}`).join(" ");
  const rest = listed ? `hosted Tinker's prices of ${listed.asOf}` : `the ${engine} engine costs nothing`;
  const isWhole = priceKeys.every((key) => config[key] !== null);
  const basis = [own, isWhole ? "" : rest].filter((part) => part !== "").join("; ");
  const cachedPrefill = config.price_cached_prefill ?? cachedPrefillShare * prefill;
  return { tariff: { prefill, cachedPrefill, sample, train, basis }, missing: [] };
}

/** Why a cost is not known, and what to do about it. */
export const noPrice = (model: string, missing: readonly string[]) =>
  `no price is known for ${model} here: tokens are counted, ${missing.map((key) => `${key}=`).join(" ")} (US dollars per million tokens) turn them into a cost`;

/** The prices of a run, if they are known; a budget without them is refused. */
export function tariffForBudget(
  config: PriceOverrides & { model_name: string; budget: number | null },
  engine: EngineName,
): Tariff | undefined {
  const { tariff, missing } = tariffOf(config, engine);
  if (tariff || config.budget === null) return tariff;
  throw new ConfigError(
    "config/no-price",
    `budget=${config.budget} cannot be kept without prices: none is known for ${config.model_name} on this server. ` +
      `Set ${missing.map((key) => `${key}=`).join(" ")}, in US dollars per million tokens, or leave budget= out.`,
  );
}

/** Tokens that were, or will be, paid for. */
export interface TokenUse {
  /** Of prompts, each read once for all samples of a request; the cached ones are among them. */
  prefill: number;
  cachedPrefill: number;
  sample: number;
  /** Of all sequences in a forward and backward pass, prompts included. */
  train: number;
}

const tokenKinds = ["prefill", "cachedPrefill", "sample", "train"] as const;

/** Tokens of each kind. */
export const tokensBy = (count: (kind: keyof TokenUse) => number): TokenUse =>
  Object.fromEntries(tokenKinds.map((kind) => [kind, count(kind)])) as Record<keyof TokenUse, number>;

export function addTokens(to: TokenUse, more: Partial<TokenUse>): void {
  for (const kind of tokenKinds) to[kind] += more[kind] ?? 0;
}

/** What a request for samples used. */
export const sampledTokens = (event: Extract<NewEvent, { type: "group-sampled" | "turn-sampled" }>) => ({
  prefill: event.promptTokens,
  cachedPrefill: event.cachedTokens,
  sample: event.type === "turn-sampled" ? event.tokens : event.samples.reduce((sum, { tokens }) => sum + tokens, 0),
});

/** US dollars for tokens, by what they were for. */
export function costOf(price: Tariff, use: Partial<TokenUse>) {
  const { prefill = 0, cachedPrefill = 0, sample = 0, train = 0 } = use;
  const cost = {
    prefill: ((prefill - cachedPrefill) * price.prefill + cachedPrefill * price.cachedPrefill) / 1e6,
    sample: (sample * price.sample) / 1e6,
    train: (train * price.train) / 1e6,
  };
  return { ...cost, total: cost.prefill + cost.sample + cost.train };
}

/** Dollars as text: cents from a dollar on, four digits below. */
export function dollars(amount: number): string {
  if (amount === 0) return "$0";
  return amount >= 1 ? `$${amount.toFixed(2)}` : `$${amount.toFixed(amount >= 0.01 ? 4 : 6)}`;
}

/** One line about the prices of a run. */
export function describeTariff({ prefill, cachedPrefill, sample, train, basis }: Tariff): string {
  if (prefill === 0 && cachedPrefill === 0 && sample === 0 && train === 0)
    return `nothing: ${basis}; tokens are counted`;
  return `USD per million tokens: prefill ${prefill} (cached ${Number(cachedPrefill.toPrecision(6))}), sample ${sample}, train ${train}; ${basis}`;
}
