// One cause, one finding: what the rules find in runs that were recorded, by cause; and which rules say that they follow from which.
import fc from "fast-check";
import { expect, test } from "vitest";
import { collapsedRuns } from "../../test/support/collapsed-runs.ts";
import { journal, run } from "../../test/support/synthetic-run.ts";
import type { NewEvent } from "../runs/events.ts";
import { causesOf, type Found, findingLevels } from "../runs/findings.ts";
import { diagnose } from "./diagnosis.ts";
import { rules } from "./rules.ts";
import { describeCause } from "./text.ts";

const causesIn = (events: readonly NewEvent[]) => {
  const all = journal(events);
  return causesOf(diagnose("runs/x", all, all.at(-1)!.at).filter(({ rewound }) => !rewound));
};

test.each(collapsedRuns)("%s: one cause, the collapse, and everything else beneath it", (_, events) => {
  const causes = causesIn(events);
  expect(causes.map(({ level, root }) => [level, root.finding.id])).toEqual([["error", "collapse"]]);
  expect(causes[0]!.symptoms.length).toBeGreaterThan(3);
  const text = describeCause(causes[0]!);
  // The cause's advice, and none that is for another.
  expect(text).toContain("the learning rate is too high");
  expect(text.match(/^ {2}do /gm)).toHaveLength(1);
  for (const { finding } of causes[0]!.symptoms) expect(text).toContain(finding.message);
  expect(text).not.toMatch(/max_tokens=224|completions_per_prompt=/);
});

test.each(collapsedRuns)("%s: at no step is the limit of tokens or the batch to blame", (_, events) => {
  for (let count = 3; count <= events.length; count++)
    for (const { root } of causesIn(events.slice(0, count)))
      expect(root.finding.command ?? "", root.finding.id).not.toMatch(/max_tokens=|completions_per_prompt=/);
});

test("a limit that was too small from the beginning is still its own cause", () => {
  const cut = run(8, (_, figures) => ({ ...figures, "sample/truncated_rate": 0.9, mean_correct: 0.1 }));
  const [cause] = causesIn(cut);
  expect(cause).toMatchObject({ root: { finding: { id: "truncated-answers" } } });
  expect(cause!.root.finding.command).toContain("max_tokens=224");
});

test("what was there long before is no symptom, nor is anything of a mere note", () => {
  const finding = (id: string, since: number, level: (typeof findingLevels)[number] = "error"): Found => {
    const { symptomOf = [] } = rules.find((rule) => rule.id === id)!;
    return {
      since,
      finding: { id, level, message: "", figures: [], means: "", remedy: "", symptomOf: [...symptomOf] },
    };
  };
  const shape = (...found: Found[]) =>
    causesOf(found).map(({ root, symptoms }) => [root, ...symptoms].map((one) => one.finding.id).join(" > "));
  expect(shape(finding("truncated-answers", 3), finding("collapse", 6))).toEqual(["collapse > truncated-answers"]);
  expect(shape(finding("truncated-answers", 3), finding("collapse", 30))).toEqual(["truncated-answers", "collapse"]);
  expect(shape(finding("weak-tests", 0), finding("reward-flat-zero", 9))).toEqual(["weak-tests > reward-flat-zero"]);
  expect(shape(finding("weak-tests", 0, "note"), finding("reward-flat-zero", 9))).toEqual([
    "reward-flat-zero",
    "weak-tests",
  ]);
  // Each could have brought about the next: the most telling of them stands for the cause.
  expect(shape(finding("format-dropping", 3), finding("lag-too-large", 6), finding("collapse", 11))).toEqual([
    "collapse > format-dropping > lag-too-large",
  ]);
});

test("the table names rules that are there, and every set of findings falls into causes that hold each of them once", () => {
  const ids = rules.map(({ id }) => id);
  for (const { symptomOf = [] } of rules) for (const id of symptomOf) expect(ids).toContain(id);
  const found = fc.record({
    rule: fc.constantFrom(...rules),
    since: fc.nat(40),
    level: fc.constantFrom(...findingLevels),
  });
  fc.assert(
    fc.property(fc.uniqueArray(found, { selector: ({ rule }) => rule.id }), (list) => {
      const all: Found[] = list.map(({ rule, since, level }) => ({
        since,
        finding: { ...rule, level, message: "", figures: [], symptomOf: [...(rule.symptomOf ?? [])] },
      }));
      const causes = causesOf(all);
      const named = causes.flatMap(({ root, symptoms }) => [root, ...symptoms]);
      expect(new Set(named).size).toBe(named.length);
      expect(named).toHaveLength(all.length);
      for (const { level, root, symptoms } of causes)
        for (const one of [root, ...symptoms])
          expect(findingLevels.indexOf(one.finding.level)).toBeLessThanOrEqual(findingLevels.indexOf(level));
    }),
    { numRuns: 500 },
  );
});
