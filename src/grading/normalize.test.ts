import { deflateSync } from "node:zlib";
import fc from "fast-check";
import { expect, test } from "vitest";
import { writeJson } from "./json.ts";
import { decodePrivateTests, readPickledText } from "./lcb.ts";
import { type NormalizedTests, normalizeLiveCodeBench, normalizeTests } from "./normalize.ts";

/** Tests in short: stdin as [input, expected], calls as [name, arguments, expected, other]. */
const short = ({ tests }: NormalizedTests) =>
  tests.map((test) =>
    test.kind === "stdin"
      ? [test.input, test.expected]
      : [
          test.functionName,
          writeJson(test.args),
          writeJson(test.expected),
          ...(test.expectedAlt === undefined ? [] : [writeJson(test.expectedAlt)]),
        ],
  );

test("LiveCodeBench and Codeforces stdin tests, as text, as a value, and as text inside text", () => {
  const tests = [{ input: "1 2\n", output: "3\n", testtype: "stdin" }];
  for (const raw of [tests, JSON.stringify(tests), JSON.stringify(JSON.stringify(tests))])
    expect(short(normalizeTests(raw))).toEqual([["1 2\n", "3\n"]]);
});

test("LiveCodeBench calls take their name from the row's metadata, which may be a text", () => {
  const raw = [{ input: '[1, 2]\n\n"x"\n', output: "12345678901234567891", testtype: "functional" }];
  for (const metadata of [{ func_name: "f" }, '{"func_name": "f"}'])
    expect(short(normalizeTests(raw, { metadata }))).toEqual([["f", '[[1, 2], "x"]', "12345678901234567891"]]);
  expect(normalizeTests(raw)).toMatchObject({ tests: [], reason: "no_function_name" });
  expect(normalizeTests(raw, { metadata: { func_name: "a.b" } }).reason).toBe("no_function_name");
});

test("the row's function name does not turn stdin tests into calls", () => {
  const { mode } = normalizeTests([{ input: "1", output: "1", testtype: "stdin" }], { metadata: { func_name: "f" } });
  expect(mode).toBe("stdin");
});

test("primeintellect calls: lists as they are, texts as JSON or Python, results kept as text when they are not JSON", () => {
  const raw = [
    { type: "function_call", fn_name: "f", input: [[1, 2], "a"], output: [3] },
    { type: "function_call", fn_name: "f", input: "{'a': True}\n(1, 2)", output: "hello" },
    { type: "function_call", fn_name: "f", input: "1", output: "true" },
  ];
  expect(short(normalizeTests(raw))).toEqual([
    ["f", '[[1, 2], "a"]', "[3]"],
    ["f", '[{"a": true}, [1, 2]]', '"hello"'],
    ["f", "[1]", "true"],
  ]);
});

test("TACO: calls wrap their result, stdin may be a list of lines, and a null name means stdin", () => {
  expect(short(normalizeTests({ fn_name: "g", inputs: [["a", 1]], outputs: [[true]] }))).toEqual([
    ["g", '["a", 1]', "[true]", "true"],
  ]);
  expect(short(normalizeTests({ fn_name: "g", inputs: [[1]], outputs: [[1, 2]] }))).toEqual([["g", "[1]", "[1, 2]"]]);
  expect(short(normalizeTests({ fn_name: null, inputs: [["1", "2"], 3], outputs: [["a", 4], true] }))).toEqual([
    ["1\n2", "a\n4"],
    ["3", "True"],
  ]);
});

test("arguments that are a Python repr are refused for LiveCodeBench and read for TACO", () => {
  const raw = [{ input: "['a', 'b']", output: "true", testtype: "functional", metadata: { func_name: "f" } }];
  expect(normalizeTests(raw).reason).toBe("bad_args");
  expect(short(normalizeTests(raw, { source: "taco" }))).toEqual([["f", '[["a", "b"]]', '"true"']]);
});

