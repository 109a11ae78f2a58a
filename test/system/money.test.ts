// What a run costs, on a real server that writes down what it did: the meter against a count by hand, a budget that stops in time and
// can be raised, and the checkpoints that are left.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { beforeAll, describe, expect, test } from "vitest";
import { readJsonLines } from "../../src/core/jsonl.ts";
import { readAudit } from "../../src/engine/audited.ts";
import { readCheckpoints } from "../../src/runs/checkpoints.ts";
import { readJournal } from "../../src/runs/read-journal.ts";
import { startServe } from "../contract/serve-process.ts";
import { runCommand } from "../support/command-process.ts";
import { foldersInMemory } from "../support/folders.ts";
import type { WhetResult } from "../support/whet.ts";

const newFolder = foldersInMemory();
const starter = fileURLToPath(new URL("../../data/starter/train.jsonl", import.meta.url));
const prices = { prefill: 1, cached: 0.2, sample: 10, train: 5 };
const budget = 0.2;

describe("a run with prices and a budget", () => {
  const folder = newFolder();
  const path = join(folder, "run");
  const audit = join(folder, "audit.jsonl");
  let server: Awaited<ReturnType<typeof startServe>>;
  let whet: (...args: string[]) => Promise<WhetResult>;
  let stopped: WhetResult;
  let stoppedRecords: Record<string, number>[];
  let resumed: WhetResult;

  const train = (...more: string[]) =>
    whet(
      "train",
      `base_url=${server.baseUrl}`,
      `log_path=${path}`,
      "prompts_per_step=4",
      "completions_per_prompt=4",
      "max_tokens=200",
      "max_lag=1",
      "eval_every=4",
      "eval_max_problems=6",
      "save_every=2",
      `price_prefill=${prices.prefill}`,
      `price_sample=${prices.sample}`,
      `price_train=${prices.train}`,
      ...more,
    );
  const records = () => readJsonLines(join(path, "metrics.jsonl")) as Record<string, number>[];

  beforeAll(async () => {
    const simulated = ["engine=simulated", "tokenizer=nano-coder", "model_name=nano-coder", `answers=${starter}`];
    server = await startServe([...simulated, `state_dir=${join(folder, "state")}`, `audit=${audit}`]);
    whet = (...args) => runCommand(args, { env: { TINKER_API_KEY: server.apiKey, HOME: folder } });
    stopped = await train(`budget=${budget}`, "max_steps=200");
    stoppedRecords = records();
    resumed = await train("budget=100", `max_steps=${stoppedRecords.length + 2}`);
    return () => server.close();
  }, 300_000);

  test("the budget is not exceeded, the run is saved, and the same command with a larger one goes on", () => {
    expect([stopped.code, stopped.stderr]).toEqual([3, expect.stringContaining(`stopped by budget=${budget} after`)]);
    const spent = stoppedRecords.at(-1)!["cost/total"]!;
    expect(spent).toBeLessThanOrEqual(budget);
    expect(spent).toBeGreaterThan(budget / 4);
    // The last line is about the end, not about the moment of a first no.
    const [, said, next] = /: \$([\d.]+) were spent, and what comes next may cost up to \$([\d.]+)/.exec(
      stopped.stderr,
    )!;
    expect(Number(said)).toBeCloseTo(spent, 4);
    expect(Number(said) + Number(next)).toBeGreaterThan(budget);
    const [first] = readCheckpoints(path).filter(({ name }) => name.startsWith("budget-"));
    expect(first!.step).toBe(stoppedRecords.filter((record) => record["groups_total"] !== undefined).length);
    const ends = [...readJournal(path)].flatMap(({ event }) => (event.type === "stopped" ? [event] : []));
    expect(ends.map(({ outcome, reason }) => [outcome, reason])).toEqual([
      ["interrupted", "budget"],
      ["finished", undefined],
    ]);
    expect([resumed.code, resumed.stderr]).toEqual([0, expect.stringContaining("per mixed group")]);
    expect(resumed.stderr).toContain(`budget was ${budget} and is now 100`);
  });

  test("the meter equals a count by hand, of the journal and of the server's own account", () => {
    let prefill = 0;
    let sample = 0;
    let train = 0;
    for (const { event, arrays } of readJournal(path)) {
      if (event.type === "group-sampled") {
        const { prompt, tokens } = arrays();
        prefill += prompt!.length;
        sample += tokens!.length;
      }
      if (event.type === "update-done" || event.type === "retrained") train++;
    }
    const lines = readAudit(audit);
    const total = (op: string, pick: (line: (typeof lines)[number]) => number) =>
      lines.filter((line) => line.op === op).reduce((sum, line) => sum + pick(line), 0);
    expect(total("sample", (line) => (line.op === "sample" ? line.promptTokens : 0))).toBe(prefill);
    expect(total("sample", (line) => (line.op === "sample" ? line.tokens : 0))).toBe(sample);
    expect(lines.filter(({ op }) => op === "forward_backward")).toHaveLength(train);
    const trained = total("forward_backward", (line) => (line.op === "forward_backward" ? line.tokens : 0));

    const { tokens, cost } = JSON.parse(readFileSync(join(path, "summary.json"), "utf8")) as {
      tokens: Record<string, number>;
      cost: Record<string, number>;
    };
    expect(tokens).toEqual({ prefill, cachedPrefill: 0, sample, train: trained });
    const dollars = (prefill * prices.prefill + sample * prices.sample + trained * prices.train) / 1e6;
    expect(cost["total"]).toBeCloseTo(dollars, 9);
    // The sum went on after the stop, step by step.
    const totals = records().flatMap((record) => record["cost/total"] ?? []);
    expect(totals).toEqual([...totals].sort((a, b) => a - b));
  });

  test("what lies on the server is listed, and pruned but for what is to stay", async () => {
    const listed = await whet("checkpoints", `run=${path}`, "json=true");
    const rows = listed.stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as { path: string; size_bytes: number; of: string });
    expect(rows.length).toBeGreaterThan(4);
    for (const { size_bytes, of } of rows) {
      expect(size_bytes).toBeGreaterThan(0);
      expect(of).toMatch(/^(checkpoint|policy) /);
    }
    const dry = await whet("checkpoints", `run=${path}`, "prune=true", "keep=last:1");
    expect([dry.code, dry.stdout]).toEqual([0, expect.stringContaining("nothing was deleted")]);
    const pruned = await whet("checkpoints", `run=${path}`, "prune=true", "keep=last:1", "yes=true");
    expect([pruned.code, pruned.stdout]).toEqual([0, expect.stringMatching(/\d+ deleted/)]);
    const left = await whet("checkpoints", `run=${path}`, "json=true");
    const final = readCheckpoints(path).at(-1)!;
    const paths = left.stdout
      .trim()
      .split("\n")
      .map((line) => (JSON.parse(line) as { path: string }).path);
    expect(paths).toEqual(expect.arrayContaining([final.state_path, final.sampler_path]));
    expect(paths.length).toBeLessThan(rows.length);
    expect(paths.filter((stored) => /\/(budget-)?\d{6}$/.test(stored))).toEqual([]);
    // The run can still go on.
    const longer = await train("budget=100", `max_steps=${final.step + 1}`);
    expect(longer.code, longer.stderr).toBe(0);
  }, 120_000);

  test("the run is shown from the whole down to one failing test", async () => {
    const show = async (...args: string[]) => (await whet("show", `run=${path}`, ...args)).stdout;
    expect(await show()).toMatch(/groups {3}\d+ mixed/);
    const graded = [...readJournal(path)].flatMap(({ event }) => (event.type === "graded" ? [event] : []));
    const wrong = graded.find(({ phase, grade }) => phase === "train" && grade.status === "wrong_answer")!;
    const [step, group] = [`step=${wrong.batch}`, `group=${wrong.group}`];
    expect(await show(step)).toContain("group  passed  outcome");
    expect(await show(step, group)).toMatch(/test \d+: expected .*, got/);
    const answer = await show(step, group, `sample=${wrong.sample}`);
    for (const part of ["verdict", "program", "first failing test", "expected", "printed", "logprobs"])
      expect(answer).toContain(part);
    expect((await whet("show", path, "step=999")).stderr).toMatch(/It has step 0 to \d+\. \[config\/not-in-run\]/);
  });
});

test("a budget without a price is refused before anything begins", async () => {
  const args = ["train", "base_url=http://127.0.0.1:9", "preset=deepcoder", "budget=5", `log_path=${newFolder()}/run`];
  const { code, stderr } = await runCommand(args, { env: { TINKER_API_KEY: "tml-x" } });
  expect([code, stderr]).toEqual([2, expect.stringContaining("price_prefill= price_sample= price_train=")]);
});
