// Files encrypted here are read by another reading of the format, which is itself held against files that rage (pyrage 1.4) made.
import { execFileSync } from "node:child_process";
import { createDecipheriv, createHmac, createPrivateKey, createPublicKey, diffieHellman, hkdfSync } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { foldersInMemory } from "../../test/support/folders.ts";
import { encryptFile, parseRecipient } from "./age.ts";

const newFolder = foldersInMemory();

const identity = "AGE-SECRET-KEY-15ZGU0PPLTRK2V7PAVA76WSPUA93SNMSN5R3JQ64N3RFZDG77FLGQS9N3X4";
const secret = Buffer.from("a091c7843f58eca6783d677da7403ce96309ee13a0e3206ab388d226a3de4fd0", "hex");
const recipient = "age1c75frygefhx7wp0uxfygmzhnv6e7ea6xy27s0ffqnjlss9erzesqta7sf9";
const stranger = "age14kfg304570psntfrhtfeekdq8jypq0xcypgauwrdd8a5hl7x3yns5d6nfu";
const privateKey = createPrivateKey({
  key: Buffer.concat([Buffer.from("302e020100300506032b656e04220420", "hex"), secret]),
  format: "der",
  type: "pkcs8",
});
const publicKey = Buffer.from(createPublicKey(privateKey).export({ format: "jwk" }).x!, "base64url");

const derive = (key: Buffer, salt: Buffer, info: string) => Buffer.from(hkdfSync("sha256", key, salt, info, 32));

function open(key: Buffer, nonce: Buffer, sealed: Buffer): Buffer {
  const cipher = createDecipheriv("chacha20-poly1305", key, nonce, { authTagLength: 16 });
  cipher.setAuthTag(sealed.subarray(-16));
  return Buffer.concat([cipher.update(sealed.subarray(0, -16)), cipher.final()]);
}

/** The text of a file for `secret`. Throws where anything in it was changed. */
function decrypt(file: Buffer): Buffer {
  const headEnd = file.indexOf("\n---") + 4;
  const lineEnd = file.indexOf("\n", headEnd);
  const lines = file.subarray(0, headEnd).toString("latin1").split("\n");
  if (lines[0] !== "age-encryption.org/v1") throw new Error("not age");
  const shares = lines.flatMap((line, at) => (line.startsWith("-> X25519 ") ? [[line.slice(10), lines[at + 1]!]] : []));
  const fileKey = shares
    .map(([share, sealed]) => {
      const raw = Buffer.from(share!, "base64");
      const theirs = createPublicKey({
        format: "jwk",
        key: { kty: "OKP", crv: "X25519", x: raw.toString("base64url") },
      });
      const shared = diffieHellman({ privateKey, publicKey: theirs });
      const key = derive(shared, Buffer.concat([raw, publicKey]), "age-encryption.org/v1/X25519");
      try {
        return open(key, Buffer.alloc(12), Buffer.from(sealed!, "base64"));
      } catch {
        return undefined;
      }
    })
    .find((key) => key !== undefined);
  if (!fileKey) throw new Error("not for this key");
  const mac = createHmac("sha256", derive(fileKey, Buffer.alloc(0), "header"))
    .update(file.subarray(0, headEnd))
    .digest("base64")
    .replace(/=+$/, "");
  if (file.subarray(headEnd, lineEnd).toString() !== ` ${mac}`) throw new Error("the header was changed");
  const payload = file.subarray(lineEnd + 1);
  const key = derive(fileKey, payload.subarray(0, 16), "payload");
  const plain: Buffer[] = [];
  const size = (64 << 10) + 16;
  for (let at = 16, counter = 0; at < payload.length || counter === 0; at += size, counter++) {
    const nonce = Buffer.alloc(12);
    nonce.writeUIntBE(counter, 5, 6);
    nonce[11] = at + size >= payload.length ? 1 : 0;
    plain.push(open(key, nonce, payload.subarray(at, at + size)));
  }
  return Buffer.concat(plain);
}

async function encrypted(plain: Uint8Array, recipients: readonly string[]): Promise<Buffer> {
  const folder = newFolder();
  writeFileSync(join(folder, "plain"), plain);
  await encryptFile(join(folder, "plain"), join(folder, "sealed"), recipients.map(parseRecipient));
  return readFileSync(join(folder, "sealed"));
}

