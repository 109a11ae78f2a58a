import { describe, expect, test } from "vitest";
import { collapsedRuns } from "../../../test/support/collapsed-runs.ts";
import { foldersInMemory } from "../../../test/support/folders.ts";
import { run } from "../../../test/support/synthetic-run.ts";
import { Diagnosis } from "../../diagnosis/diagnosis.ts";
import { summarizeOutcomes } from "../../rl/evaluate.ts";
import { Display } from "../../runs/display.ts";
import type { NewEvent } from "../../runs/events.ts";
import { Journal } from "../../runs/journal.ts";
import { Run } from "../../runs/run.ts";
import { RunView } from "../../runs/view.ts";
import { nextCommands, report } from "./train-report.ts";

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

describe("what the end says", () => {
  const folders = foldersInMemory();

  /** What `report` prints of a run with these events, findings among them as training writes them. */
  async function printed(events: readonly NewEvent[]): Promise<{ path: string; text: string }> {
    const path = folders();
    const journal = await Journal.open(path);
    const diagnosis = new Diagnosis(path);
    for (const event of events) {
      await journal.append(event);
      for (const { step, finding } of diagnosis.take({ ...event, at: Date.now() }))
        await journal.append({ type: "finding", step, finding, action: "none" });
    }
    await journal.close();
    let text = "";
    const opened = await Run.open(path, new Display({ write: (part) => (text += part) }), () => {});
    report(opened, RunView.read(path));
    await opened.close("finished");
    return { path, text };
  }

  test.each(collapsedRuns)("%s: the cause and where to look, and nothing to make of it", async (_, events) => {
    const { path, text } = await printed(events);
    expect(text).toMatch(/^error: this run went wrong after step \d+, collapse: .*\n {2}means .*\n {2}do .*/m);
    expect(text.trimEnd().endsWith(`\n  # what happened, with its evidence\n  ./whet diagnose ${path}`)).toBe(true);
    expect(text).not.toMatch(/whet (sample|export|eval) /);
  });

  test("a healthy run names what to do with it", async () => {
    const { path, text } = await printed(run(12));
    expect(text).not.toContain("went wrong");
    expect(text).toContain(`\n  # take the adapter away\n  ./whet export run=${path} out=${path}-adapter\n`);
  });
});
