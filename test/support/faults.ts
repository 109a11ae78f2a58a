// The fault script: makes the server misbehave on purpose, request by request, so that clients can be proven against it.
import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { type Answer, type Exchange, errorAnswer, type Intercept, ServerError } from "../../src/server/index.ts";

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
  route: z.string().describe("a route's name, e.g. optimStep, or * for all"),
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

  /** To be given to a server as its `intercept`. */
  readonly intercept: Intercept = async (exchange, handle) => {
    const fault = this.take(exchange.route);
    if (!fault) return handle();
    const status = Number(fault.fault);
    if (!Number.isNaN(status)) return injectedRefusal(status, fault.ms);
    if (fault.fault === "drop-before") exchange.request.socket.destroy();
    else if (fault.fault === "restart-before") void exchange.restart(fault.ms);
    else return spoil(fault, exchange, await handle());
    return undefined;
  };

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

function injectedRefusal(status: number, ms: number): Answer {
  return errorAnswer(
    new ServerError(status, "server/injected-fault", `The fault script answers ${status} here. Try again.`, {
      ...(status === 429 && { retryAfterSeconds: ms / 1000 }),
    }),
  );
}

/** In how many pieces a slow answer comes. */
const slowPieces = 20;

/** Faults that let a request be carried out and spoil its answer. */
async function spoil(fault: FaultRule, exchange: Exchange, answer: Answer): Promise<undefined> {
  const { request, response, ended, restart } = exchange;
  const body = Buffer.from(typeof answer.body === "string" || answer.body instanceof Uint8Array ? answer.body : "");
  const silence = (ms: number) => sleep(ms, undefined, { signal: ended }).catch(() => {});
  const head = () =>
    response.writeHead(answer.status, {
      "content-type": answer.contentType ?? "",
      "content-length": body.length,
      ...answer.headers,
    });
  switch (fault.fault) {
    case "restart-after":
      void restart(fault.ms);
      return;
    case "hang":
      await silence(fault.ms);
      break;
    case "half-open":
      head().write(body.subarray(0, body.length >> 1));
      await silence(fault.ms);
      break;
    case "slow-body": {
      head();
      const pieces = Math.min(body.length, slowPieces);
      for (let piece = 0; piece < pieces && !response.destroyed; piece++) {
        response.write(body.subarray((body.length * piece) / pieces, (body.length * (piece + 1)) / pieces));
        await silence(fault.ms / pieces);
      }
      response.end();
      return;
    }
    default:
  }
  request.socket.destroy();
}
