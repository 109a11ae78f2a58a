// Reads asserts with literal arguments as the calls that they make: tests of published sets are often programs (MultiPL-E, HumanEval, HumanEval-X), and
// none of them is run. One assert that is something else, and nothing is read: half of the tests would be another problem.
import { type Json, readJson } from "./json.ts";
import { readPythonLiteral } from "./python-literal.ts";
import { readTypedLiteral } from "./typed-literal.ts";

export interface AssertedCall {
  name: string;
  args: Json[];
  expected: Json;
}

const start =
  /^\s*(?:assert\s*\(|assert_eq!\(|lu\.assertEquals\(|assert\s+|assert\.\w*[eE]qual\w*\(|console\.assert\()\s*(JSON\.stringify\()?\s*([A-Za-z_]\w*)\(/;
const isAssert = /(?:^|[^\w.'"])(?:console\.)?assert(?:_\w+!|\b)(?!\s*=|['"])|\blu\.assert/;
/** Lines that name a library of asserts, and comments. */
const isOther = /\brequire\(|^\s*(?:import|use|#|\/\/)/;
const renamed = /\bcandidate\s*:?=\s*(\w+)|^\s*check\((\w+)\)/m;

/** The calls that a text asserts; undefined when one of its asserts is not a call with a literal result, or it has none. */
export function readAsserts(text: string): AssertedCall[] | undefined {
  const calls: AssertedCall[] = [];
  for (const written of text.split("\n")) {
    const line = withoutRow(written.trim());
    if (!isAssert.test(line) || isOther.test(line)) continue;
    const call = readAssert(line);
    if (!call) return undefined;
    calls.push(call);
  }
  if (calls.length === 0) return undefined;
  const [, assigned, checked] = renamed.exec(text) ?? [];
  const name = assigned ?? checked;
  return calls.map((call) => (call.name === "candidate" && name !== undefined ? { ...call, name } : call));
}

/** A row of the table that MultiPL-E's tests in Go go through, as an assert. */
function withoutRow(line: string): string {
  const cut = line.lastIndexOf(", expected:");
  if (!line.startsWith("{ actual:") || cut < 0) return line;
  const expected = line.slice(cut + ", expected:".length).replace(/\},?$/, "");
  return `assert ${line.slice("{ actual:".length, cut).trim()} == ${expected.trim()}`;
}

function readAssert(line: string): AssertedCall | undefined {
  const head = start.exec(line);
  if (!head) return undefined;
  const [whole, asJson, name] = head;
  const end = closing(line, whole.length);
  const args = end < 0 ? undefined : literal(`[${line.slice(whole.length, end)}]`);
  const after = /^\s*(\))?\s*(?:,|={2,3}|(\.equals\())\s*(JSON\.stringify\()?/.exec(line.slice(end + 1));
  if (!Array.isArray(args) || !after || (asJson === undefined) !== (after[1] === undefined)) return undefined;
  let rest = line.slice(end + 1 + after[0].length).replace(/;?\s*$/, "");
  // Brackets that the assert itself, an equals and a stringify have opened.
  const before = whole
    .slice(0, -name!.length - 1)
    .replace("JSON.stringify(", "")
    .trimEnd();
  const opened = [before.endsWith("("), after[2] !== undefined, after[3] !== undefined];
  for (let left = opened.filter(Boolean).length; left > 0; left--) {
    if (!rest.endsWith(")")) return undefined;
    rest = rest.slice(0, -1).trimEnd();
  }
  // Python's asserts may end with a message.
  const expected = literal(rest) ?? literal(rest.replace(/,\s*(?:"[^"]*"|'[^']*')$/, ""));
  return expected === undefined ? undefined : { name: name!, args, expected };
}

const literal = (text: string): Json | undefined => readJson(text) ?? readPythonLiteral(text) ?? readTypedLiteral(text);

/** Where the bracket closes that was opened before `from`; -1 where it does not. */
function closing(text: string, from: number): number {
  let depth = 1;
  for (let at = from; at < text.length; at++) {
    const character = text[at]!;
    if (character === '"' || character === "'") {
      for (at++; at < text.length && text[at] !== character; at++) if (text[at] === "\\") at++;
    } else if ("([{".includes(character)) depth++;
    else if (")]}".includes(character) && --depth === 0) return at;
  }
  return -1;
}
