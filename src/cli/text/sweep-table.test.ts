// What a sweep says of its runs: which is the best and how sure that is, and the same on a page that lets nothing through.
import { expect, test } from "vitest";
import { renderSweep } from "../../dashboard/sweep-page.ts";
import { evaluationMetrics, summarizeOutcomes } from "../../rl/evaluate.ts";
import { RunView } from "../../runs/view.ts";
import { type MemberResult, sweepTable } from "./sweep-table.ts";

/** A finished run of `steps` steps that solves the first `solved` of 100 problems in the end. */
function result(label: string, solved: number | undefined, more: Partial<MemberResult> = {}): MemberResult {
  const view = new RunView();
  view.config = { max_steps: 2 };
  for (const step of [0, 1])
    view.steps.push({ step, metrics: { mean_reward: 0.5, loss: step, "tokens/sampled_total": 1234 }, spans: [] });
  const outcomes = (count: number) =>
    Array.from({ length: 100 }, (_, index) => ({
      id: `p${index}`,
      source: "mine",
      samples: 1,
      passed: index < count ? 1 : 0,
      ungraded: 0,
      well_formed: 1,
      truncated: 0,
      statuses: {},
    }));
  if (solved !== undefined)
    for (const [step, count] of [
      [0, 10],
      [2, solved],
    ] as const) {
      const metrics = evaluationMetrics(summarizeOutcomes(outcomes(count)));
      view.evaluations.set(step, {
        type: "evaluated",
        at: 1,
        step,
        final: step > 0,
        outcomes: outcomes(count),
        metrics,
        start: 0,
        end: 1,
      });
    }
  view.take({
    v: 1,
    at: 0,
    type: "saved",
    record: {
      name: "final",
      step: 2,
      epoch: 0,
      offset: 0,
      at: 0,
      state_path: "tinker://a/weights/final",
      sampler_path: "tinker://a/sampler_weights/final",
      final: true,
    },
    start: 0,
    end: 0,
  } as never);
  const values = label.split(" ").map((pair) => pair.split("=")[1]!);
  return { label, values, path: `/runs/${label}`, view, state: "finished", problem: undefined, ...more };
}

const labels = ({ members }: { members: readonly MemberResult[] }) => members.map(({ label }) => label);

test("the best stands first; which others may be as good is said, with the figures it follows from", () => {
  const table = sweepTable(
    ["lr"],
    [
      result("lr=1", 20),
      result("lr=2", 60),
      result("lr=3", 58),
      result("lr=4", 90, { state: "failed", problem: "it broke" }),
    ],
  );
  expect(labels(table)).toEqual(["lr=2", "lr=3", "lr=1", "lr=4"]);
  expect(table.rows.map(([mark]) => mark)).toEqual(["*", "", "", ""]);
  expect(table.notes[0]).toMatch(
    /^\* best of those that can be compared: lr=2, Pass@1 60\.0% \[.*\] of 100 problems\. Within noise of it.*: lr=3 \(2 gained, 0 lost, p = 0\.50\)\.$/,
  );
  expect(table.notes).toContainEqual(expect.stringMatching(/^One seed each: seed=0,1,2/));
  expect(table.notes).toContainEqual(expect.stringMatching(/^lr=4: failed, it broke \(\S+ show \/runs\/lr=4\)$/));
  expect(table.next.map(({ command }) => command)).toContainEqual(expect.stringMatching(/ train from=\/runs\/lr=2$/));
  const clear = sweepTable(["lr"], [result("lr=1", 20), result("lr=2", 60)]);
  expect(clear.notes[0]).toMatch(/ahead of each other one, problem by problem \(sign test, p < 0\.05\)/);
});

test("over seeds each setting has its mean and its spread; without evaluations the reward decides, and that is said", () => {
  const seeds = sweepTable(
    ["lr", "seed"],
    [result("lr=1 seed=0", 20), result("lr=1 seed=1", 40), result("lr=2 seed=0", 50), result("lr=2 seed=1", 30)],
  );
  expect(seeds.notes).toEqual(
    expect.arrayContaining([
      "lr=2, over 2 seeds: mean 40.0%, from 30.0% to 50.0%.",
      "lr=1, over 2 seeds: mean 30.0%, from 20.0% to 40.0%.",
    ]),
  );
  expect(sweepTable(["lr"], [result("lr=1", 20), result("lr=2", undefined)]).notes[0]).toMatch(
    /by the mean reward of the last 5 steps/,
  );
  expect(sweepTable(["lr"], [result("lr=1", 20, { state: "not begun" })])).toMatchObject({ notes: [], next: [] });
});

test("the page has every run's curve and row, and text of others stays text", () => {
  const evil = result('env=<img src=x onerror="alert(1)">', 40, { problem: "<script>alert(1)</script>\u202e" });
  const many = Array.from({ length: 20 }, (_, index) => result(`env=${index}`, index + 30));
  const { header, rows, members, notes } = sweepTable(["env"], [evil, ...many]);
  const page = renderSweep(
    { title: "<b>", about: "whet sweep </code><script>", header, rows, notes, runs: members },
    new Date(0),
  );
  expect(page).not.toMatch(/<(script|img|b>&)/);
  expect(page).toContain("&lt;script&gt;alert(1)&lt;/script&gt;");
  expect(page).not.toContain("\u202e");
  expect(page.match(/<tr>/g)).toHaveLength(22);
  // As many curves as can be told apart, of the best.
  expect(page).toContain("Curves of the first 14");
  expect(
    page.match(/<figcaption><b>Pass@1<\/b>[\s\S]*?<\/figure>/)![0].match(/class="line dashed [a-z ]+" d="M/g),
  ).toHaveLength(14);
  expect(page).toContain('<i class="key blue dashed"></i>');
  expect(page).toMatch(/Content-Security-Policy" content="default-src 'none'/);
});
