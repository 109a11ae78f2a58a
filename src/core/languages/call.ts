// Calls of functions: what the harness of each language (harness/) needs to know of a program. The program's own declarations say what a function takes
// and returns, so that nothing has to be guessed from the tests.
import { readFileSync } from "node:fs";

/** A function that tests call, and with how many arguments. */
export interface Call {
  name: string;
  count: number;
}

/** Where the report goes: to descriptor 3, or to a file of this name in the program's folder. */
export const reportFile = "whetstone-report";

/** Makes a program call its functions instead of what it does by itself. */
export type MakeCall = (source: string, calls: readonly Call[], report: "descriptor" | "file") => Called;

/** A program that makes a call instead of what it does by itself. */
export interface Called {
  source: string;
  /** Further files in its folder. */
  beside?: Readonly<Record<string, string>>;
  /** What a compiler says where the program has no such function. */
  missing?(said: string): boolean;
}

export const harnessOf = (name: string): string =>
  readFileSync(new URL(`harness/${name}`, import.meta.url), "utf8").replace(/^(?:\/\/.*\n|\n)+/, "");

/** Without comments and with empty strings, so that words are words of the program. Lines stay. */
export const withoutTexts = (source: string): string =>
  source.replaceAll(/\/\*[\s\S]*?\*\/|\/\/.*|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)'/g, (text) =>
    /^["']/.test(text) ? '""' : text.replaceAll(/[^\n]/g, " "),
  );

const letters = (name: string) => name.replaceAll("_", "").toLowerCase();

/** A function's name as the program spells it: also `two_sum` or `TwoSum` where `twoSum` is asked for, as languages have their ways. */
export function spelled(source: string, name: string): string {
  const called = new Set(withoutTexts(source).match(/\b[A-Za-z_]\w*(?=\s*(?:<[^<>()]*>\s*)?\()/g));
  if (called.has(name)) return name;
  return [...called].find((one) => letters(one) === letters(name)) ?? name;
}

/** The texts for 0, 1, … up to `count`, joined by commas. */
export const listed = (count: number, text: (index: number) => string): string =>
  Array.from({ length: count }, (_, index) => text(index)).join(", ");

/** What a function takes and gives. "null": nothing is known, as of the items of an empty list. */
export type ValueType =
  | "null"
  | "bool"
  | "int"
  | "long"
  | "double"
  | "string"
  | { kind: "list" | "map"; of: ValueType };

/** A function as it is asked for. */
export interface Signature {
  name: string;
  parameters: readonly { name: string; type: ValueType }[];
  result: ValueType;
}

/** How a language writes types and functions; keys of maps are texts. */
interface Typed {
  types: Record<"bool" | "int" | "long" | "double" | "string", string>;
  list(of: string): string;
  map(of: string): string;
  parameter(name: string, type: string): string;
  definition(name: string, parameters: string, result: string): string;
}

/** What begins the function that a question asks for, in a language with types. */
export const starterIn =
  (words: Typed) =>
  ({ name, parameters, result }: Signature): string => {
    const write = (type: ValueType): string =>
      typeof type === "string" ? words.types[type === "null" ? "int" : type] : words[type.kind](write(type.of));
    const all = parameters.map((one) => words.parameter(one.name, write(one.type))).join(", ");
    return words.definition(name, all, write(result));
  };
