// Encrypts files in the age format, version 1, for X25519 recipients: what a client asks for when its weights go through storage
// that it does not trust. See https://age-encryption.org/v1.
import {
  createCipheriv,
  createHmac,
  createPublicKey,
  diffieHellman,
  generateKeyPairSync,
  hkdfSync,
  type KeyObject,
  randomBytes,
} from "node:crypto";
import { createReadStream, createWriteStream } from "node:fs";
import { pipeline } from "node:stream/promises";
import { badRequest } from "./errors.ts";

export interface Recipient {
  raw: Buffer;
  key: KeyObject;
}

const chunkBytes = 64 << 10;
const tagBytes = 16;
const base64 = (bytes: Buffer) => bytes.toString("base64").replace(/=+$/, "");
const derive = (secret: Buffer, salt: Buffer, info: string) => Buffer.from(hkdfSync("sha256", secret, salt, info, 32));

/** Reads an `age1…` public key. */
export function parseRecipient(text: string): Recipient {
  const raw = decodeBech32(text, "age");
  if (raw?.length !== 32)
    throw badRequest(
      "server/age-recipient",
      `"${text.slice(0, 80)}" is no age recipient. Send X25519 public keys, as age-keygen prints them (age1…).`,
    );
  const key = createPublicKey({ format: "jwk", key: { kty: "OKP", crv: "X25519", x: raw.toString("base64url") } });
  return { raw, key };
}

/** Writes `source` encrypted for every recipient to `target`. */
export async function encryptFile(source: string, target: string, recipients: readonly Recipient[]): Promise<void> {
  await pipeline(createReadStream(source), (bytes) => encrypted(bytes, recipients), createWriteStream(target));
}

async function* encrypted(source: AsyncIterable<Buffer>, recipients: readonly Recipient[]): AsyncGenerator<Buffer> {
  const fileKey = randomBytes(16);
  const lines = ["age-encryption.org/v1", ...recipients.flatMap((recipient) => stanza(fileKey, recipient)), "---"];
  const header = lines.join("\n");
  const mac = createHmac("sha256", derive(fileKey, Buffer.alloc(0), "header"))
    .update(header)
    .digest();
  yield Buffer.from(`${header} ${base64(mac)}\n`);
  const nonce = randomBytes(16);
  yield nonce;
  const key = derive(fileKey, nonce, "payload");
  let counter = 0;
  let held = Buffer.alloc(0);
  for await (const part of source) {
    held = Buffer.concat([held, part]);
    // The last chunk is marked, so one is always held back.
    for (; held.length > chunkBytes; held = held.subarray(chunkBytes))
      yield seal(key, chunkNonce(counter++, false), held.subarray(0, chunkBytes));
  }
  yield seal(key, chunkNonce(counter, true), held);
}

/** The file key, wrapped for one recipient. */
function stanza(fileKey: Buffer, recipient: Recipient): string[] {
  const { publicKey, privateKey } = generateKeyPairSync("x25519");
  const share = Buffer.from(publicKey.export({ format: "jwk" }).x!, "base64url");
  const shared = diffieHellman({ privateKey, publicKey: recipient.key });
  const wrapKey = derive(shared, Buffer.concat([share, recipient.raw]), "age-encryption.org/v1/X25519");
  return [`-> X25519 ${base64(share)}`, base64(seal(wrapKey, Buffer.alloc(12), fileKey))];
}

function seal(key: Buffer, nonce: Buffer, plain: Buffer): Buffer {
  const cipher = createCipheriv("chacha20-poly1305", key, nonce, { authTagLength: tagBytes });
  return Buffer.concat([cipher.update(plain), cipher.final(), cipher.getAuthTag()]);
}

/** Eleven bytes of counter, one that marks the last chunk. */
function chunkNonce(counter: number, last: boolean): Buffer {
  const nonce = Buffer.alloc(12);
  nonce.writeUIntBE(counter, 5, 6);
  nonce[11] = last ? 1 : 0;
  return nonce;
}

const alphabet = "qpzry9x8gf2tvdw0s3jn54khce6mua7l";

/** The bytes of a Bech32 text with that prefix, or undefined when it is none. */
function decodeBech32(text: string, prefix: string): Buffer | undefined {
  const lower = text.toLowerCase();
  if ((text !== lower && text !== text.toUpperCase()) || !lower.startsWith(`${prefix}1`)) return undefined;
  const values = [...lower.slice(prefix.length + 1)].map((character) => alphabet.indexOf(character));
  if (values.length < 6 || values.includes(-1)) return undefined;
  const codes = [...prefix].map((character) => character.charCodeAt(0));
  if (checksum([...codes.map((code) => code >> 5), 0, ...codes.map((code) => code & 31), ...values]) !== 1)
    return undefined;
  const bytes: number[] = [];
  let bits = 0;
  let held = 0;
  for (const value of values.slice(0, -6)) {
    held = (held << 5) | value;
    bits += 5;
    if (bits < 8) continue;
    bits -= 8;
    bytes.push((held >> bits) & 255);
    held &= (1 << bits) - 1;
  }
  return bits < 5 && held === 0 ? Buffer.from(bytes) : undefined;
}

const generators = [0x3b6a57b2, 0x26508e6d, 0x1ea119fa, 0x3d4233dd, 0x2a1462b3];

function checksum(values: readonly number[]): number {
  let check = 1;
  for (const value of values) {
    const top = check >>> 25;
    check = ((check & 0x1ffffff) << 5) ^ value;
    for (const [bit, generator] of generators.entries()) if ((top >> bit) & 1) check ^= generator;
  }
  return check >>> 0;
}
