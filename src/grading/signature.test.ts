import { expect, test } from "vitest";
import type { LanguageName } from "../core/languages/languages.ts";
import { languageOf } from "../core/languages/languages.ts";
import { normalizeTests } from "./normalize.ts";
import { callOf, hinted } from "./signature.ts";

const callsOf = (name: string, inputs: unknown[][], outputs: unknown[]) =>
  callOf(normalizeTests({ fn_name: name, inputs, outputs }, { source: "primeintellect" }).tests)!;
const stubs = (signature: NonNullable<ReturnType<typeof callsOf>["signature"]>) =>
  Object.fromEntries(
    (["typescript", "cpp", "rust", "go", "java"] satisfies LanguageName[]).map((name) => [
      name,
      languageOf(name).starter!(signature)
        .replaceAll(/\s*(?:\/\/ YOUR CODE HERE)?\s*\}/g, "")
        .trim(),
    ]),
  );

test("types of a function come from its tests' values, the widest of each", () => {
  const { signature } = callsOf(
    "f",
    [
      [[[1], []], 1, "a"],
      [[[3_000_000_000]], 2.5, ""],
    ],
    [{ a: true }, {}],
  );
  expect(stubs(signature!)).toEqual({
    typescript: "function f(arg1: number[][], arg2: number, arg3: string): Record<string, boolean> {",
    cpp: "map<string, bool> f(vector<vector<long long>> arg1, double arg2, string arg3) {",
    rust: "fn f(arg1: Vec<Vec<i64>>, arg2: f64, arg3: String) -> std::collections::HashMap<String, bool> {",
    go: "func f(arg1 [][]int64, arg2 float64, arg3 string) map[string]bool {",
    java: "class Solution {\n    public Map<String, Boolean> f(long[][] arg1, double arg2, String arg3) {",
  });
});

test("names and what no value says come from Python starter code; what its hints do not fit stays", () => {
  const { signature } = callsOf("f", [[[], 1, null]], [1]);
  const starter =
    "class Solution:\n    def f(self, rows: List[Dict[str, List[float]]], big: bool, word: Optional[str] = None) -> float:";
  expect(stubs(hinted(signature!, starter))).toMatchObject({
    cpp: "double f(vector<map<string, vector<double>>> rows, int big, string word) {",
    java: "class Solution {\n    public double f(Map<String, double[]>[] rows, int big, String word) {",
  });
  expect(hinted(signature!, "def f(a, b): pass")).toBe(signature);
});

test("values of no one type give no signature", () => {
  expect(callsOf("f", [[[1, "a"]]], [1]).signature).toBeUndefined();
  expect(callsOf("f", [[1]], [`1${"0".repeat(25)}`]).signature).toBeUndefined();
  expect(callsOf("f", [[1], [1, 2]], [1, 2]).signature).toBeUndefined();
  expect(callOf(normalizeTests({ inputs: ["1"], outputs: ["1"] }).tests)).toBeNull();
});
