// The fault script: makes the server misbehave on purpose, request by request, so that clients can be proven against it. Only for
// tests with the simulated engine.
import { readFileSync } from "node:fs";
import { z } from "zod";
import { messageOf } from "../core/errors.ts";
import { ServerError } from "./errors.ts";

export const faultKinds = [
  /** Refused with that status; nothing happened. */
  "429",
  "408",
  "410",
  "500",
  "503",
  /** The connection is cut before the request is looked at. */
  "drop-before",
  /** The request is carried out, then the connection is cut without an answer. */
  "drop-after",
  /** Carried out; half of the answer is sent, then nothing, on an open connection. */
  "half-open",
  /** Carried out; the answer comes byte by byte. */
  "slow-body",
  /** Carried out; no answer comes, on an open connection. */
  "hang",
  /** The server restarts: before the request is looked at, or after it was carried out. */
  "restart-before",
  "restart-after",
] as const;
export type FaultKind = (typeof faultKinds)[number];

const rule = z.strictObject({
  route: z.string().describe("a route's name, e.g. optim_step, or * for all"),
  fault: z.enum(faultKinds),
  skip: z.int().min(0).default(0).describe("matching requests that pass before it begins"),
  times: z.int().min(1).default(1).describe("requests it hits"),
  ms: z
    .number()
    .min(0)
    .default(1000)
    .describe("how long an open connection stays silent or slow; how long a restart takes"),
});
const script = z.strictObject({ faults: z.array(rule) });

export type FaultRule = z.output<typeof rule>;
export type FaultRuleInput = z.input<typeof rule>;

export class FaultScript {
  readonly #rules: (FaultRule & { seen: number })[] = [];
  /** Every fault that fired, in order. */
  readonly fired: { route: string; fault: FaultKind }[] = [];

  constructor(rules: readonly FaultRuleInput[] = []) {
    this.add(rules);
  }

  /** Forgets the rules; what fired stays on record. */
  clear(): void {
    this.#rules.length = 0;
  }

  /** Rules that count from now on. */
  add(rules: readonly FaultRuleInput[]): void {
    for (const parsed of script.parse({ faults: rules }).faults) this.#rules.push({ ...parsed, seen: 0 });
  }

  static fromFile(path: string): FaultScript {
    try {
      return new FaultScript((JSON.parse(readFileSync(path, "utf8")) as { faults: FaultRuleInput[] }).faults);
    } catch (cause) {
      throw new ServerError(
        500,
        "server/fault-script",
        `${path} is no fault script: ${messageOf(cause)}. Write {"faults": [{"route": "optim_step", "fault": "429", "times": 3}]}.`,
        { cause },
      );
    }
  }

  /** The fault that hits this request, if any. */
  take(route: string): FaultRule | undefined {
    let hit: FaultRule | undefined;
    for (const candidate of this.#rules) {
      if (candidate.route !== "*" && candidate.route !== route) continue;
      const number = candidate.seen++;
      if (!hit && number >= candidate.skip && number < candidate.skip + candidate.times) hit = candidate;
    }
    if (hit) this.fired.push({ route, fault: hit.fault });
    return hit;
  }
}

/** The refusal of a fault that is a status, or undefined for the other kinds. */
export function injectedRefusal(fault: FaultRule): ServerError | undefined {
  const status = Number(fault.fault);
  if (Number.isNaN(status)) return undefined;
  return new ServerError(status, "server/injected-fault", `The fault script answers ${status} here. Try again.`, {
    ...(status === 429 && { retryAfterSeconds: fault.ms / 1000 }),
  });
}
