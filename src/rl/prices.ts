// What hosted Tinker charges, as far as it is known here: US dollars, with the day of each figure. The service has no route that tells
// its prices, so this table is read where a cost is shown, and an unknown model has no cost rather than a guessed one.

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
export const cachedPrefillShare = 0.2;
/** US dollars for one gigabyte of checkpoints, kept for one month. */
export const storagePerGigabyteMonth = 0.1;

/** The prices of a model; variants such as `MODEL:peft:131072` are not known to cost the same. */
export function priceOf(model: string): ModelPrice | undefined {
  return modelPrices.find((price) => price.model === model);
}

/** Tokens that were, or will be, paid for. */
export interface TokenUse {
  prefill: number;
  /** Of the prefill tokens, those that the service had cached. */
  cachedPrefill?: number;
  sample: number;
  train: number;
}

/** US dollars for the tokens of a run. */
export function costOf(price: ModelPrice, use: TokenUse): number {
  const cached = use.cachedPrefill ?? 0;
  const prefill = use.prefill - cached + cached * cachedPrefillShare;
  return (prefill * price.prefill + use.sample * price.sample + use.train * price.train) / 1e6;
}
