// What a run has cost so far: tokens by kind, folded from the journal, at the prices of the session that spent them. Billed tokens
// are counted, not useful ones: what was trained again after a kill was paid for again. What was asked for and never came back is
// estimated, and kept apart.
import { entryOf } from "../core/maps.ts";
import type { EventOf, RunEvent } from "../runs/events.ts";
import { isStepUndone, undoSteps } from "../runs/rewinds.ts";
import { addTokens, costOf, sampledTokens, Tariff, type TokenUse, tokensBy } from "./prices.ts";
import { placeKey } from "./remembered-groups.ts";
import type { Place } from "./rollout.ts";

const nothing = () => tokensBy(() => 0);

/** Tokens by purpose. */
interface Account {
  /** Sampled and trained for the updates. */
  train: TokenUse;
  eval: TokenUse;
  /** Of these, what had to be done again or was given up. */
  wasted: TokenUse;
  /** Asked for and never answered: an estimate, in none of the above. */
  lost: TokenUse;
}

type Purpose = keyof Account;

/** US dollars of a run so far. */
export interface Spent {
  prefill: number;
  sample: number;
  train: number;
  total: number;
  /** Parts of the total: for evaluations; for what was done again or given up. */
  eval: number;
  wasted: number;
  /** An estimate of what was asked for and never answered, beside the total. */
  lost: number;
}

export class Meter {
  /** At one price each. */
  readonly #accounts: (Account & { tariff: Tariff | undefined })[] = [newAccount(undefined)];
  readonly #requests = new Map<string, EventOf<"group-requested">>();
  /** Tokens of updates that are not applied yet, and whether one on its way was given up: it will be sent again. */
  readonly #submitted = new Map<number, { tokens: number; readTokens: number; lost: boolean }>();
  /** What the batches that count have used. */
  readonly #batches = new Map<number, TokenUse>();
  readonly #mixed = new Map<number, number>();
  readonly #answers = { train: { samples: 0, tokens: 0 }, eval: { samples: 0, tokens: 0 } };
  #lastTotal = 0;

  /** The meter of a journal. */
  static over(entries: Iterable<{ event: RunEvent }>): Meter {
    const meter = new Meter();
    for (const { event } of entries) meter.take(event);
    return meter;
  }

  /** The prices in force; undefined: tokens are counted, their cost is not known. */
  get tariff(): Tariff | undefined {
    return this.#account.tariff;
  }

  /** All tokens that were paid for. */
  get tokens(): TokenUse {
    return this.tokensFor("train", "eval");
  }

