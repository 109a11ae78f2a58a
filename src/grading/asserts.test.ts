import { expect, test } from "vitest";
import { readAsserts } from "./asserts.ts";
import { writeJson } from "./json.ts";
import { normalizeTests } from "./normalize.ts";

const shown = (text: string) =>
  readAsserts(text)?.map(
    ({ name, args, expected }) => `${name}(${args.map(writeJson).join(", ")}) = ${writeJson(expected)}`,
  );

test.each([
  [
    "MultiPL-E in JavaScript",
    "const assert = require('node:assert');\n\nfunction test() {\n  let candidate = has_close;\n  assert.deepEqual(candidate([1.0, 2.0], 0.3),true);\n  assert.deepEqual(candidate(\"a)\", 'b'),[\"x\", null]);\n}\n\ntest();",
    ["has_close([1.0, 2.0], 0.3) = true", 'has_close("a)", "b") = ["x", null]'],
  ],
  [
    "HumanEval in Python",
    "def check(candidate):\n    assert candidate([1, 2], {'k': (1, True)}) == -3\n    assert candidate('it\\'s') == None, \"message\"\n\ncheck(add)",
    ['add([1, 2], {"k": [1, true]}) = -3', 'add("it\'s") = null'],
  ],
  [
    "HumanEval-X in JavaScript",
    "const testAdd = () => {\n  console.assert(add(2, 3) === 5)\n  console.assert(JSON.stringify(add([1], 2)) === JSON.stringify([1, 2]))\n}\ntestAdd()",
    ["add(2, 3) = 5", "add([1], 2) = [1, 2]"],
  ],
  [
    "MultiPL-E in C++",
    '}\nint main() {\n    auto candidate = near;\n    assert(candidate((std::vector<float>({(float)1.0f, (float)-2.5f})), (0.3f)) == (true));\n    assert(candidate((std::map<std::string,long>({{"a", 1}})), (std::vector<std::vector<std::string>>())) == (std::vector<std::string>({(std::string)"x(,", (std::string)"y"})));\n}',
    ["near([1.0, -2.5], 0.3) = true", 'near({"a": 1}, []) = ["x(,", "y"]'],
  ],
  [
    "MultiPL-E in Java",
    '    public static void main(String[] args) {\n    assert(near((new ArrayList<Float>(Arrays.asList((float)1.0f))), (5l)) == (true));\n    assert(near(("a"), (new HashMap<String,Long>(Map.of("k", 3l)))).equals((Pair.with(1l, "b"))));\n    assert(near((new ArrayList<Long>(Arrays.asList()))).equals(Optional.empty()));\n    }',
    ["near([1.0], 5) = true", 'near("a", {"k": 3}) = [1, "b"]', "near([]) = null"],
  ],
  [
    "MultiPL-E in Rust",
    'fn main() {\n    let candidate = near;\n    assert_eq!(candidate(vec![1.0, 2.0], 0.3), true);\n    assert_eq!(candidate(String::from("a"), HashMap::from([(String::from("k"), 1)])), vec![Some("b".to_string()), None]);\n    assert_eq!(candidate(Vec::<isize>::new()), (1, -2));\n}',
    ["near([1.0, 2.0], 0.3) = true", 'near("a", {"k": 1}) = ["b", null]', "near([]) = [1, -2]"],
  ],
  [
    "MultiPL-E in Go",
    'func TestNear(t *testing.T) {\n  candidate := near\n\ttype test struct {\n\t\tactual   bool\n\t\texpected bool\n\t}\n   tests := []test{\n     { actual: candidate([]float64{1.0, 2.0}, 0.3), expected: true },\n     { actual: candidate([][]int{[]int{1}, []int{}}, map[string]int{"a": 1}), expected: []interface{}{"b", nil} },\n   }\n',
    ["near([1.0, 2.0], 0.3) = true", 'near([[1], []], {"a": 1}) = ["b", null]'],
  ],
  [
    "MultiPL-E in Lua",
    "lu = require('luaunit')\n\nfunction test_humaneval()\nlocal candidate = near\n    lu.assertEquals(candidate({1.0, 2.0}, 0.3), true)\n    lu.assertEquals(candidate({{1}, {}}, nil), {['a'] = 1})\n    lu.assertEquals(candidate({[\"a\"] = 1}), 'x')\nend\n\nos.exit(lu.LuaUnit.run())",
    ["near([1.0, 2.0], 0.3) = true", 'near([[1], []], null) = {"a": 1}', 'near({"a": 1}) = "x"'],
  ],
])("%s: asserts become calls", (_, text, calls) => {
  expect(shown(text)).toEqual(calls);
});

test.each([
  "assert f(x) == 1",
  "assert(f(std::sort(1)) == (2));",
  "assert(f(a) == (2));",
  "assert_ne!(f(1), 2);",
  "lu.assertEquals(f({1, a = 2}), 3)",
  "{ actual: f(x), expected: 3 },",
  "assert abs(f(1) - 0.5) < 1e-6",
  "assert f(1) == 1\nassert isinstance(f(2), int)",
  "assert f(1) == g(1)",
  "console.assert(f(1) === 1 || f(1) === 2)",
  "assert.deepEqual(f(1, 2)",
  "f(1)",
  "",
])("%j is not read in part", (text) => {
  expect(readAsserts(text)).toBeUndefined();
});

test("tests that are asserts are those calls; a wrapped list stays a list", () => {
  const { tests, reason } = normalizeTests("  let candidate = f;\n  assert.deepEqual(candidate(1),[2]);\n");
  expect(reason).toBeNull();
  expect(tests).toEqual([
    { kind: "functional", functionName: "f", args: [expect.anything()], expected: [expect.anything()] },
  ]);
  expect(normalizeTests(["assert f(1) == 2", "assert f(2) == 3"]).tests).toHaveLength(2);
  expect(normalizeTests("assert f(x) == 2").reason).toBe("bad_tests");
  expect(normalizeTests("def check(candidate):\n  assert candidate(1) == 2").reason).toBe("no_function_name");
});
