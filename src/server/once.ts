// Carries a piece of work out once per key, whatever number of times it is asked for; a failure may be tried again.

/** Keys further back than this are forgotten. */
const remembered = 4096;

export class Once<T> {
  readonly #results = new Map<string, Promise<T>>();

  once(key: string, work: () => Promise<T>): Promise<T> {
    const known = this.#results.get(key);
    if (known) return known;
    const result = work();
    this.#results.set(key, result);
    result.catch(() => this.#results.delete(key));
    if (this.#results.size > remembered) this.#results.delete(this.#results.keys().next().value!);
    return result;
  }
}
