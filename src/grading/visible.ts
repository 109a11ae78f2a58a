// The tests that a problem's statement shows as examples. A model may be told how these went, and nothing about the others.
import { writeJson } from "./json.ts";
import type { NormalizedTest } from "./normalize.ts";

/** "Sample Input 1:", "-----Output-----", "**Input:** nums = [1]": what follows it, up to the next heading. */
const heading =
  /^[^\w\n]*(?:(?:sample|example)\s*)?(input|output|explanations?|notes?|constraints|examples?|hints?)\b[ \t]*#?\d*[^\w\n[{("'-]*(?:--+)?/gim;

/** Tests of which both the input and, after it, the output stand in the statement as an example's. */
export function visibleTests(statement: string, tests: readonly NormalizedTest[]): NormalizedTest[] {
  const examples = examplesOf(statement.replaceAll(/^\s*```.*$/gm, ""));
  return tests.filter((test) => examples.some((example) => shows(example, test)));
}

interface Example {
  input: string;
  output: string;
}

function examplesOf(statement: string): Example[] {
  const found = [...statement.matchAll(heading)];
  const parts = found.map((match, index) => ({
    name: match[1]!.toLowerCase(),
    text: statement.slice(match.index + match[0].length, found[index + 1]?.index ?? statement.length),
  }));
  return parts.flatMap(({ name, text }, index) => {
    const next = parts[index + 1];
    return name === "input" && next?.name === "output" ? [{ input: text, output: next.text }] : [];
  });
}

function shows({ input, output }: Example, test: NormalizedTest): boolean {
  if (test.kind === "stdin") {
    const wanted = words(test.expected);
    const given = words(test.input);
    if (given.length + wanted.length === 0) return false;
    return isEqual(words(input), given) && isEqual(words(output).slice(0, wanted.length), wanted);
  }
  const [first = ""] = output.trim().split("\n");
  return (
    squeezed(input) === squeezed(test.args.map(writeJson).join(",")) &&
    squeezed(first) === squeezed(writeJson(test.expected))
  );
}

const words = (text: string): string[] => text.split(/\s+/).filter((word) => word !== "");
const isEqual = (some: readonly string[], others: readonly string[]) =>
  some.length === others.length && some.every((word, index) => word === others[index]);
/** Arguments as `nums = [1, 2], k = 'a'` or as JSON, one per line. */
const squeezed = (text: string): string =>
  text
    .trim()
    .replaceAll(/\n+/g, ",")
    .replaceAll(/\b[A-Za-z_]\w*\s*=\s*/g, "")
    .replaceAll("'", '"')
    .replaceAll(/\s+/g, "");
