// What a function takes and gives, read from the values of its tests and from the hints of Python starter code: for the question in a language that
// wants types. The judge never asks: there the program's own declaration decides.
import type { Signature, ValueType } from "../core/languages/call.ts";
import { type Json, JsonNumber } from "./json.ts";
import type { NormalizedTest } from "./normalize.ts";

const wider: readonly ValueType[] = ["int", "long", "double"];

/** The type that has the values of both; undefined where there is none. */
function both(a: ValueType | undefined, b: ValueType | undefined): ValueType | undefined {
  if (a === undefined || b === undefined) return undefined;
  if (a === "null") return b;
  if (b === "null" || a === b) return a;
  if (wider.includes(a) && wider.includes(b)) return wider[Math.max(wider.indexOf(a), wider.indexOf(b))];
  if (typeof a === "string" || typeof b === "string" || a.kind !== b.kind) return undefined;
  const of = both(a.of, b.of);
  return of && { kind: a.kind, of };
}

const typeOfAll = (values: Iterable<Json>): ValueType | undefined =>
  [...values].map(typeOf).reduce<ValueType | undefined>(both, "null");

function typeOf(value: Json): ValueType | undefined {
  if (value === null) return "null";
  if (typeof value === "boolean") return "bool";
  if (typeof value === "string") return "string";
  if (value instanceof JsonNumber) {
    if (!/^-?\d+$/.test(value.text)) return "double";
    const whole = BigInt(value.text);
    return BigInt.asIntN(32, whole) === whole ? "int" : BigInt.asIntN(64, whole) === whole ? "long" : undefined;
  }
  const isList = Array.isArray(value);
  const of = typeOfAll(isList ? value : value.values());
  return of && { kind: isList ? "list" : "map", of };
}

/** The function that the tests call; null when they call none. */
export function callOf(tests: readonly NormalizedTest[]) {
  const [first] = tests;
  if (first?.kind !== "functional") return null;
  return { functionName: first.functionName, argumentCount: first.args.length, signature: signatureOf(tests) };
}

/** Undefined where a value has no one type. */
function signatureOf(tests: readonly NormalizedTest[]): Signature | undefined {
  const calls = tests.filter((test) => test.kind === "functional");
  const [first] = calls;
  if (!first || calls.some(({ args }) => args.length !== first.args.length)) return undefined;
  const isWrapped = calls.every(({ expectedAlt }) => expectedAlt !== undefined);
  const result = typeOfAll(calls.map(({ expected, expectedAlt }) => (isWrapped ? expectedAlt! : expected)));
  const types = first.args.map((_, index) => typeOfAll(calls.map(({ args }) => args[index]!)));
  if (!result || types.includes(undefined)) return undefined;
  const parameters = types.map((type, index) => ({ name: `arg${index + 1}`, type: type! }));
  return { name: first.functionName, parameters, result };
}

/** With the names and hints that Python starter code gives, where they go with the values. */
export function hinted(signature: Signature, starterCode: string | null): Signature {
  const { name, parameters, result } = signature;
  const [, list = "", returned = ""] =
    new RegExp(`\\bdef\\s+${name}\\s*\\(([^()]*)\\)\\s*(?:->\\s*([^:\\n]+))?:`).exec(starterCode ?? "") ?? [];
  const given = outsideBrackets(list).filter((one) => one !== "self");
  if (given.length !== parameters.length) return signature;
  return {
    name,
    parameters: parameters.map(({ type }, index) => {
      const [own, hint = ""] = given[index]!.replace(/=.*/, "").split(":");
      return { name: own!.trim(), type: both(type, typeOfHint(hint)) ?? type };
    }),
    result: both(result, typeOfHint(returned)) ?? result,
  };
}

const hints: Readonly<Record<string, ValueType>> = { bool: "bool", int: "int", float: "double", str: "string" };

function typeOfHint(hint: string): ValueType {
  const [, name = "", inside] = /^\s*(?:typing\.)?(\w+)\s*(?:\[([\s\S]*)\])?\s*$/.exec(hint) ?? [];
  const last = () => typeOfHint(outsideBrackets(inside ?? "").at(-1) ?? "");
  if (/^list$/i.test(name)) return { kind: "list", of: last() };
  if (/^dict$/i.test(name)) return { kind: "map", of: last() };
  return name === "Optional" ? last() : (hints[name] ?? "null");
}

/** What stands between the commas that no bracket holds. */
function outsideBrackets(text: string): string[] {
  const parts = [""];
  let depth = 0;
  for (const one of text) {
    if (one === "[") depth++;
    if (one === "]") depth--;
    if (one === "," && depth === 0) parts.push("");
    else parts[parts.length - 1] += one;
  }
  return parts.map((part) => part.trim()).filter((part) => part !== "");
}
