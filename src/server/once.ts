// Carries a piece of work out once per key, whatever number of times it is asked for; a failure may be tried again.

import { Recent } from "./recent.ts";

export class Once<T> {
  /** Keys further back than this are forgotten. */
  readonly #results = new Recent<string, Promise<T>>(4096);

  once(key: string, work: () => Promise<T>): Promise<T> {
    const known = this.#results.get(key);
    if (known) return known;
    const result = work();
    this.#results.set(key, result);
    result.catch(() => this.#results.delete(key));
    return result;
  }
}