const madeByRage = [
  [
    "",
    "YWdlLWVuY3J5cHRpb24ub3JnL3YxCi0+IFgyNTUxOSAxekh1cHhTN2I4MDJMdWF2aXRSZFYxSWNwZ0J5SDZrRG9KVG5vUU4wMEYwCndvL1MxQWtkRVRCSE5qLzN6bnl0QnhKS3BHcGk5M29zdjVBZ1JhVlBwVEUKLT4gVzpeYmc3Mi1ncmVhc2UgI2tpJWInIEU2VFAgdQpPTk02THZraGtmNWhWMzg2WXppT2NqU3EyZnVqUDVmcUhRdzJGbE0KLS0tIGhRNUlCZy96MldhNnVQekdpR0JqUEtsNVFSZjV1cXIrY2tUcGQ2YVAxeGMKWJ3AM8Pd9AQ37U0Y+XPIrZUBYYkapcZ6xKoD3PFqSgg=",
  ],
  [
    "weights, in the words of another implementation\n",
    "YWdlLWVuY3J5cHRpb24ub3JnL3YxCi0+IFgyNTUxOSBTdFQ5aE1CY2NZTE5hMmZjRDVOcyt4ZHA0T3Z4V0thZlYxRkpHWVBEYkFZCjV6RUpQaVVHdnBEZGlJbGJEWEdIdTZJeTgyUkN3MXZPRDJYM0ZieFlRMXMKLT4gW2xrSzEtZ3JlYXNlIGxsX0EKVWxHTWw2am5tS25IellOZWRCZ0JMVmk1RXBIS1NGVitCdVBveDg5dHBEN1h1NXN2Mk5xVUdRN0dVcHNXeVhTRwpSR1puVTF6NGx3VGNDa1hhRER0cC82Rk1JRWJWODQ3MgotLS0gTDRXbEJ3Y21tQnJ6KzRZQndqd3pnU2pCVnBnc1YwcVNaSTQvMGpzZmNmVQo1mLZFjkOz7CyOmnnBJSY4gIqLVd6qJV64cAHJvFW6DvpNpMYPShpLwGYKPlFb+ix+Ou36C1iumnXhTn6gySrHLTMp7lpAzbNMPA3h/p1JUg==",
  ],
  [
    "for two",
    "YWdlLWVuY3J5cHRpb24ub3JnL3YxCi0+IFgyNTUxOSByc3c5eFdqMzgrekFGZ2daMVZ1Zjc5TEx6VU5XWG04WXBmcFJEWEFmaVZzCkJyRCtSY2VPOTAzNU9MdGNQMVhvL3pLaUEzczhRREZWSXZYTytLUUl3YncKLT4gWDI1NTE5IGJGUTV3WWRLODBQQXMreXBqcHNLZTc1ZkVMb1ZRdGYvNFNrY1BkYldwbk0Kb3hBR1hoU2Zid3JhQmZTZHRjbjlVRGZaL3V1NytPWi8wdDc0NlJGcU1uVQotPiBGSS1ncmVhc2UgKApSdGl4bG94cHdXVWF5RWpnQ3Z5MUloSUZNb25mZFZiRHpGWExzNGZIOEl3bnY2UTJPQUNURmxKd0syQkVzL3o3CmYrQ1l3Rm4vMS8xTXpadU5Sd2l2K09oM3A3TDlmaXcxZkx5V2V6OGpob0h0NzRsRlVHcmdFTG5nNXcKLS0tIDgvUlVmbFBVa1BFcEVVbGNIRThwMUVXZmFoSVlNaEtyL0h1WVNxbWxkV28KTc3fKY8SA+uJU0b3Pz/Fxe6jOBadbtdocm7Bt9iVnAB5chuLllN4",
  ],
] as const;

test.each(madeByRage)("a file that rage made of %j is read", (text, file) => {
  expect(decrypt(Buffer.from(file, "base64")).toString()).toBe(text);
});

const chunk = 64 << 10;
test.each([0, 1, 15, chunk - 1, chunk, chunk + 1, 2 * chunk, 3 * chunk + 5])("%i bytes come back", async (size) => {
  const plain = Buffer.alloc(size, "weights ");
  const file = await encrypted(plain, [recipient]);
  expect(decrypt(file).equals(plain)).toBe(true);
  expect(file.includes("weights ")).toBe(false);
});

test("any bytes, for any number of recipients, are read by each and by nobody else; a changed bit is seen", async () => {
  await fc.assert(
    fc.asyncProperty(fc.uint8Array({ maxLength: 300 }), fc.nat(9), fc.nat(), async (plain, others, flip) => {
      const file = await encrypted(plain, [...Array.from({ length: others }, () => stranger), recipient]);
      expect(decrypt(file).equals(plain)).toBe(true);
      const changed = Buffer.from(file);
      changed[flip % file.length]! ^= 1;
      expect(() => decrypt(changed)).toThrow();
    }),
    { numRuns: 25 },
  );
  expect(() => decrypt(Buffer.from("age-encryption.org/v1\n--- x\n"))).toThrow();
  const file = await encrypted(Buffer.from("x"), [stranger]);
  expect(() => decrypt(file)).toThrow("not for this key");
  // Nothing is used twice.
  expect(await encrypted(Buffer.from("x"), [recipient])).not.toEqual(await encrypted(Buffer.from("x"), [recipient]));
});

describe("recipients", () => {
  test("are read as Bech32 says, in either case", () => {
    expect(parseRecipient(recipient).raw.equals(publicKey)).toBe(true);
    expect(parseRecipient(recipient.toUpperCase()).raw.equals(publicKey)).toBe(true);
  });

  test.each([
    ["", "nothing"],
    ["age1", "a prefix alone"],
    [identity, "a secret key"],
    [recipient.replace("c75", "c57"), "two letters swapped"],
    [recipient.slice(0, -1), "a letter short"],
    [`${recipient}q`, "a letter more"],
    [`A${recipient.slice(1)}`, "mixed case"],
    ["age1qqqsyqcyq5rqwzqfpg9scrgwpugpzysn", "too short a key"],
    ["ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJtUsUZ9uS", "an SSH key"],
  ])("%j is refused: %s", (text) => {
    expect(() => parseRecipient(text)).toThrow(expect.objectContaining({ code: "server/age-recipient" }));
  });
});

const python = join(homedir(), ".cache/whetstone/compat/cookbook/bin/python");
test.skipIf(!existsSync(python))(
  "rage itself reads what is written here (where scripts/compat/cookbook.ts installed it)",
  async () => {
    const folder = newFolder();
    for (const size of [0, 5, chunk, chunk + 1, 200_000]) {
      const plain = Buffer.alloc(size, "weights ");
      writeFileSync(join(folder, "sealed"), await encrypted(plain, [stranger, recipient]));
      const program =
        "import sys, pyrage; k = pyrage.x25519.Identity.from_str(sys.argv[1]); sys.stdout.buffer.write(pyrage.decrypt(open(sys.argv[2], 'rb').read(), [k]))";
      const read = execFileSync(python, ["-c", program, identity, join(folder, "sealed")], { maxBuffer: 1 << 20 });
      expect(read.equals(plain)).toBe(true);
    }
  },
);
