// The environments of examples/, each played for real with a model whose answers are written here.
import { readFileSync } from "node:fs";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createGrader, openSandbox } from "whetstone/grading";
import type { Environment, TrainingProblem } from "whetstone/rl";
import guess from "../../examples/guess.ts";
import judge from "../../examples/judge.ts";
import repair from "../../examples/repair.ts";
import tools from "../../examples/tools.ts";
import twoPlayers from "../../examples/two-players.ts";
import type { Sandbox } from "../../src/sandbox/sandbox.ts";
import { eventsNamed } from "../support/environment-runs.ts";
import { type Answers, called, lastSaid, type ScriptedPolicy, scriptedPolicy } from "../support/scripted-policy.ts";

let policy: ScriptedPolicy;
let sandbox: Sandbox;
beforeAll(async () => {
  policy = await scriptedPolicy();
  sandbox = await openSandbox();
});
afterAll(async () => {
  await policy.close();
  await sandbox.close();
});

/** One group of eight episodes. */
async function play<Problem extends TrainingProblem>(environment: Environment<Problem>, answers: Answers) {
  policy.answers = answers;
  policy.prompts.length = 0;
  const grader = createGrader({ sandbox });
  const config = { completions_per_prompt: 8 };
  const { events } = await policy.train(environment, { grader, config });
  const grades = eventsNamed(events, "graded").map(({ grade }) => grade);
  expect(grades).toHaveLength(8);
  expect(grades.map(({ verdict }) => verdict)).not.toContain("ungraded");
  return grades;
}

test("guess.ts has fewer than 15 lines, and is won by who halves", async () => {
  const text = readFileSync(new URL("../../examples/guess.ts", import.meta.url), "utf8");
  expect(text.split("\n").filter((line) => line.trim() !== "" && !line.startsWith("//")).length).toBeLessThan(15);
  const halving = (prompt: string) => {
    let [low, high] = [1, 10];
    for (const said of prompt.match(/Higher|Lower/g) ?? []) {
      const middle = (low + high) >> 1;
      if (said === "Higher") low = middle + 1;
      else high = middle - 1;
    }
    return [`Is it ${(low + high) >> 1}?`];
  };
  for (const { reward, episode } of await play(guess, halving)) {
    expect(reward).toBe(1);
    expect(episode!.turns.length).toBeLessThanOrEqual(4);
  }
});

test("tools.ts: calls are run, and each episode has its own basket", async () => {
  const shopping = (prompt: string) => {
    const [, one, other] = /one (\w+) and one (\w+)/.exec(prompt)!;
    const results = prompt.split("<tool_response>").length - 1;
    if (results === 0) return [called("add", JSON.stringify({ name: one }))];
    if (results === 1) return [called("add", JSON.stringify({ name: other }))];
    const prices: Record<string, number> = { apple: 3, bread: 5, cheese: 8 };
    return [`They cost ${prices[one!]! + prices[other!]!}.`];
  };
  for (const { reward, episode } of await play(tools, shopping))
    expect([reward, episode!.toolCalls, episode!.toolErrors, episode!.metrics["results"]]).toEqual([1, 2, 0, 2]);
  expect(policy.prompts.some((prompt) => lastSaid(prompt).includes("\n2\n"))).toBe(true);
  expect(policy.prompts.every((prompt) => !lastSaid(prompt).includes("\n3\n"))).toBe(true);
});

test("repair.ts: the statement's example is said, and the program corrected", async () => {
  const correcting = (prompt: string) => {
    const least = /at least (\d+)/.exec(prompt)![1];
    const sign = prompt.includes("Correct it.") ? ">=" : ">";
    return [`\`\`\`python\nprint(sum(int(x) ${sign.replace(">", "›")} ${least} for x in input().split()))\n\`\`\``];
  };
  for (const { reward, episode } of await play(repair, correcting))
    expect([reward, episode!.turns.length, episode!.metrics]).toEqual([1, 2, { first_correct: 0 }]);
  expect(policy.prompts.some((prompt) => prompt.includes("It printed 1\n, not 2\n. Correct it."))).toBe(true);
});

test("two-players.ts: two conversations of one episode, both trained on", async () => {
  const meeting = (prompt: string) => (prompt.includes("Again.") ? ["gold"] : ["iron", "gold", "tin"]);
  const grades = await play(twoPlayers, meeting);
  for (const { reward, episode } of grades) {
    const { round } = episode!.metrics as { round: number };
    expect(reward).toBe(1 / round);
    expect(episode!.turns).toHaveLength(2 * round);
  }
  expect(new Set(grades.map(({ reward }) => reward)).size).toBeGreaterThan(1);
});

test("judge.ts: the shorter program of a group wins", async () => {
  const programs = ["a = 1", "a = 11", "a = 111"].map((code) => `\`\`\`python\n${code}\n\`\`\``);
  const grades = await play(judge, () => [...programs, "no program"]);
  const rewards = [...new Set(grades.map(({ reward }) => reward!))];
  expect(rewards.length).toBeGreaterThan(1);
  expect(Math.min(...rewards)).toBeGreaterThanOrEqual(0);
  expect(Math.max(...rewards)).toBeLessThan(1);
});
