// What programs can learn of each other's verdicts, whatever the channel: which tests were started. Each test says its number while it runs. Were judging
// to stop at the first wrong answer, that would tell how many answers are right; with rounds it tells nothing.
import { afterAll, beforeAll, expect, test } from "vitest";
import { createGrader, normalizeTests } from "../../src/grading/index.ts";
import { type Jail, openJail } from "../../src/sandbox/jail.ts";
import type { Sandbox } from "../../src/sandbox/sandbox.ts";
import { job, stdin, textOf } from "../sandbox/plain.ts";

let jail: Jail;
beforeAll(async () => {
  jail = await openJail({ slots: 2 });
}, 60_000);
afterAll(() => jail?.close());

/** Says which test it runs, then guesses. */
const guesser = (guesses: readonly string[]) =>
  `import sys\nk = int(input())\nprint(k, file=sys.stderr)\nprint(${JSON.stringify(guesses)}[k])\n`;

const answers = ["YES", "NO", "NO", "YES", "NO", "YES"];
const problem = {
  tests: normalizeTests({ inputs: answers.map((_, index) => `${index}\n`), outputs: answers }).tests,
};
/** Wrong first at 0, 2, 5, and nowhere. */
const groups = [0, 2, 5, 6].map((wrong) => answers.map((answer, index) => (index < wrong ? answer : "?")));

/** The jail, and what ran in it. */
function recorded(): { sandbox: Sandbox; ran: string[] } {
  const ran: string[] = [];
  const run: Sandbox["run"] = (work, afterTest, options) =>
    jail.run(
      work,
      (outcome, index) => {
        ran.push(outcome.stderrTail.trim());
        return afterTest(outcome, index);
      },
      options,
    );
  return { sandbox: { description: jail.description, run, supports: async () => {}, close: async () => {} }, ran };
}

test("what is started tells nothing of the answers", async () => {
  for (const guesses of groups) {
    const { sandbox, ran } = recorded();
    const result = await createGrader({ sandbox, cacheSize: 0 }).grade({ problem, code: guesser(guesses) });
    expect(result.verdict).toBe(guesses.includes("?") ? "fail" : "pass");
    expect(ran, guesses.join()).toEqual(["0", "1", "2", "3", "4", "5"]);
  }
}, 60_000);

test("it would tell all of it to a group whose tests stop at the first wrong answer", async () => {
  const tests = answers.map((_, index) => stdin(`${index}\n`));
  const seen: string[] = [];
  for (const guesses of groups) {
    const { sandbox, ran } = recorded();
    await sandbox.run(job(guesser(guesses), tests), (outcome, index) =>
      textOf(outcome).trim() === answers[index] ? "continue" : "stop",
    );
    seen.push(ran.join(" "));
  }
  expect(seen).toEqual(["0", "0 1 2", "0 1 2 3 4 5", "0 1 2 3 4 5"]);
}, 60_000);
