// Remembers verdicts by what decides them: the program, the tests, the limits and the comparator. Equal programs that are
// graded at the same moment share one run. Failures of the sandbox are never remembered, nor verdicts that a busy machine could explain.
import { createHash } from "node:crypto";
import { entryOf } from "../core/maps.ts";
import { Recent } from "../core/recent.ts";
import { writeJson } from "./json.ts";
import type { Judgement } from "./judge.ts";
import type { NormalizedTest } from "./normalize.ts";

const fingerprints = new WeakMap<readonly NormalizedTest[], string>();

/** A hash of tests, computed once per list. */
export const testsFingerprint = (tests: readonly NormalizedTest[]): string =>
  entryOf(fingerprints, tests, () => hashOf(tests));

function hashOf(tests: readonly NormalizedTest[]): string {
  const hash = createHash("sha256");
  for (const test of tests) {
    const parts =
      test.kind === "stdin"
        ? ["stdin", test.input, test.expected]
        : [test.functionName, writeJson(test.args), writeJson(test.expected), writeJson(test.expectedAlt ?? null)];
    // Lengths in front keep two different lists from flowing into the same bytes.
    for (const part of parts) hash.update(`${part.length}:`).update(part);
  }
  return hash.digest("base64");
}

interface Running {
  promise: Promise<Judgement>;
  waiting: number;
  /** Ends the run; whoever asks from now on starts another. */
  cancel(reason: unknown): void;
}

export class VerdictCache {
  readonly #entries: Recent<string, Judgement>;
  readonly #running: Map<string, Running> = new Map();
  readonly #size: number;

  /** `size` is the number of verdicts kept; 0 keeps none and shares nothing. */
  constructor(size: number) {
    this.#size = size;
    this.#entries = new Recent(size);
  }

  /** The remembered judgement, or the result of `compute`, which runs once for all who ask meanwhile. */
  async get(
    key: string,
    compute: (signal: AbortSignal) => Promise<Judgement>,
    signal?: AbortSignal,
  ): Promise<{ judgement: Judgement; cached: boolean }> {
    signal?.throwIfAborted();
    const known = this.#entries.get(key);
    if (known) {
      this.#entries.delete(key);
      this.#entries.set(key, known);
      return { judgement: known, cached: true };
    }
    const shared = this.#size > 0 ? this.#running.get(key) : undefined;
    const running = shared ?? this.#start(key, compute);
    return { judgement: await joined(running, signal), cached: shared !== undefined };
  }

  #start(key: string, compute: (signal: AbortSignal) => Promise<Judgement>): Running {
    const controller = new AbortController();
    const promise = compute(controller.signal).then(
      (judgement) => {
        this.#forget(key, running);
        if (!judgement.uncertain) this.#entries.set(key, judgement);
        return judgement;
      },
      (error: unknown) => {
        this.#forget(key, running);
        throw error;
      },
    );
    // Every waiting caller sees the failure through its own promise; without callers nobody has to.
    promise.catch(() => {});
    const running: Running = {
      promise,
      waiting: 0,
      cancel: (reason) => {
        this.#forget(key, running);
        controller.abort(reason);
      },
    };
    if (this.#size > 0) this.#running.set(key, running);
    return running;
  }

  #forget(key: string, running: Running): void {
    if (this.#running.get(key) === running) this.#running.delete(key);
  }
}

/** Waits for a shared run; it is cancelled only when everyone who waited for it has given up. */
async function joined(running: Running, signal: AbortSignal | undefined): Promise<Judgement> {
  running.waiting++;
  if (!signal) return running.promise;
  let leave = () => {};
  const left = new Promise<never>((_, reject) => {
    leave = () => {
      if (--running.waiting === 0) running.cancel(signal.reason);
      reject(signal.reason);
    };
  });
  signal.addEventListener("abort", leave, { once: true });
  try {
    return await Promise.race([running.promise, left]);
  } finally {
    signal.removeEventListener("abort", leave);
  }
}
