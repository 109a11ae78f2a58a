import fc from "fast-check";
import { expect, test } from "vitest";
import { getRenderer } from "../renderers/index.ts";
import { loadTokenizer } from "../tokenizer/index.ts";
import { checkProblems, ownTaskSource, ownTasks, problemsFingerprint, type TrainingProblem } from "./own-problems.ts";

const renderer = getRenderer("qwen3_instruct", await loadTokenizer("nano-coder"));
const limits = { max_tokens: 64, context_window: 256, min_generation: 32, seed: 3 };
const problemsOf = (count: number): TrainingProblem[] =>
  Array.from({ length: count }, (_, index) => ({ id: `p${index}`, prompt: `say ${index}` }));

test("every epoch goes through all problems once, in an order that the seed decides", async () => {
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 1, max: 12 }), fc.integer({ min: 0, max: 3 }), async (count, epoch) => {
      const source = ownTaskSource(problemsOf(count), limits, renderer);
      const ids = (await source.batch(epoch * count, count)).map(({ id }) => id);
      expect([...ids].sort()).toEqual(
        problemsOf(count)
          .map(({ id }) => id)
          .sort(),
      );
      const again = await ownTaskSource(problemsOf(count), limits, renderer).batch(epoch * count, count);
      expect(again.map(({ id }) => id)).toEqual(ids);
    }),
    { numRuns: 20 },
  );
});

test("a batch across the end of an epoch goes on with the next one", async () => {
  const source = ownTaskSource(problemsOf(3), limits, renderer);
  const whole = await source.batch(0, 9);
  const parts = [...(await source.batch(0, 2)), ...(await source.batch(2, 5)), ...(await source.batch(7, 2))];
  expect(parts.map(({ id, datasetIndex }) => [id, datasetIndex])).toEqual(
    whole.map(({ id, datasetIndex }) => [id, datasetIndex]),
  );
});

test("a question and a conversation are rendered as the model's chat format has them", () => {
  const [question, conversation] = ownTasks(
    [
      { id: "a", prompt: "hello" },
      { id: "b", prompt: [{ role: "user", content: "hello" }], source: "greetings" },
    ],
    limits,
    renderer,
  );
  expect(question!.prompt).toEqual(conversation!.prompt);
  expect([...question!.prompt]).toEqual(renderer.buildGenerationPrompt([{ role: "user", content: "hello" }]));
  expect([question!.source, conversation!.source]).toEqual(["own", "greetings"]);
  expect([question!.question, conversation!.question]).toEqual(["hello", "hello"]);
});

test("what cannot be used is refused by name", async () => {
  const long = [{ id: "long", prompt: "word ".repeat(400) }];
  expect(() => ownTasks(long, limits, renderer)).toThrow(expect.objectContaining({ code: "config/prompt-too-long" }));
  const [task] = ownTasks([{ id: "t", prompt: "x", tests: 7 }], limits, renderer);
  await expect(task!.loadTests()).rejects.toMatchObject({ code: "config/problem-tests" });
});

test.each<[problems: unknown[], code: string, message: string]>([
  [
    [{ id: 7, prompt: "?" }],
    "config/problem-ids",
    'problems[0].id is 7 (number). Give every problem an id that is text and not empty, such as "7".',
  ],
  [[{ prompt: "?" }], "config/problem-ids", "problems[0].id is missing."],
  [[{ id: "", prompt: "?" }], "config/problem-ids", 'problems[0].id is "" (string).'],
  [[null], "config/problem-ids", "problems[0].id is missing."],
  [[...problemsOf(2), ...problemsOf(1)], "config/problem-ids", 'problems[0] and problems[2] both have the id "p0".'],
  [[{ id: "a" }], "config/problem-prompt", 'problems[0].prompt (id "a") is missing.'],
  [[{ id: "a", prompt: [] }], "config/problem-prompt", 'problems[0].prompt (id "a") is [] (object).'],
  [[{ id: "a", prompt: ["hello"] }], "config/problem-prompt", "Give a question as text, or a list of messages"],
  [[{ id: "a", prompt: [{ role: "user" }] }], "config/problem-prompt", 'is [{"role":"user"}] (object).'],
  [
    [{ id: "a", prompt: [{ role: "user", content: 5 }] }],
    "config/problem-prompt",
    "Give a question as text, or a list",
  ],
  [[{ id: "a", prompt: [{ role: "user", content: "x" }, null] }], "config/problem-prompt", "Give a question as text"],
  [[{ id: "a", prompt: "?", source: 3 }], "config/problem-source", 'problems[0].source (id "a") is 3 (number).'],
])("problems that are none are refused before anything is begun: %j", (problems, code, message) => {
  expect(() => checkProblems(problems, "problems")).toThrow(
    expect.objectContaining({ code, message: expect.stringContaining(message) }),
  );
});

test.each([undefined, null, "text", {}, new Map([["a", 1]]), new Set(["a"])])(
  "a list of problems is a list: not %j",
  (given) => {
    for (const list of ["problems", "testProblems"] as const)
      expect(() => checkProblems(given, list)).toThrow(
        expect.objectContaining({ code: "config/no-problems", message: expect.stringContaining(`${list} is `) }),
      );
  },
);

test("the fingerprint changes with a problem's id, its prompt or their order", () => {
  const [a, b] = problemsOf(2);
  const prints = [[a!, b!], [b!, a!], [a!], [{ ...a!, prompt: "other" }, b!]].map(problemsFingerprint);
  expect(new Set(prints).size).toBe(prints.length);
});

const deep = (answer: unknown) => ({ id: "a", prompt: "?", tests: { inputs: ["1"], more: [{ answer }] } });
const cyclic = (name: string) => {
  const value: Record<string, unknown> = { name };
  return Object.assign(value, { self: value });
};

test("the fingerprint changes with every field, however deep and of whatever kind", () => {
  const values = [
    ...[undefined, null, "", "1", 1, 1n, 2n, -1, true, false, Number.NaN, Number.POSITIVE_INFINITY, [], [1], {}],
    ...[{ a: 1 }, new Map([["a", 1]]), new Set([1]), new Set([2]), new Date(1), new Date(2), /a/, /a/i],
    ...[Uint8Array.of(1), Uint8Array.of(2), Float64Array.of(1), new URL("http://a"), new URL("http://b")],
    ...[cyclic("a"), cyclic("b"), "__proto__", JSON.parse('{"__proto__": 1}')],
  ];
  const prints = values.map((value) => problemsFingerprint([deep(value)]));
  const same = prints.map((print) => values[prints.indexOf(print)]);
  expect(same).toEqual(values);
});

test("the fingerprint is that of equal problems, in whatever order their fields come, and of other functions", () => {
  fc.assert(
    fc.property(fc.dictionary(fc.string({ minLength: 1 }), fc.jsonValue()), (fields) => {
      const given = { id: "a", prompt: "?", more: fields, check: () => 1 };
      const turned = Object.fromEntries(Object.entries(structuredClone(fields)).reverse());
      const again = { check: () => 2, more: turned, prompt: "?", id: "a" };
      expect(problemsFingerprint([again])).toBe(problemsFingerprint([given]));
    }),
  );
});
