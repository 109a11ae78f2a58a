import fc from "fast-check";
import { expect, test } from "vitest";
import { visible, visibleLine } from "./visible.ts";

test("what a terminal obeys and what hides or reorders text is shown as its code", () => {
  expect(visible("\u001b[31mred\u0007")).toBe("\\e[31mred\\u{7}");
  expect(visible("a\u202eb\u2066c\u200bd\u{e0041}e\r\n\tf\ud800")).toBe(
    "a\\u{202e}b\\u{2066}c\\u{200b}d\\u{e0041}e\\r\n\tf\\u{d800}",
  );
  expect(visible("naïve 漢字 🙂 print('x')")).toBe("naïve 漢字 🙂 print('x')");
  expect(visibleLine("a\nb\tc")).toBe("a\\nb\\tc");
  expect(visibleLine("x".repeat(10_000_000), 10)).toBe("xxxxxxxxx…");
});

test("no text keeps a control character, and plain text is not touched", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary", maxLength: 60 }), (text) => {
      const shown = visible(text);
      expect(/(?![\t\n])[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u.exec(shown)).toBeNull();
      expect(visible(shown)).toBe(shown);
    }),
  );
});
