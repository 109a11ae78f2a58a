import fc from "fast-check";
import { snappyUncompress } from "hyparquet";
import { snappyCompress } from "hyparquet-writer/src/snappy.js";
import { expect, test } from "vitest";
import { SnappyUnpacker, WindowError } from "./snappy-stream.ts";

fc.configureGlobal({ seed: 1 });

function unpack(block: Uint8Array, chunkBytes: number): Buffer {
  const pieces: Buffer[] = [];
  const unpacker = new SnappyUnpacker((bytes) => pieces.push(Buffer.from(bytes)));
  for (let at = 0; at < block.length; at += chunkBytes) unpacker.push(block.subarray(at, at + chunkBytes));
  unpacker.finish();
  return Buffer.concat(pieces);
}

test("unpacks what the compressor packed, in chunks of any size", () => {
  const parts = fc.oneof(
    fc.uint8Array({ maxLength: 300 }),
    fc.nat(255).map((byte) => new Uint8Array(200).fill(byte)),
  );
  fc.assert(
    fc.property(fc.array(parts, { maxLength: 20 }), fc.integer({ min: 6, max: 400 }), (pieces, chunkBytes) => {
      const original = Buffer.concat([...pieces, ...pieces]);
      expect(unpack(snappyCompress(original), chunkBytes).equals(original)).toBe(true);
    }),
  );
});

test("more than the window goes through", () => {
  // Pseudo-random words: literals and copies of every distance up to 64 KiB.
  let state = 1;
  const words = Array.from({ length: 200_000 }, () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return `w${(state >>> 16) % 5000} `;
  });
  const once = Buffer.from(words.join(""));
  const original = Buffer.concat([once, once, once, once, once]);
  expect(original.length).toBeGreaterThan(5_000_000);
  const block = snappyCompress(original);
  expect(unpack(block, 100_000).equals(original)).toBe(true);
  const whole = new Uint8Array(original.length);
  snappyUncompress(block, whole);
  expect(Buffer.from(whole).equals(original)).toBe(true);
});

test("a long literal goes through in pieces", () => {
  const original = Buffer.alloc(5_000_000, "incompressible?");
  const length = original.length;
  const varint = [(length & 0x7f) | 0x80, ((length >> 7) & 0x7f) | 0x80, ((length >> 14) & 0x7f) | 0x80, length >> 21];
  const count = length - 1;
  const tag = [62 << 2, count & 0xff, (count >> 8) & 0xff, (count >> 16) & 0xff];
  const block = Buffer.concat([Buffer.from([...varint, ...tag]), original]);
  expect(unpack(block, 70_000).equals(original)).toBe(true);
});

test("a copy from beyond the window, and blocks that are broken, are refused", () => {
  const length = Buffer.from([0x84, 0x80, 0x80, 0x03]);
  const literal = Buffer.concat([Buffer.from([62 << 2, 0xff, 0xff, 0x1f]), Buffer.alloc(2 ** 21)]);
  // Three literals of two megabytes, then a copy of four bytes from the very start.
  const far = Buffer.concat([length, literal, literal, literal, Buffer.from([0x0f, 0, 0, 0x60, 0])]);
  expect(() => unpack(far, 1 << 20)).toThrow(WindowError);
  const block = snappyCompress(Buffer.from("abcabcabcabcabcabcabc"));
  expect(() => unpack(block.subarray(0, -2), 8)).toThrow(/ends after/);
  expect(() => unpack(Buffer.from([4, 0x01 | (0 << 2), 9]), 8)).toThrow(/before its start/);
  expect(() => unpack(Buffer.from([0xff, 0xff, 0xff, 0xff, 0xff, 0xff]), 8)).toThrow(/no length/);
});
