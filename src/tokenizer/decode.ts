// Token ids → text. A byte-level vocabulary writes each byte of a token as one printable character; here the bytes are taken
// back and read as UTF-8, so that a character spread over several tokens comes out whole.

export interface ByteTable {
  /** Token strings by id, in the vocabulary's spelling. */
  readonly tokens: readonly (string | undefined)[];
  /** Filled as ids are first seen. */
  readonly bytes: (Uint8Array | undefined)[];
  /** Tokens outside the byte-level spelling: their text is what it is. */
  readonly addedIds: ReadonlySet<number>;
}

/** GPT-2's alphabet: printable Latin-1 characters stand for themselves, the other bytes for U+0100 and up in order. */
const byteOfCharacter: ReadonlyMap<string, number> = (() => {
  const map = new Map<string, number>();
  let next = 0x100;
  for (let byte = 0; byte < 256; byte++) {
    const printable =
      (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || (byte >= 0xae && byte <= 0xff);
    map.set(String.fromCharCode(printable ? byte : next++), byte);
  }
  return map;
})();

const utf8 = new TextEncoder();

/** The bytes of a token; undefined for an id without a token (the padding rows of an embedding matrix). */
export function tokenBytes(table: ByteTable, id: number): Uint8Array | undefined {
  const known = table.bytes[id];
  if (known) return known;
  const token = table.tokens[id];
  if (token === undefined) return undefined;
  const bytes = table.addedIds.has(id) ? utf8.encode(token) : bytesOf(token);
  table.bytes[id] = bytes;
  return bytes;
}

function bytesOf(token: string): Uint8Array {
  const bytes = new Uint8Array(token.length);
  for (let index = 0; index < token.length; index++) {
    const byte = byteOfCharacter.get(token[index]!);
    if (byte === undefined) return utf8.encode(token);
    bytes[index] = byte;
  }
  return bytes;
}

/** The text of a whole sequence. */
export function decodeTokens(table: ByteTable, ids: ArrayLike<number>, skipped: ReadonlySet<number>): string {
  const parts: Uint8Array[] = [];
  for (let index = 0; index < ids.length; index++) {
    const id = ids[index]!;
    const bytes = skipped.has(id) ? undefined : tokenBytes(table, id);
    if (bytes) parts.push(bytes);
  }
  return newDecoder().decode(Buffer.concat(parts));
}

/** Text from tokens as they arrive. A character is given out when its last byte is there. */
export class DecodeStream {
  readonly #bytesOf: (id: number) => Uint8Array | undefined;
  readonly #decoder = newDecoder();

  constructor(bytesOf: (id: number) => Uint8Array | undefined) {
    this.#bytesOf = bytesOf;
  }

  /** The text that this token completes; "" while a character is still open. */
  push(id: number): string {
    const bytes = this.#bytesOf(id);
    return bytes ? this.#decoder.decode(bytes, { stream: true }) : "";
  }

  /** What is left: U+FFFD for a character that never was completed, else "". The stream can be used again from its start. */
  end(): string {
    return this.#decoder.decode();
  }
}

/** A byte order mark is text like any other. */
const newDecoder = () => new TextDecoder("utf-8", { ignoreBOM: true });
