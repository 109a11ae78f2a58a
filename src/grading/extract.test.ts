import fc from "fast-check";
import { expect, test } from "vitest";
import { extractCode } from "./extract.ts";

const fence = "```";

test.each([
  ["the last closed block wins", `${fence}py\none\n${fence}\n${fence}\ntwo\n${fence}`, "two"],
  ["an answer cut off keeps the block before", `${fence}py\none\n${fence}\n${fence}py\ntw`, "one"],
  ["a restart drops the unclosed block", `${fence}py\none\n${fence}py\ntwo\n${fence}`, "two"],
  ["attributes after the language", `${fence}python {.numberLines}\na = 1\n${fence}`, "a = 1"],
  ["carriage returns", `${fence}py\r\na\r\nb\r\n${fence}`, "a\nb"],
  [
    "a longer fence holds a shorter one",
    `${fence}${fence}\n${fence}\nx\n${fence}\n${fence}${fence}`,
    `${fence}\nx\n${fence}`,
  ],
  ["an empty block is a block", `${fence}\n${fence}`, ""],
  ["closed on the line of the code", `${fence}py\nprint(1)${fence}`, "print(1)"],
  ["in a list item", `1. Do:\n\n   ${fence}py\n   a\n   ${fence}\n2. Done.`, "a"],
  ["in a quote", `> ${fence}py\n> a\n> ${fence}`, "a"],
  ["between tags, which renderers show or drop", `<answer>\n${fence}py\na\n${fence}\n</answer>`, "a"],
  ["hidden in a comment", `${fence}py\nseen\n${fence}\n<!--\n${fence}py\nhidden\n${fence}\n-->`, "seen"],
  ["hidden in a comment only", `<!-- ${fence}py\nhidden\n${fence} -->\nNo idea.`, null],
  ["a comment in the middle of a line hides no block", `x <!--\n${fence}py\nseen\n${fence}\n-->`, "seen"],
  ["hidden in a script", `${fence}\nseen\n${fence}\n<script>\n${fence}\nhidden\n${fence}\n</script>`, "seen"],
  ["indented by four", `${fence}py\nseen\n${fence}\n\n    ${fence}py\n    verbatim\n    ${fence}`, "seen"],
  ["inside tildes", `${fence}py\nseen\n${fence}\n~~~\n${fence}py\nverbatim\n${fence}\n~~~`, "seen"],
  [
    "inside tildes, whatever stands behind them",
    `${fence}py\nseen\n${fence}\n~~~ \u2028\n${fence}py\nverbatim\n${fence}\n~~~`,
    "seen",
  ],
  [
    "a fenced example in a docstring",
    `${fence}py\ndef f():\n    """\n    ${fence}\n    f()\n    ${fence}py\n    """\n    return 1\n${fence}`,
    `def f():\n    """\n    ${fence}\n    f()\n    ${fence}py\n    """\n    return 1`,
  ],
  ["a comment in a program", `${fence}py\na = "<!--"\n<!--\n${fence}\nx`, 'a = "<!--"\n<!--'],
  ["after a byte order mark", `\ufeff${fence}py\na\n${fence}`, "a"],
  ["prose only", "I cannot do it.", null],
  ["never closed", `${fence}py\nprint(1)`, null],
])("%s", (_, response, code) => {
  expect(extractCode(response)).toBe(code);
});

test("a thinking model's drafts do not count", () => {
  const draft = `<think>\n${fence}py\ndraft\n${fence}\n</think>\n`;
  expect(extractCode(`${draft}No idea.`, { thinking: true })).toBeNull();
  expect(extractCode(`${draft}No idea.`)).toBe("draft");
  expect(extractCode(`${draft}${fence}py\nfinal\n${fence}`, { thinking: true })).toBe("final");
  // Without the closing mark the whole text counts: some renderers have taken the thoughts off already.
  expect(extractCode(`${fence}py\nfinal\n${fence}`, { thinking: true })).toBe("final");
});

test("a program may have the mark in it that ends thoughts", () => {
  const program = 'print("</think>")\n# </think>\nprint(2)';
  const block = `${fence}py\n${program}\n${fence}`;
  for (const before of [
    "",
    "thoughts</think>",
    `thoughts\n${fence}py\ndraft\n${fence}\n</think>\n`,
    "a</think>b</think>\n",
  ])
    expect(extractCode(`${before}\n${block}\nSo it is.`, { thinking: true }), before).toBe(program);
  // A draft that is never closed does not swallow the answer, nor one that is begun again.
  for (const draft of [`${fence}py\ndraft`, `${fence}${fence}\ndraft`, `- ${fence}\n  draft`, `~~~\ndraft`])
    for (const again of ["", `${draft}\n</think>\n`])
      expect(extractCode(`${draft}\n</think>\n${again}${block}`, { thinking: true }), draft + again).toBe(program);
  // Nothing of the thoughts counts.
  for (const draft of [block, `${fence}\na\n${fence}\n- ${fence}\n  b`, `${fence}\nb\n${fence}\n${fence}\nopen`])
    for (const rest of ["", "No idea.", `${fence}py\nnever closed`])
      expect(extractCode(`${draft}\n</think>\n${rest}`, { thinking: true }), draft + rest).toBe(null);
});

test("whatever was thought, the program after it is the one that is found", () => {
  const line = fc.constantFrom(
    "a",
    "",
    "</think>",
    `${fence}py`,
    fence,
    `${fence}${fence}`,
    "~~~",
    "<!--",
    "-->",
    "- b",
    "> c",
    "    d",
  );
  const thoughts = fc.array(line, { maxLength: 8 }).map((lines) => lines.join("\n"));
  fc.assert(
    fc.property(thoughts, fc.constantFrom("x = 1", 'x = "</think>"\ny = 2', "</think>"), (before, program) => {
      const answer = `<think>\n${before}\n</think>\n\nHere:\n\n${fence}python\n${program}\n${fence}\n`;
      fc.pre(!/<\/think>.*(?:`{3}|~~~|<!--)/s.test(before));
      expect(extractCode(answer, { thinking: true })).toBe(program);
    }),
    { numRuns: 2000 },
  );
});

test("a fenced program comes back as it was", () => {
  const line = fc.string({ unit: fc.constantFrom("a", " ", "\t", "`", '"', "é", "(", ":"), maxLength: 20 });
  const program = fc
    .array(line, { minLength: 1, maxLength: 12 })
    .map((lines) => ["x = 1", ...lines, "y = 2"].join("\n"))
    .filter((code) => !/^[ \t]*`{3,}[^`]*$/m.test(code));
  fc.assert(
    fc.property(
      program,
      fc.constantFrom("", "python", "py3 title=a"),
      fc.constantFrom("", "text before\n"),
      (code, tag, before) => {
        const lines = extractCode(`${before}${fence}${tag}\n${code}\n${fence}\ntext after`)?.split("\n");
        // Lines of blanks only may lose them; nothing else changes.
        const bare = (all: string[]) => all.map((text) => (text.trim() === "" ? "" : text));
        expect(bare(lines ?? [])).toEqual(bare(code.split("\n")));
      },
    ),
  );
});

test("never throws, and a block is found only when three backticks are there", () => {
  fc.assert(
    fc.property(
      fc.string({ unit: fc.constantFrom("`", "\n", "a", " ", "\r", "<", "/think>"), maxLength: 60 }),
      (text) => {
        const code = extractCode(text, { thinking: true });
        if (code !== null) expect(text).toContain(fence);
      },
    ),
  );
});
