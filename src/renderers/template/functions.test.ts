// Python's string methods, against Python: what each gives for random texts, run once through the interpreter's own.
import { spawnSync } from "node:child_process";
import fc from "fast-check";
import { expect, test } from "vitest";
import { ChatTemplate } from "./jinja.ts";

const methods = [
  "m.strip()",
  "m.lstrip('\\n')",
  "m.rstrip('ab')",
  "m.split('a')|join('|')",
  "m.split('a', 1)|join('|')",
  "m.rsplit('a', 1)|join('|')",
  "m.rsplit('ab')|join('|')",
  "m.split()|join('|')",
  "m.replace('ab', 'X')",
  "m.replace('a', 'XY', 1)",
  "m.removeprefix('a')",
  "m.removesuffix('b')",
  "m.find('b')",
  "m.startswith('a')",
  "m.endswith(('a', 'b'))",
  "m.capitalize()",
  "'a' in m",
  "m ~ 1 ~ none ~ 1.0 ~ true ~ [m, 2.5, none]",
  "m|length",
  "m|trim",
  "[m]|string",
];

test("each gives what Python gives", (context) => {
  const texts = fc.sample(
    fc.array(
      fc.constantFrom("a", "b", "ab", " ", "\n", "\t", "\u00a0", "\ufeff", "\u0085", "é", "😀", "'", '"', "\\"),
      { maxLength: 6 },
    ),
    { numRuns: 60, seed: 3 },
  );
  const inputs = texts.map((pieces) => pieces.join(""));
  const program = `
import json, sys
def join(parts): return "|".join(parts)
for m in json.load(sys.stdin):
    print(json.dumps([str(x) for x in [m.strip(), m.lstrip("\\n"), m.rstrip("ab"), join(m.split("a")), join(m.split("a", 1)), join(m.rsplit("a", 1)),
        join(m.rsplit("ab")), join(m.split()), m.replace("ab", "X"), m.replace("a", "XY", 1), m.removeprefix("a"), m.removesuffix("b"), m.find("b"),
        m.startswith("a"), m.endswith(("a", "b")), m.capitalize(), "a" in m, m + "1None1.0True" + str([m, 2.5, None]), len(m), m.strip(), str([m])]]))
`;
  const { stdout, status, error } = spawnSync("python3", ["-c", program], {
    input: JSON.stringify(inputs),
    encoding: "utf8",
  });
  if (error) {
    console.warn(`skipped: python3 cannot be run (${error.message})`);
    return context.skip();
  }
  expect(status).toBe(0);
  const expected = stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as string[]);
  const source = methods.map((method) => `{{ ${method} }}`).join("\u0001");
  const template = new ChatTemplate(`{% set m = messages[0].content %}${source}`, {
    name: "methods",
    controlTokens: ["<|a|>"],
  });
  for (const [index, content] of inputs.entries()) {
    const rendered = template.controls.plain(
      template.render({ messages: [{ role: "user", content }], addGenerationPrompt: false }),
    );
    const found = rendered.split("\u0001");
    for (const [position, method] of methods.entries())
      expect(found[position], `${method} of ${JSON.stringify(content)}`).toBe(expected[index]![position]);
  }
});
