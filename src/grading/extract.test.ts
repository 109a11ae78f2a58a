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
