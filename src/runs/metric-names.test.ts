import { readdirSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { metricsDocs, metricsPage } from "../../scripts/metrics/write.ts";
import { metricMeaning, metricSections } from "./metric-names.ts";

const prefixes = "sample|grade|env|data|progress|tokens|eval|pipeline|journal|time|optim|cost|budget|control";

test("docs/metrics.md is what the table says; `npm run metrics` writes it", () => {
  expect(readFileSync(metricsPage, "utf8")).toBe(metricsDocs());
});

test("every name that the loop writes is in the table", () => {
  const folder = new URL("../rl/", import.meta.url);
  const written = new Set<string>();
  for (const file of readdirSync(folder).filter((name) => name.endsWith(".ts") && !name.endsWith(".test.ts")))
    for (const [, name] of readFileSync(new URL(file, folder), "utf8").matchAll(
      new RegExp(`["']((?:${prefixes})/[\\w@./]+)["']:`, "g"),
    ))
      written.add(name!);
  expect(written.size).toBeGreaterThan(30);
  expect([...written].filter((name) => metricMeaning(name) === undefined)).toEqual([]);
});

test("a name with a place in it stands for all of them, a spelled one for itself", () => {
  expect(metricMeaning("grade/status/wrong_answer")).toMatch(/by status/);
  expect(metricMeaning("eval/lcb/v5/pass@1")).toBe("per source");
  expect(metricMeaning("eval/pass@8")).toMatch(/unbiased/);
  expect(metricMeaning("eval/pass@1")).toBe("Pass@1");
  expect(metricMeaning("optim/lr")).toBe("learning rate");
  expect(metricMeaning("optim/grad_norm")).toMatch(/server reports/);
  expect(metricMeaning("loss_of_nothing")).toBeUndefined();
  const names = metricSections.flatMap(({ metrics }) => Object.keys(metrics));
  expect(new Set(names).size).toBe(names.length);
});
