// `./whet train language=javascript` on the simulated engine, whose right answers are JavaScript: the whole path, from the question to the report.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { readJsonLines } from "../../src/core/jsonl.ts";
import { startDashboard } from "../../src/dashboard/server.ts";
import { startServe } from "../contract/serve-process.ts";
import { chromiumPath, launch, visit, watchedPage } from "../dashboard/browser.ts";
import { foldersInMemory } from "../support/folders.ts";
import { runWhet } from "../support/whet.ts";
import { honest, tasks } from "./honest.ts";

const newFolder = foldersInMemory();

test("a run in JavaScript is asked, sampled, graded, trained, certified and reported", {
  timeout: 300_000,
}, async () => {
  const folder = newFolder();
  const problems = Object.entries(tasks).map(([name, tests]) => ({
    id: name,
    problem: `A task about whole numbers: ${name}.`,
    tests,
    solutions: honest.javascript.filter(({ task }) => task === name).map(({ code }) => code),
  }));
  const data = join(folder, "problems.jsonl");
  writeFileSync(data, problems.map((row) => `${JSON.stringify(row)}\n`).join(""));

  const certified = await runWhet(["certify", data, "language=javascript"]);
  expect(certified.code, certified.stdout + certified.stderr).toBe(0);

  const simulated = ["engine=simulated", "tokenizer=nano-coder", "model_name=nano-coder", "solve_rate=constant:0.6"];
  const server = await startServe([...simulated, `answers=${data}`, `state_dir=${newFolder()}`]);
  const path = join(folder, "run");
  const keys = [`train_data=${data}`, `test_data=${data}`, "language=javascript", "max_steps=2", "prompts_per_step=4"];
  const args = [...keys, `base_url=${server.baseUrl}`, "eval_every=0", "max_tokens=3000", "context_window=8000"];
  const { code, stderr } = await runWhet(["train", ...args, `log_path=${path}`], {
    env: { TINKER_API_KEY: server.apiKey },
  });
  await server.close();
  expect(code, stderr).toBe(0);
  const records = readJsonLines(join(path, "metrics.jsonl")) as Record<string, number>[];
  expect(records).toHaveLength(2);
  for (const record of records) {
    expect(record["mean_correct"]).toBeGreaterThan(0.2);
    expect(record["mean_correct"]).toBeLessThan(0.95);
  }

  const out = join(folder, "report.html");
  const reported = await runWhet(["report", path, `out=${out}`]);
  expect(reported.code, reported.stderr).toBe(0);
  const page = readFileSync(out, "utf8");
  expect(page).toContain("readFileSync");
  expect(page).toContain('<span class="py-keyword">const</span>');
  expect(page).toMatch(/Test \d+ failed, at line 1</);

  if (!chromiumPath) return;
  const dashboard = await startDashboard({ roots: [folder], port: 0 });
  const browser = await launch();
  try {
    const { page: shown, complaints } = await watchedPage(browser);
    await visit(shown, dashboard.url, "#/run/run/step/1/group/0");
    // A wrong answer is a name that JavaScript does not know; its line is marked, and numbers are no part of the text.
    const wrong = shown.locator("article.program.fail", { hasText: "at line 1 of the program" }).first();
    expect(await wrong.locator(".line.failed").getAttribute("data-line")).toBe("1");
    expect(await wrong.locator(".code").textContent()).toBe("pass");
    expect(await shown.locator("article.program.pass .py-keyword", { hasText: "const" }).count()).toBeGreaterThan(0);
    const shot = process.env["WHET_SHOT"];
    if (shot) await shown.screenshot({ path: shot, fullPage: true });
    expect(complaints).toEqual([]);
  } finally {
    await browser.close();
    await dashboard.close();
  }
});
