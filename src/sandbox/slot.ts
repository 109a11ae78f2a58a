// One slot as this process sees it: a socket to a supervisor that will run one program, and a way to kill it.
import type { Socket } from "node:net";
import { encodeMessage, type Message, MessageReader } from "./wire.ts";

/** The slot ended or broke while something was expected of it. It says nothing of the program, which may be tried in another slot. */
export class SlotLost extends Error {}

/** Sent every few seconds while a test runs. */
const signOfLife = "H";

export class Slot {
  readonly #socket: Socket;
  readonly #kill: () => void;
  #onMessage: ((message: Message) => void) | undefined;
  #onLost: ((error: SlotLost) => void) | undefined;
  #lost: SlotLost | undefined;
  #wedged = false;
  /** What came while no one was receiving. */
  readonly #backlog: Message[] = [];

  /** `kill` ends the supervisor from outside, for when it does not answer. */
  constructor(socket: Socket, early: Buffer, kill: () => void) {
    this.#socket = socket;
    this.#kill = kill;
    const reader = new MessageReader((message) => {
      if (message.type === "P") this.#lose(`the supervisor failed: ${message.payload.toString()}`);
      else this.#backlog.push(message);
      this.#deliver();
    });
    socket.on("data", (chunk: Buffer) => reader.push(chunk));
    socket.on("error", (error) => this.#lose(error.message));
    socket.on("close", () => this.#lose("its supervisor ended"));
    if (early.length > 0) reader.push(early);
  }

  /** It did not answer in time. */
  get wedged(): boolean {
    return this.#wedged;
  }

  #lose(reason: string): void {
    if (this.#lost) return;
    this.#lost = new SlotLost(reason);
    this.#socket.destroy();
    this.#onLost?.(this.#lost);
  }

  #deliver(): void {
    while (this.#onMessage && this.#backlog.length > 0) this.#onMessage(this.#backlog.shift()!);
  }

  /** Called once when the slot is lost, at once when it already is. */
  whenLost(handler: (error: SlotLost) => void): void {
    this.#onLost = handler;
    if (this.#lost) handler(this.#lost);
  }

  /** A message, then raw bytes that belong to it. */
  send(type: string, payload: Uint8Array, ...raw: readonly Uint8Array[]): void {
    this.#socket.cork();
    this.#socket.write(encodeMessage(type, payload));
    for (const bytes of raw) if (bytes.length > 0) this.#socket.write(bytes);
    this.#socket.uncork();
  }

  /** Hands every message to `handle` until it answers true. Rejects with SlotLost; after `patienceMs` without any message it kills the slot. */
  receive(handle: (message: Message) => boolean, patienceMs: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const finish = (act: () => void) => {
        clearTimeout(timer);
        signal?.removeEventListener("abort", abort);
        this.#onMessage = undefined;
        this.#onLost = undefined;
        act();
      };
      const abort = () => {
        finish(() => reject(signal!.reason));
        this.close();
      };
      const timer = setTimeout(() => {
        this.#wedged = true;
        this.#kill();
        this.#lose(`no answer for ${patienceMs} ms`);
      }, patienceMs);
      this.#onMessage = (message) => {
        timer.refresh();
        if (message.type !== signOfLife && handle(message)) finish(resolve);
      };
      this.#deliver();
      if (!this.#onMessage) return;
      this.whenLost((error) => finish(() => reject(error)));
      if (signal?.aborted) abort();
      else signal?.addEventListener("abort", abort, { once: true });
    });
  }

  /** The supervisor sees the closed socket and ends; the kernel then kills whatever is left of the program. */
  close(): void {
    this.#onLost = undefined;
    this.#lost ??= new SlotLost("closed");
    this.#socket.destroy();
  }
}
