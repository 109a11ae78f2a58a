// The values of the Jinja interpreter, made and read the way Python's would be. Its classes are not exported, so they are taken from
// values that it makes.
import { Environment } from "@huggingface/jinja";
import { JsonNumber } from "./json-values.ts";

/** What the interpreter computes with. */
export interface Value {
  readonly type: string;
  readonly value: unknown;
  __bool__(): { value: boolean };
  toString(): string;
}

type ValueClass = new (value?: unknown) => Value;
type NativeFunction = (args: Value[]) => Value;

const samples = new Environment();
const classOf = (value: unknown) => value!.constructor as ValueClass;
const sample = (value: unknown) => classOf(samples.set(`sample ${samples.variables.size}`, value));
const StringValue = sample("");
const IntegerValue = sample(0);
const FloatValue = sample(0.5);
const BooleanValue = sample(true);
const NullValue = sample(null);
const ArrayValue = sample([]);
const ObjectValue = sample({});
const FunctionValue = classOf(samples.lookupVariable("namespace"));

export const makeString = (text: string): Value => new StringValue(text);
export const makeBoolean = (value: boolean): Value => new BooleanValue(value);
export const makeArray = (items: readonly Value[]): Value => new ArrayValue(items);
/** A function that sees values, not what they hold, so that `1` and `1.0` or a missing value stay apart. */
export const makeFunction = (native: NativeFunction): Value => new FunctionValue(native);

export const isString = (value: Value | undefined): value is Value & { value: string } => value?.type === "StringValue";
export const isUndefined = (value: Value | undefined): boolean =>
  value === undefined || value.type === "UndefinedValue";
export const isNull = (value: Value): boolean => value.type === "NullValue";
export const isArray = (value: Value): value is Value & { value: Value[] } => value instanceof ArrayValue;
export const isObject = (value: Value): value is Value & { value: Map<string, Value> } => value.value instanceof Map;
export const isKeywords = (value: Value | undefined): value is Value & { value: Map<string, Value> } =>
  value?.type === "KeywordArgumentsValue";
export const isNumeric = (value: Value): boolean =>
  value.type === "IntegerValue" || value.type === "FloatValue" || value.type === "BooleanValue";
export const isFloat = (value: Value): boolean => value.type === "FloatValue";
export const isBoolean = (value: Value): boolean => value.type === "BooleanValue";

export function makeNumber(value: number, float: boolean): Value {
  return float ? new FloatValue(value) : new IntegerValue(value);
}

/** JavaScript or JSON values as the interpreter's. Every text, keys too, goes through `spell`. */
export function toValue(input: unknown, spell: (text: string) => string): Value {
  if (input === null) return new NullValue(null);
  if (typeof input === "string") return new StringValue(spell(input));
  if (typeof input === "boolean") return new BooleanValue(input);
  if (typeof input === "number") return makeNumber(input, !Number.isInteger(input));
  if (input instanceof JsonNumber) return numberOf(input.text);
  if (Array.isArray(input)) return new ArrayValue(input.map((item) => toValue(item, spell)));
  const entries = input instanceof Map ? [...(input as Map<string, unknown>)] : Object.entries(input as object);
  return new ObjectValue(
    new Map(entries.filter(([, item]) => item !== undefined).map(([key, item]) => [spell(key), toValue(item, spell)])),
  );
}

function numberOf(text: string): Value {
  const value = Number(text);
  if (/[.eE]/.test(text)) return new FloatValue(value);
  const integer = new IntegerValue(value);
  // Python's integers have no limit.
  if (!Number.isSafeInteger(value))
    Object.defineProperty(integer, "toString", { value: () => BigInt(text).toString() });
  return integer;
}
