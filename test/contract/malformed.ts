// Makes broken requests out of good ones, from a seed.
import type { Random } from "../../src/core/random.ts";

export type Body = { type: "json"; bytes: Buffer } | { type: "protobuf"; bytes: Buffer };

type Mutation = (bytes: Buffer, random: Random) => Buffer;

const pick = <T>(random: Random, items: readonly T[]): T => items[random.integer(items.length)]!;

/** Values that no field of the protocol takes. */
const oddValues = [
  "{}",
  "[[[[]]]]",
  "-1",
  "1e308",
  "1e999",
  "9007199254740993",
  "0.5",
  '"\\ud800"',
  '"../../etc/passwd"',
  "[null]",
  '[1,"2",3]',
  '{"__proto__":{"x":1}}',
  "true",
  `"${"x".repeat(5000)}"`,
  `${'{"a":'.repeat(200)}1${"}".repeat(200)}`,
];

const jsonMutations: readonly Mutation[] = [
  // Cut off.
  (bytes, random) => bytes.subarray(0, random.integer(bytes.length)),
  // A field's value replaced by one of another kind.
  (bytes, random) => {
    const fields = [...bytes.toString().matchAll(/"[a-z_]+":("[^"]*"|-?[\d.]+|true|false|\[[^[\]{}]*\])/g)];
    if (fields.length === 0) return Buffer.from("[]");
    const field = pick(random, fields);
    const text = bytes.toString();
    const end = field.index + field[0].length;
    const start = end - field[1]!.length;
    return Buffer.from(text.slice(0, start) + pick(random, oddValues) + text.slice(end));
  },
  // A field left out.
  (bytes, random) => {
    const fields = [...bytes.toString().matchAll(/"[a-z_]+":("[^"]*"|-?[\d.]+),/g)];
    if (fields.length === 0) return Buffer.from("");
    const field = pick(random, fields);
    return Buffer.from(bytes.toString().replace(field[0], ""));
  },
  // Not JSON at all, or not an object.
  (_bytes, random) =>
    Buffer.from(pick(random, ["", "null", "[]", "3", '"text"', "{", "{]", "NaN", "{'a':1}", "\ufeff{}", "{}{}"])),
  (_bytes, random) => Buffer.from(Array.from({ length: 1 + random.integer(60) }, () => random.integer(256))),
  // Nested deeper than any stack.
  (_bytes, random) => Buffer.from(pick(random, ["[", '{"a":']).repeat(1000 + random.integer(20_000))),
  // A byte changed: a quote, a comma, a letter of a key, or half of a character.
  (bytes, random) => {
    const copy = Buffer.from(bytes);
    copy[random.integer(copy.length)] = random.integer(256);
    copy[random.integer(copy.length)] = pick(random, [0, 0x22, 0x2c, 0x7b, 0xff, 0xc3]);
    return copy;
  },
];

const protobufMutations: readonly Mutation[] = [
  (bytes, random) => bytes.subarray(0, random.integer(bytes.length)),
  (_bytes, random) => Buffer.from(Array.from({ length: 1 + random.integer(200) }, () => random.integer(256))),
  // Lengths and tags that promise more than there is.
  (bytes, random) => {
    const copy = Buffer.from(bytes);
    for (let change = 0; change <= random.integer(4); change++) copy[random.integer(copy.length)] = random.integer(256);
    return copy;
  },
  (bytes, random) => {
    const at = random.integer(bytes.length);
    return Buffer.concat([bytes.subarray(0, at), Buffer.alloc(1 + random.integer(12), 0xff), bytes.subarray(at)]);
  },
  (bytes, random) => {
    const at = random.integer(bytes.length);
    return Buffer.concat([bytes.subarray(0, at), bytes.subarray(at + 1 + random.integer(8))]);
  },
  // A message inside a message inside a message …
  (_bytes, random) => Buffer.alloc(random.integer(3000) * 2, Buffer.from([0x1a, 0x7f])),
  () => Buffer.from([0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f]),
];

/** One broken body. */
export function malformed({ type, bytes }: Body, random: Random): Buffer {
  return pick(random, type === "json" ? jsonMutations : protobufMutations)(bytes, random);
}
