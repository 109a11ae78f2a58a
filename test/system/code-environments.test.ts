// env=repair and env=python with the real grader and jail, and a model whose answers are written here: what it is told of its programs,
// and that of hidden tests it is told nothing.
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { createGrader, type Grader, openSandbox } from "whetstone/grading";
import { codeEnvironment } from "../../src/rl/environment/code.ts";
import type { Sandbox } from "../../src/sandbox/sandbox.ts";
import { eventsNamed } from "../support/environment-runs.ts";
import { called, lastSaid, type ScriptedPolicy, scriptedPolicy } from "../support/scripted-policy.ts";

let policy: ScriptedPolicy;
let sandbox: Sandbox;
let grader: Grader;
beforeAll(async () => {
  policy = await scriptedPolicy();
  sandbox = await openSandbox();
  grader = createGrader({ sandbox, limits: { rewardTimeoutS: 1 } });
});
afterAll(async () => {
  await policy.close();
  await sandbox.close();
});
beforeEach(() => {
  policy.prompts.length = 0;
});

const example = "\n\nInput\n4\n\nOutput\n8\n";
const test_ = (input: string, output: string) => ({ input, output, testtype: "stdin" });
/** 4 → 8 is the statement's where `statement` has it; nobody is shown 7919 → 15838. */
const problem = (statement: string) => ({
  id: "double",
  prompt: `Read a number and print its double.${statement}`,
  tests: [test_("4\n", "8\n"), test_("7919\n", "15838\n")],
});
const program = (code: string) => `\`\`\`python\n${code}\n\`\`\``;
const right = program("print(2 * int(input()))");

/** Two episodes of `name` in which the model gives these answers, one a turn. */
async function play(name: string, statement: string, answers: readonly string[]) {
  policy.answers = (prompt) => [answers[prompt.split("<|im_start|>assistant").length - 2] ?? "."];
  const environment = { ...codeEnvironment(name)!, problems: [problem(statement)] };
  const { events } = await policy.train(environment, { grader, config: { completions_per_prompt: 2 } });
  const grades = eventsNamed(events, "graded").map(({ grade }) => grade);
  expect(grades).toHaveLength(2);
  for (const prompt of policy.prompts) expect(prompt).not.toMatch(/7919|15838/);
  const { verdict, reward, episode } = grades[0]!;
  return { verdict, reward, turns: episode!.turns.length, metrics: episode!.metrics, stop: episode!.stop };
}

/** What the model was told last. */
const told = () => lastSaid(policy.prompts.at(-1)!).split("<|im_start|>user").at(-1)!.split("<|im_end|>")[0]!.trim();

test("an example of the statement that fails is shown, and the answer repaired", async () => {
  const result = await play("repair", example, [program("print(input())"), right]);
  expect(told()).toBe(
    "Your program does not pass this example.\n\nInput:\n4\n\nExpected:\n8\n\nGot:\n4\n\nCorrect it and write the whole program again.",
  );
  expect(result).toMatchObject({ verdict: "pass", reward: 1, turns: 2, metrics: { first_correct: 0 } });
});

test("what passes the examples and fails a hidden test is told nothing, and is over", async () => {
  const result = await play("repair", example, [program("print(8)"), right]);
  expect(result).toMatchObject({ verdict: "fail", reward: 0, turns: 1, stop: "done" });
});

test.each([
  ["print(8)", "wrong answer"],
  ["print(1 / 0)", "runtime error"],
  ["while True: pass", "time limit"],
  ["this is no Python", "runtime error"],
])("without an example one word is all: %s, %s", async (code, status) => {
  const result = await play("repair", "", [program(code), right]);
  expect(told()).toBe(`Your program does not pass: ${status}. Correct it and write the whole program again.`);
  expect(result).toMatchObject({ verdict: "pass", turns: 2 });
});

test("an answer without a program is asked for one; three answers are all there are", async () => {
  const result = await play("repair", example, ["I cannot.", "No.", "No!", right]);
  expect(told()).toBe("There is no code block in your answer. Write the whole program in one.");
  expect(result).toMatchObject({ verdict: "fail", reward: -0.1, turns: 3, stop: "max_turns" });
});

test("a first answer that is right is all that is asked for", async () => {
  const result = await play("repair", example, [right]);
  expect(result).toMatchObject({ verdict: "pass", turns: 1, metrics: { first_correct: 1 } });
});

test("python runs what the model wants to see, and hidden tests judge its answer", async () => {
  const code = 'import sys\nprint(6 * int(input()))\nprint("oh", file=sys.stderr)';
  const call = called("python", JSON.stringify({ code, stdin: "7" }));
  const result = await play("python", example, [call, called("python", '{"code": "while True: pass"}'), right]);
  expect(policy.prompts.some((prompt) => lastSaid(prompt).includes("42\n\noh"))).toBe(true);
  expect(told()).toContain("(time-limit)");
  expect(result).toMatchObject({ verdict: "pass", reward: 1, turns: 3, stop: "done" });
});