test("what cannot be a test is counted, never guessed", () => {
  expect(normalizeTests({ inputs: ["1", "2"], outputs: ["1"] })).toMatchObject({
    tests: [{ input: "1" }],
    dropped: { length_mismatch: 1 },
  });
  expect(normalizeTests({ inputs: ["1"], outputs: [] })).toMatchObject({ tests: [], reason: "no_tests" });
  expect(normalizeTests([{ input: "1", output: null }, { input: "2" }, { input: "3", output: "3" }, 4])).toMatchObject({
    tests: [{ input: "3" }],
    dropped: { null_output: 2, bad_test: 1 },
  });
  expect(
    normalizeTests([
      { input: "1", output: "1" },
      { input: "1", output: "1", fn_name: "f" },
    ]),
  ).toMatchObject({ mode: "stdin", tests: [{ input: "1" }], dropped: { mixed_kinds: 1 } });
  for (const raw of ["not json", 5, null, undefined, "5", '"abc"', true])
    expect(normalizeTests(raw)).toMatchObject({ tests: [], reason: "bad_tests", dropped: { bad_tests: 1 } });
  expect(normalizeTests("[]").reason).toBe("no_tests");
});

/** A pickle of one string, and of {"input_output": string}, as Python's protocol 4 writes them. */
function pickled(text: string, wrapped: boolean): Buffer {
  const string = (value: string) => {
    const bytes = Buffer.from(value);
    const head = Buffer.alloc(5);
    head[0] = 0x58;
    head.writeUInt32LE(bytes.length, 1);
    return Buffer.concat([head, bytes, Buffer.of(0x94)]);
  };
  const body = wrapped
    ? Buffer.concat([Buffer.of(0x7d, 0x94), string("input_output"), string(text), Buffer.of(0x73)])
    : string(text);
  const frame = Buffer.alloc(9);
  frame[0] = 0x95;
  frame.writeBigUInt64LE(BigInt(body.length + 1), 1);
  return Buffer.concat([Buffer.of(0x80, 4), frame, body, Buffer.of(0x2e)]);
}

test("LiveCodeBench's private tests are decoded without an unpickler", () => {
  const text = JSON.stringify([{ input: "1", output: "é", testtype: "stdin" }]);
  for (const wrapped of [false, true]) {
    const encoded = deflateSync(pickled(text, wrapped)).toString("base64");
    expect(decodePrivateTests(encoded)).toBe(text);
    expect(short(normalizeTests(encoded))).toEqual([["1", "é"]]);
  }
  const rows = { public_test_cases: text, private_test_cases: deflateSync(pickled(text, false)).toString("base64") };
  expect(normalizeLiveCodeBench(rows).tests).toHaveLength(2);
});

test("a pickle that does anything else is refused", () => {
  // cos\nsystem\n(S'true'\ntR. : what an unpickler would run.
  expect(readPickledText(Buffer.from("cos\nsystem\n(S'true'\ntR."))).toBeUndefined();
  const good = pickled("[]", true);
  for (let index = 0; index < good.length; index++) expect(readPickledText(good.subarray(0, index))).toBeUndefined();
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 60 }), (bytes) => {
      const text = readPickledText(bytes);
      expect(text === undefined || typeof text === "string").toBe(true);
    }),
  );
});

test("total: any JSON, any value, any text gives an answer", () => {
  const key = fc.constantFrom(
    "input",
    "output",
    "inputs",
    "outputs",
    "testtype",
    "type",
    "fn_name",
    "metadata",
    "func_name",
  );
  const { tree } = fc.letrec((tie) => ({
    leaf: fc.oneof(
      fc.string(),
      fc.integer(),
      fc.constantFrom("functional", "function_call", "f", "[1]", null, true, NaN),
    ),
    tree: fc.oneof(
      { maxDepth: 5 },
      tie("leaf"),
      fc.array(tie("tree"), { maxLength: 4 }),
      fc.dictionary(key, tie("tree"), { maxKeys: 5 }),
    ),
  }));
  fc.assert(
    fc.property(tree, fc.constantFrom(undefined, "taco", "primeintellect", "lcbv5"), tree, (raw, source, metadata) => {
      for (const value of [raw, JSON.stringify(raw)]) {
        const normalized = normalizeTests(value, { source, metadata });
        expect(normalized.tests.length === 0).toBe(normalized.reason !== null);
        expect(new Set(normalized.tests.map(({ kind }) => kind)).size).toBeLessThan(2);
      }
    }),
    { numRuns: 500 },
  );
  fc.assert(fc.property(fc.anything(), (value) => void normalizeTests(value)));
  fc.assert(fc.property(fc.string(), (value) => void normalizeTests(value)));
});
