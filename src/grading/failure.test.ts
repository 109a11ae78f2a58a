import fc from "fast-check";
import { expect, test } from "vitest";
import type { TestOutcome } from "../sandbox/sandbox.ts";
import { cutMiddle, failureOf } from "./failure.ts";
import { normalizeTests } from "./normalize.ts";

const outcome = (more: Partial<TestOutcome>): TestOutcome => ({
  status: "finished",
  stdout: new Uint8Array(),
  stderrTail: "",
  exitCode: 0,
  signal: null,
  wallMs: 1,
  cpuMs: 1,
  maxRssBytes: 0,
  ...more,
});

test("a failure shows input, expectation, output and the end of stderr", () => {
  const [text] = normalizeTests({ inputs: ["1 2\n"], outputs: ["3\n"] }).tests;
  expect(failureOf(4, text!, outcome({ stdout: Buffer.from("4\n"), stderrTail: "oops\n" }), "wrong_answer")).toEqual({
    testIndex: 4,
    input: "1 2\n",
    expected: "3\n",
    printed: "4\n",
    stderr: "oops\n",
    status: "wrong_answer",
  });
  const [call] = normalizeTests({ fn_name: "f", inputs: [[1, "a"]], outputs: [[[2, 12345678901234567891n]]] }).tests;
  const frame = '["l",[["i","7"],["d",[[["s","k"],["n"]]]],["f","0.5"],["b",true]]]';
  expect(failureOf(0, call!, outcome({ frame }), "wrong_answer")).toMatchObject({
    input: '1\n"a"',
    printed: '[7, {"k": null}, 0.5, true]',
  });
  expect(failureOf(0, call!, undefined, "time_limit")).toMatchObject({ printed: "", stderr: "" });
});

test("no part is longer than 2 KiB, whatever the bytes", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 9000 }), fc.string({ unit: "binary", maxLength: 9000 }), (bytes, text) => {
      const test: Parameters<typeof failureOf>[1] = { kind: "stdin", input: text, expected: text };
      const failure = failureOf(0, test, outcome({ stdout: bytes, stderrTail: text }), "wrong_answer");
      for (const part of [failure.input, failure.expected, failure.printed, failure.stderr])
        expect(Buffer.byteLength(part)).toBeLessThanOrEqual(2048);
    }),
  );
});

test("a long text keeps both ends, stderr its end", () => {
  const cut = cutMiddle(`begin${"é".repeat(100_000)}end`);
  expect(cut.startsWith("beginé")).toBe(true);
  expect(cut.endsWith("éend")).toBe(true);
  expect(Buffer.byteLength(cut)).toBeGreaterThan(2000);
  expect(cut).toContain(" … [200008 bytes in all] … ");
  const [text] = normalizeTests({ inputs: [""], outputs: ["x"] }).tests;
  expect(
    failureOf(0, text!, outcome({ stderrTail: `${"a".repeat(4000)}last` }), "runtime_error").stderr.endsWith("alast"),
  ).toBe(true);
});
