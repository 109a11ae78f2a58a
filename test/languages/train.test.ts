// `./whet train language=javascript` on the simulated engine, whose right answers are JavaScript: the whole path, from the question to the report.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { readJsonLines } from "../../src/core/jsonl.ts";
import { startServe } from "../contract/serve-process.ts";
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
});
