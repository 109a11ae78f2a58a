// Token ids → text. A vocabulary has its own spelling of a token's bytes; here the bytes are taken back and read as UTF-8, so that a
// character spread over several tokens comes out whole.

export interface ByteTable {
  /** Token strings by id, in the vocabulary's spelling. */
  readonly tokens: readonly (string | undefined)[];
  /** Filled as ids are first seen. */
  readonly bytes: (Uint8Array | undefined)[];
  /** Tokens outside the vocabulary's spelling: their text is what it is. */
  readonly addedIds: ReadonlySet<number>;
  readonly spelling: Spelling;
}

/** How a vocabulary writes the bytes of a token. */
export interface Spelling {
  bytesOf(token: string): Uint8Array;
  /** Encoding put a space before the text, which decoding takes away again. */
  dropsFirstSpace: boolean;
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
  const bytes = table.addedIds.has(id) ? utf8.encode(token) : table.spelling.bytesOf(token);
  table.bytes[id] = bytes;
  return bytes;
}

/** Byte-level vocabularies (GPT-2, Qwen, Llama 3, gpt-oss and other tiktoken-style ones). */
export const byteLevelSpelling: Spelling = { bytesOf: byteLevelBytes, dropsFirstSpace: false };

/** SentencePiece vocabularies (Gemma, Llama 2, Phi-3): text with a mark for spaces, and `<0x0A>` for a byte without a token. */
export function sentencePieceSpelling(options: {
  space: string;
  byteFallback: boolean;
  dropsFirstSpace: boolean;
}): Spelling {
  return {
    dropsFirstSpace: options.dropsFirstSpace,
    bytesOf: (token) => {
      const byte = options.byteFallback ? /^<0x([0-9A-Fa-f]{2})>$/.exec(token)?.[1] : undefined;
      return byte === undefined
        ? utf8.encode(token.replaceAll(options.space, " "))
        : Uint8Array.of(Number.parseInt(byte, 16));
    },
  };
}

function byteLevelBytes(token: string): Uint8Array {
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
  const text = newDecoder().decode(Buffer.concat(parts));
  return table.spelling.dropsFirstSpace && text.startsWith(" ") ? text.slice(1) : text;
}

/** Text from tokens as they arrive. A character is given out when its last byte is there. */
export class DecodeStream {
  readonly #bytesOf: (id: number) => Uint8Array | undefined;
  readonly #dropsFirstSpace: boolean;
  readonly #decoder = newDecoder();
  #atStart = true;

  constructor(bytesOf: (id: number) => Uint8Array | undefined, dropsFirstSpace = false) {
    this.#bytesOf = bytesOf;
    this.#dropsFirstSpace = dropsFirstSpace;
  }

  /** The text that this token completes; "" while a character is still open. */
  push(id: number): string {
    const bytes = this.#bytesOf(id);
    return bytes ? this.#first(this.#decoder.decode(bytes, { stream: true })) : "";
  }

  /** What is left: U+FFFD for a character that never was completed, else "". The stream can be used again from its start. */
  end(): string {
    const text = this.#first(this.#decoder.decode());
    this.#atStart = true;
    return text;
  }

  #first(text: string): string {
    if (!this.#atStart || text === "") return text;
    this.#atStart = false;
    return this.#dropsFirstSpace && text.startsWith(" ") ? text.slice(1) : text;
  }
}

/** A byte order mark is text like any other. */
const newDecoder = () => new TextDecoder("utf-8", { ignoreBOM: true });
