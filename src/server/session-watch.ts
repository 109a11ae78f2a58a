// Which clients are still there. A session that once sent a heartbeat and then nothing for the time limit has ended; one that
// never did (a script with curl) is left alone.

export class SessionWatch {
  readonly #timeoutMs: number;
  readonly #lastBeat = new Map<string, number>();

  constructor(timeoutMs: number) {
    this.#timeoutMs = timeoutMs;
  }

  beat(sessionId: string): void {
    this.#lastBeat.set(sessionId, Date.now());
  }

  /** Work for a session is a sign of life too; it does not start the watch. */
  touch(sessionId: string): void {
    if (this.#lastBeat.has(sessionId)) this.beat(sessionId);
  }

  /** The sessions that have ended since the last call. */
  expired(): string[] {
    const now = Date.now();
    const ended = [...this.#lastBeat].filter(([, at]) => now - at > this.#timeoutMs).map(([id]) => id);
    for (const id of ended) this.#lastBeat.delete(id);
    return ended;
  }
}
