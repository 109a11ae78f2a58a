import { expect, test } from "vitest";
import { summarizeOutcomes } from "../rl/evaluate.ts";
import { RunView } from "../runs/view.ts";
import { nextCommands } from "./train-report.ts";

const evaluation = (passed: Record<string, number>) =>
  summarizeOutcomes(
    Object.entries(passed).map(([id, count]) => ({
      id,
      source: "mine",
      samples: 1,
      passed: count,
      well_formed: 1,
      truncated: 0,
      ungraded: 0,
      statuses: {},
    })),
  );

test.each([
  ["one that was gained", { a: 0, b: 1, c: 0 }, { a: 0, b: 1, c: 1 }, "c grade=true", /learned to solve/],
  ["else one that is solved", { a: 0, b: 1 }, { a: 0, b: 1 }, "b grade=true", /ask it a problem,/],
  ["else any", { a: 0, b: 0 }, { a: 0, b: 0 }, "a grade=true", /ask it a problem,/],
])("the problem that is suggested: %s", (_, before, after, end, why) => {
  const [sample] = nextCommands("/runs/first", new RunView(), evaluation(before), evaluation(after));
  expect(sample!.command.endsWith(` ${end}`), sample!.command).toBe(true);
  expect(sample!.why).toMatch(why);
});

test("without an evaluation a text is asked, and every command is quoted for a shell", () => {
  const commands = nextCommands("/runs/my first", new RunView(), undefined, undefined).map(({ command }) => command);
  expect(commands[0]).toContain("'Read integers and print their sum.'");
  expect(commands.slice(0, 2).every((command) => command.includes(" 'run=/runs/my first' "))).toBe(true);
});
