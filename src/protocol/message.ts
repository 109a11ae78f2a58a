// JSON messages: one schema per message, written in wire spelling, read and written as camelCase objects.
//
// A field made with `optional()` may be absent or null on the wire (the protocol treats both alike) and is then absent in the
// decoded object. Unknown fields are dropped.
import { z } from "zod";
import { ProtocolError, type ProtocolIssue } from "./errors.ts";

type Camel<Key extends string> = Key extends `${infer Head}_${infer Tail}` ? `${Head}${Capitalize<Camel<Tail>>}` : Key;
type Simplify<T> = { [K in keyof T]: T[K] } & {};
type Shape = Readonly<Record<string, z.ZodType>>;

/** The camelCase object that a message of this shape decodes to. */
export type Decoded<S extends Shape> = Simplify<
  {
    [K in keyof S & string as undefined extends z.output<S[K]> ? never : Camel<K>]: z.output<S[K]>;
  } & {
    [K in keyof S & string as undefined extends z.output<S[K]> ? Camel<K> : never]?:
      | Exclude<z.output<S[K]>, null | undefined>
      | undefined;
  }
>;

export type MessageSchema<S extends Shape> = z.ZodCodec<z.ZodObject<S>, z.ZodCustom<Decoded<S>, Decoded<S>>>;

/** A field that may be absent or null on the wire. */
export const optional = <T extends z.ZodType>(schema: T) => schema.nullish();

/** A field that decodes to `value` when it is absent or null on the wire. */
export function fallback<T extends z.ZodType>(schema: T, value: z.output<T>) {
  return z.codec(schema.nullish(), z.custom<z.output<T>>(), {
    decode: (given) => given ?? value,
    encode: (given) => given as z.output<T>,
  });
}

/** Whatever a user attached, by name. */
export const anything = z.record(z.string(), z.unknown());

/** Names the message: written by itself, and not part of the object. */
export const kind = <const T extends string>(name: T) =>
  z.codec(z.literal(name).nullish(), z.custom<undefined>(), { decode: () => undefined, encode: () => name });

/** A finite number that is `value` when it is absent. Null is refused: it is what JSON makes of NaN and infinity. */
export function numberOr(value: number) {
  const finite = z.number({
    error: ({ input }) =>
      input === null
        ? "null is what JSON makes of NaN and infinity; send a finite number, or leave the field out"
        : undefined,
  });
  return z.codec(finite.optional(), z.custom<number>(), {
    decode: (given) => given ?? value,
    encode: (given) => given,
  });
}

/** A whole number of up to 64 bits: a number where that is exact, else a bigint. `parseJson` keeps its digits. */
export const exactInteger = z.codec(
  z.union([z.int(), z.string().regex(/^-?\d{1,20}$/, "expected a whole number")]),
  z.custom<number | bigint>(),
  {
    decode(given) {
      if (typeof given === "number") return given;
      const value = Number(given);
      return Number.isSafeInteger(value) ? value : BigInt(given);
    },
    encode(value) {
      if (typeof value === "number" || Number.isSafeInteger(Number(value))) return Number(value);
      throw new ProtocolError("protocol/not-expressible", `${value} does not fit a JSON number. Stay below 2^53.`);
    },
  },
);

/** How the code spells a wire name, and the other way round. */
export const camel = (wire: string): string =>
  wire.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
export const snake = (name: string): string => name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

/** The schema of a JSON object whose keys are snake_case on the wire and camelCase in the code. */
export function message<const S extends Shape>(shape: S): MessageSchema<S> {
  const keys = Object.keys(shape).map((wire) => [wire, camel(wire)] as const);
  const mayBeAbsent = new Set(keys.filter(([wire]) => shape[wire] instanceof z.ZodOptional).map(([wire]) => wire));
  return z.codec(z.object(shape), z.custom<Decoded<S>>(), {
    decode(wireObject) {
      const source = wireObject as Record<string, unknown>;
      const decoded: Record<string, unknown> = {};
      for (const [wire, name] of keys) {
        const value = source[wire];
        if (value === undefined || (value === null && mayBeAbsent.has(wire))) continue;
        decoded[name] = value;
      }
      return decoded as Decoded<S>;
    },
    encode(value) {
      const source = value as Record<string, unknown>;
      const wireObject: Record<string, unknown> = {};
      for (const [wire, name] of keys) if (source[name] !== undefined) wireObject[wire] = source[name];
      return wireObject as z.output<z.ZodObject<S>>;
    },
  }) as unknown as MessageSchema<S>;
}

/** Reads parsed JSON as a message. Throws ProtocolError `protocol/invalid-message`, with one issue per wrong field. */
export function decode<T extends z.ZodType>(schema: T, json: unknown): z.output<T> {
  const result = z.safeDecode(schema, json as z.input<T>);
  if (result.success) return result.data;
  throw invalid(result.error);
}

function invalid(error: z.core.$ZodError): ProtocolError {
  const issues = error.issues.map(
    (issue): ProtocolIssue => ({ loc: issue.path as (string | number)[], msg: issue.message, type: issue.code }),
  );
  const first = issues[0]!;
  const where = first.loc.length > 0 ? `Field "${first.loc.join(".")}"` : "The message";
  const more = issues.length > 1 ? ` (and ${issues.length - 1} more)` : "";
  return new ProtocolError("protocol/invalid-message", `${where} is wrong: ${first.msg}${more}.`, issues);
}

/**
 * The JSON value of a message, ready for JSON.stringify. Throws like `decode` for what the message cannot hold, such as NaN, of which
 * JSON would make null.
 */
export function encode<T extends z.ZodType>(schema: T, value: z.output<T>): unknown {
  const result = z.safeEncode(schema, value);
  if (result.success) return result.data;
  throw invalid(result.error);
}

/** The JSON text of a message. */
export function encodeText<T extends z.ZodType>(schema: T, value: z.output<T>): string {
  return JSON.stringify(encode(schema, value));
}

/** Integers of these keys may have 64 bits, which JSON.parse would round: they are handed over as text (see `exactInteger`). */
const longIntegers = /(?<!\\)"(seq_id|seed)"(\s*:\s*)(-?\d{16,})(?=\s*[,}])/g;

/** Parses JSON text. Throws ProtocolError `protocol/malformed-json`. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text.replace(longIntegers, '"$1"$2"$3"'));
  } catch (error) {
    const seen = text.length === 0 ? "an empty body" : `${text.length} characters`;
    throw new ProtocolError(
      "protocol/malformed-json",
      `The body (${seen}) is not JSON: ${(error as Error).message}. Send a JSON object.`,
      [{ loc: ["body"], msg: (error as Error).message, type: "json_invalid" }],
      { cause: error },
    );
  }
}
