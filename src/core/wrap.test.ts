import fc from "fast-check";
import { expect, test } from "vitest";
import { whet } from "./program.ts";
import { widthOf, wrap } from "./wrap.ts";

test("a long line is broken at its spaces, under the text after its label", () => {
  expect(wrap("error: one two three four", 14)).toBe("error: one two\n  three four");
  expect(wrap("  means  one two three four", 20)).toBe("  means  one two\n         three four");
  expect(wrap("short\n  do     one two three", 20)).toBe("short\n  do     one two\n         three");
});

test("a command stays whole, and so does a word that is too long", () => {
  const command = `   ${whet} train log_path=runs/first learning_rate=0.001`;
  expect(wrap(command, 20)).toBe(command);
  expect(wrap(`ab ${"x".repeat(30)}`, 20)).toBe(`ab\n  ${"x".repeat(30)}`);
});

test("no width, no breaks: a pipe gets lines as they are", () => {
  expect(widthOf({})).toBe(Number.POSITIVE_INFINITY);
  expect(widthOf({ isTTY: true, columns: 132 })).toBe(132);
  expect(widthOf({ isTTY: true })).toBe(80);
  const text = "word ".repeat(100);
  expect(wrap(text, widthOf({ columns: 80 }))).toBe(text);
});

test("whatever the text, its words stay in order and no line is wider than the width", () => {
  const words = fc.array(fc.stringMatching(/^[a-z:]{1,12}$/), { maxLength: 40 });
  fc.assert(
    fc.property(
      words,
      fc.integer({ min: 40, max: 120 }),
      fc.constantFrom("", "  ", "  means  "),
      (list, width, label) => {
        const lines = wrap(label + list.join(" "), width).split("\n");
        expect(lines.flatMap((line) => line.split(/ +/).filter(Boolean))).toEqual(
          [...label.trim().split(" "), ...list].filter(Boolean),
        );
        for (const line of lines) expect(line.length).toBeLessThanOrEqual(width);
      },
    ),
  );
});
