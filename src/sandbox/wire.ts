// Messages between this process and a slot or a zygote: a type byte, a 32-bit little-endian length, a payload (python/slot.py and zygote.py have the
// other ends).

export interface Message {
  /** One character. */
  type: string;
  payload: Buffer;
}

const headBytes = 5;

/** A message ready to be written. */
export function encodeMessage(type: string, payload: Uint8Array): Buffer {
  const message = Buffer.allocUnsafe(headBytes + payload.length);
  message[0] = type.charCodeAt(0);
  message.writeUInt32LE(payload.length, 1);
  message.set(payload, headBytes);
  return message;
}

/** Cuts a byte stream into messages. */
export class MessageReader {
  readonly #onMessage: (message: Message) => void;
  #chunks: Buffer[] = [];
  #held = 0;
  /** Bytes needed before anything can be cut: a head, or a head and its payload. */
  #needed = headBytes;

  constructor(onMessage: (message: Message) => void) {
    this.#onMessage = onMessage;
  }

  push(chunk: Buffer): void {
    this.#chunks.push(chunk);
    this.#held += chunk.length;
    while (this.#held >= this.#needed) {
      const all = this.#chunks.length === 1 ? this.#chunks[0]! : Buffer.concat(this.#chunks);
      this.#chunks = [all];
      const total = headBytes + all.readUInt32LE(1);
      if (all.length < total) {
        this.#needed = total;
        return;
      }
      const message = { type: String.fromCharCode(all[0]!), payload: all.subarray(headBytes, total) };
      this.#chunks = all.length > total ? [all.subarray(total)] : [];
      this.#held = all.length - total;
      this.#needed = headBytes;
      this.#onMessage(message);
    }
  }
}
