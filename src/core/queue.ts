// A bounded queue between two stages: a full one makes the producer wait, an empty one the consumer.

export class BoundedQueue<Item> implements AsyncIterable<Item> {
  readonly capacity: number;
  readonly #items: Item[] = [];
  #closed = false;
  #failure: { error: unknown } | undefined;
  #wake: (() => void)[] = [];

  constructor(capacity: number) {
    this.capacity = Math.max(1, Math.floor(capacity));
  }

  get size(): number {
    return this.#items.length;
  }

  /** Adds an item when there is room. Rejects once the queue has failed; an item pushed after `close` is an error. */
  async push(item: Item): Promise<void> {
    while (!this.#failure && !this.#closed && this.#items.length >= this.capacity) await this.#change();
    if (this.#failure) throw this.#failure.error;
    if (this.#closed) throw new Error("the queue is closed");
    this.#items.push(item);
    this.#notify();
  }

  /** No more items will come; the consumer ends when the queue is empty. */
  close(): void {
    this.#closed = true;
    this.#notify();
  }

  /** Ends both sides with an error; items still in the queue are dropped. */
  fail(error: unknown): void {
    this.#failure ??= { error };
    this.#items.length = 0;
    this.#notify();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Item, void, undefined> {
    for (;;) {
      while (!this.#failure && !this.#closed && this.#items.length === 0) await this.#change();
      if (this.#failure) throw this.#failure.error;
      if (this.#items.length === 0) return;
      const item = this.#items.shift()!;
      this.#notify();
      yield item;
    }
  }

  #change(): Promise<void> {
    return new Promise((resolve) => this.#wake.push(resolve));
  }

  #notify(): void {
    const waiting = this.#wake;
    this.#wake = [];
    for (const resolve of waiting) resolve();
  }
}
