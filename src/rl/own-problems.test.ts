import fc from "fast-check";
import { expect, test } from "vitest";
import { getRenderer } from "../renderers/index.ts";
import { loadTokenizer } from "../tokenizer/index.ts";
import { ownTaskSource, ownTasks, problemsFingerprint, type TrainingProblem } from "./own-problems.ts";

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
  const twice = [...problemsOf(1), ...problemsOf(1)];
  expect(() => ownTasks(twice, limits, renderer)).toThrow(expect.objectContaining({ code: "config/problem-ids" }));
  const long = [{ id: "long", prompt: "word ".repeat(400) }];
  expect(() => ownTasks(long, limits, renderer)).toThrow(expect.objectContaining({ code: "config/prompt-too-long" }));
  const [task] = ownTasks([{ id: "t", prompt: "x", tests: 7 }], limits, renderer);
  await expect(task!.loadTests()).rejects.toMatchObject({ code: "config/problem-tests" });
});

test("the fingerprint changes with a problem's id, its prompt or their order", () => {
  const [a, b] = problemsOf(2);
  const prints = [[a!, b!], [b!, a!], [a!], [{ ...a!, prompt: "other" }, b!]].map(problemsFingerprint);
  expect(new Set(prints).size).toBe(prints.length);
  expect(problemsFingerprint([{ ...a!, source: "elsewhere" }, b!])).toBe(prints[0]);
});