  tokensFor(...purposes: Purpose[]): TokenUse {
    const sum = nothing();
    for (const account of this.#accounts) for (const purpose of purposes) addTokens(sum, account[purpose]);
    return sum;
  }

  /** The most tokens that what was asked for and is not answered yet can come to. */
  get underWay(): TokenUse {
    const sum = nothing();
    for (const { samples, promptTokens, maxTokens } of this.#requests.values())
      addTokens(sum, { prefill: promptTokens, sample: samples * maxTokens });
    return sum;
  }

  /** Groups with right and wrong answers among the steps that count. */
  get mixedGroups(): number {
    return [...this.#mixed.values()].reduce((sum, count) => sum + count, 0);
  }

  /** US dollars; undefined where no price is known. */
  get spent(): Spent | undefined {
    const known = this.#accounts.find(({ tariff }) => tariff !== undefined)?.tariff;
    if (!known) return undefined;
    const spent: Spent = { prefill: 0, sample: 0, train: 0, total: 0, eval: 0, wasted: 0, lost: 0 };
    // Tokens of a session without a price are counted at the price that was set later.
    for (const account of this.#accounts) {
      const tariff = account.tariff ?? known;
      for (const purpose of ["train", "eval", "wasted", "lost"] as const) {
        const { prefill, sample, train, total } = costOf(tariff, account[purpose]);
        if (purpose !== "train") spent[purpose] += total;
        if (purpose === "wasted" || purpose === "lost") continue;
        spent.prefill += prefill;
        spent.sample += sample;
        spent.train += train;
        spent.total += total;
      }
    }
    return spent;
  }

  /** The figures of metrics.jsonl. */
  figures(): Record<string, number> {
    const { prefill, cachedPrefill, sample, train } = this.tokens;
    const figures: Record<string, number> = {
      "tokens/prefill_total": prefill,
      "tokens/prefill_cached_total": cachedPrefill,
      "tokens/sampled_total": sample,
      "tokens/trained_total": train,
    };
    const { spent, mixedGroups, underWay, tariff } = this;
    figures["tokens/under_way_total"] = underWay.prefill + underWay.sample;
    if (tariff) figures["cost/under_way"] = costOf(tariff, underWay).total;
    if (!spent) return figures;
    figures["cost/total"] = spent.total;
    figures["cost/step"] = spent.total - this.#lastTotal;
    for (const part of ["prefill", "sample", "train", "eval"] as const) figures[`cost/${part}`] = spent[part];
    for (const part of ["wasted", "lost"] as const) if (spent[part] > 0) figures[`cost/${part}`] = spent[part];
    if (mixedGroups > 0) figures["cost/per_mixed_group"] = spent.total / mixedGroups;
    return figures;
  }

  take(event: RunEvent): void {
    switch (event.type) {
      // Whatever was under way when a process ended, or lost its model, is not answered any more.
      case "opened":
      case "resumed":
      case "stopped":
        this.#giveUp();
        break;
      case "started":
        this.#changeTariff(event.config["tariff"]);
        break;
      case "group-requested":
        this.#requests.set(requestKey(event, event.turn), event);
        break;
      case "group-sampled":
      case "turn-sampled":
        this.#answered(event);
        break;
      case "update-submitted":
        this.#submitted.set(event.step, { tokens: event.tokens, readTokens: event.readTokens, lost: false });
        this.#mixed.set(event.step, event.groups.filter(({ outcome }) => outcome === "mixed").length);
        break;
      case "update-done": {
        const { tokens = 0, readTokens = 0 } = this.#submitted.get(event.step) ?? {};
        const use = { train: tokens, prefill: readTokens };
        this.#submitted.delete(event.step);
        addTokens(this.#account.train, use);
        addTokens(this.#batch(event.step), use);
        break;
      }
      case "retrained":
        addTokens(this.#account.train, { train: event.tokens });
        addTokens(this.#account.wasted, { train: event.tokens });
        break;
      case "step-done":
        this.#submitted.delete(event.step);
        this.#lastTotal = this.spent?.total ?? 0;
        break;
      case "rewound":
        for (const [batch, use] of this.#batches)
          if (isStepUndone(batch, event.to)) addTokens(this.#account.wasted, use);
        undoSteps(event.to, this.#batches, this.#mixed);
        break;
    }
  }

  get #account() {
    return this.#accounts.at(-1)!;
  }

  #answered(event: EventOf<"group-sampled" | "turn-sampled">): void {
    const isTurn = event.type === "turn-sampled";
    this.#requests.delete(requestKey(event, isTurn ? `${event.sample} ${event.turn}` : ""));
    if (!isTurn && event.given) return;
    const use = sampledTokens(event);
    addTokens(this.#account[event.phase], use);
    if (event.phase === "train") addTokens(this.#batch(event.batch), use);
    const answers = this.#answers[event.phase];
    answers.samples += isTurn ? 1 : event.samples.length;
    answers.tokens += use.sample;
  }

  #batch(batch: number): TokenUse {
    return entryOf(this.#batches, batch, nothing);
  }

  #changeTariff(recorded: unknown): void {
    const tariff = Tariff.safeParse(recorded).data;
    if (JSON.stringify(tariff) !== JSON.stringify(this.#account.tariff)) this.#accounts.push(newAccount(tariff));
  }

  #giveUp(): void {
    for (const { phase, samples, promptTokens, maxTokens } of this.#requests.values()) {
      const { samples: answered, tokens } = this.#answers[phase];
      const each = answered > 0 ? Math.min(maxTokens, tokens / answered) : maxTokens;
      addTokens(this.#account.lost, { prefill: promptTokens, sample: Math.round(samples * each) });
    }
    this.#requests.clear();
    for (const update of this.#submitted.values()) {
      if (!update.lost) addTokens(this.#account.lost, { train: update.tokens, prefill: update.readTokens });
      update.lost = true;
    }
  }
}

const newAccount = (tariff: Tariff | undefined) => ({
  tariff,
  train: nothing(),
  eval: nothing(),
  wasted: nothing(),
  lost: nothing(),
});

const requestKey = (place: Place, turn = "") => `${placeKey(place)} ${turn}`;
