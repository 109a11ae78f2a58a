import { expect, test } from "vitest";
import type { LanguageName } from "../core/languages/languages.ts";
import { failedLine } from "./failed-line.ts";

test.each<[LanguageName, string, number | undefined]>([
  [
    "python",
    'Traceback (most recent call last):\n  File "solution.py", line 9, in <module>\n  File "solution.py", line 4, in f\nZeroDivisionError',
    4,
  ],
  [
    "javascript",
    "/box/solution.js:3\n  x.y;\n\nTypeError\n    at f (/box/solution.js:3:5)\n    at node:internal/x:1:2",
    3,
  ],
  ["typescript", 'solution.ts:2:7: Unexpected "="\n', 2],
  ["cpp", "solution.cpp: In function 'int main()':\nsolution.cpp:7:3: error: expected ';'", 7],
  ["rust", "error: expected expression\n --> solution.rs:5:9", 5],
  ["rust", "thread 'main' panicked at solution.rs:8:14:\nindex out of bounds", 8],
  ["go", "./solution.go:6:2: undefined: x", 6],
  [
    "java",
    'Exception in thread "main" java.lang.ArithmeticException: / by zero\n\tat java.base/java.util.List.get(List.java:4)\n\tat TheSolution.main(TheSolution.java:11)',
    11,
  ],
  [
    "lua",
    "/usr/bin/lua5.4: solution.lua:12: attempt to index a nil value\nstack traceback:\n\tsolution.lua:40: in main chunk",
    12,
  ],
  ["python", "Killed", undefined],
])("%s: %j", (language, stderr, line) => {
  expect(failedLine(stderr, language)).toBe(line);
});
