// Server-sent events of one run: all steps so far, then each new one. A stream is a position in what is known, not a queue of what
// happened: a browser that reads slowly is sent the rest when it has caught up, and one that comes back says where it was.
import { randomBytes } from "node:crypto";
import type { ServerResponse } from "node:http";
import { infoOf, pulseOf, shownNames, sliceOf } from "./info.ts";
import type { RunIndex } from "./run-index.ts";

/** Tells positions of this process from those of another that served the same address. */
const processId = randomBytes(4).toString("hex");
const rowsPerEvent = 1000;
/** More than this waiting for a browser: it is slow, and gets the rest later. */
const maxWaitingBytes = 1024 * 1024;
/** A proxy or a sleeping machine must not take silence for an end. */
const silenceMs = 15_000;

export class LiveStream {
  readonly #index: RunIndex;
  readonly #response: ServerResponse;
  #generation = -1;
  #rows = 0;
  #info = "";
  #pulse = "";
  #revision = -1;
  #sentAt = 0;

  constructor(index: RunIndex, response: ServerResponse, lastEventId: string | undefined) {
    this.#index = index;
    this.#response = response;
    const [life, generation, rows] = (lastEventId ?? "").split(".");
    if (life === processId && Number(generation) === index.generation) {
      this.#generation = index.generation;
      this.#rows = Math.min(Number(rows) || 0, index.view.steps.length);
    }
    response.write("retry: 1000\n\n");
  }

  /** Sends what is new, as far as the browser takes it. */
  flush(): void {
    const { view, generation } = this.#index;
    if (this.#isSlow) return;
    if (generation !== this.#generation) {
      this.#generation = generation;
      this.#rows = 0;
      this.#info = "";
      this.#send("reset", {});
    }
    if (view.revision !== this.#revision || !this.#index.isWalking) {
      this.#revision = view.revision;
      this.#info = this.#sendIfNew("info", this.#info, infoOf(this.#index));
    }
    while (this.#rows < view.steps.length && !this.#isSlow) {
      const to = Math.min(view.steps.length, this.#rows + rowsPerEvent);
      const slice = sliceOf(view.steps, shownNames, this.#rows, to);
      this.#rows = to;
      this.#send("rows", slice, `${processId}.${generation}.${to}`);
    }
    this.#pulse = this.#sendIfNew("pulse", this.#pulse, pulseOf(this.#index));
    if (Date.now() - this.#sentAt > silenceMs) {
      this.#response.write(": still here\n\n");
      this.#sentAt = Date.now();
    }
  }

  /** Says that the server ends, and ends. */
  end(): void {
    this.flush();
    this.#send("bye", {});
    this.#response.end();
  }

  get #isSlow(): boolean {
    return this.#response.writableLength > maxWaitingBytes;
  }

  #sendIfNew(event: string, before: string, data: object): string {
    const text = JSON.stringify(data);
    if (text !== before) this.#write(event, text);
    return text;
  }

  #send(event: string, data: object, id?: string): void {
    this.#write(event, JSON.stringify(data), id);
  }

  #write(event: string, text: string, id?: string): void {
    this.#sentAt = Date.now();
    this.#response.write(`event: ${event}\n${id === undefined ? "" : `id: ${id}\n`}data: ${text}\n\n`);
  }
}
