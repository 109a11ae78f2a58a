// A run of any length for the dashboard's benchmark: its journal is written by the real writer, with events as a run of the bundled model
// has them (8 groups of 16 answers a step, an evaluation every 500 steps).
import { Random } from "../src/core/random.ts";
import type { NewEvent } from "../src/runs/events.ts";
import { Journal } from "../src/runs/journal.ts";
import { updateRule } from "../test/support/synthetic-run.ts";

const groups = 8;
const samples = 16;
const promptTokens = 60;
/** About 100 kB of journal a step. */
const tokens = 36;
const evaluationEvery = 500;
const problemCount = 800;

const program = (random: Random, solved: boolean) =>
  [
    "```python",
    "def main():",
    `    n = int(input())  # ${random.uint32().toString(36)}`,
    "    values = list(map(int, input().split()))",
    `    total = sum(value * ${1 + (random.uint32() % 9)} for value in values if value % ${2 + (random.uint32() % 5)} == 0)`,
    `    print(total${solved ? "" : " + n"})`,
    "",
    "main()",
    "```",
  ].join("\n");

/** Writes the run into a new folder. Returns the journal's bytes. */
export async function writeRun(
  folder: string,
  steps: number,
  onStep: (step: number) => void = () => {},
): Promise<number> {
  const random = new Random("dashboard-bench", steps);
  const journal = await Journal.open(folder);
  const config = {
    model_name: "nano-coder",
    max_steps: steps,
    prompts_per_step: groups,
    completions_per_prompt: samples,
    max_lag: 0,
    tokenizer: "",
  };
  await journal.append({ type: "opened", pid: process.pid });
  await journal.append({ type: "started", session: 0, config, changes: [] });
  let time = Date.now() - steps * 4000;
  for (let step = 0; step < steps; step++) {
    const skill = 0.2 + (0.7 * step) / steps;
    const pending: Promise<void>[] = [];
    const outcomes: { problem: string; passed: number; verdicts: boolean[] }[] = [];
    for (let group = 0; group < groups; group++) {
      const problem = `starter-train-${String((step * groups + group) % problemCount).padStart(4, "0")}`;
      const verdicts = Array.from({ length: samples }, () => random.uint32() / 2 ** 32 < skill);
      outcomes.push({ problem, verdicts, passed: verdicts.filter(Boolean).length });
      pending.push(sample(journal, random, { step, group, problem, verdicts, time }));
      for (const [index, solved] of verdicts.entries())
        pending.push(journal.append(graded(step, group, index, solved, time)));
    }
    await Promise.all(pending);
    await submit(journal, step, outcomes);
    const correct = outcomes.reduce((sum, { passed }) => sum + passed, 0) / (groups * samples);
    await finish(journal, random, { step, correct, outcomes, time });
    if (step % evaluationEvery === 0) await evaluate(journal, step, skill, time);
    time += 4000;
    onStep(step);
  }
  await journal.append({ type: "stopped", outcome: "finished" });
  const { bytes } = journal;
  await journal.close();
  return bytes;
}

interface Sampled {
  step: number;
  group: number;
  problem: string;
  verdicts: boolean[];
  time: number;
}

function sample(journal: Journal, random: Random, { step, group, problem, verdicts, time }: Sampled): Promise<void> {
  const prompt = Int32Array.from({ length: promptTokens }, () => random.uint32() % 4096);
  const ids = Int32Array.from({ length: samples * tokens }, () => random.uint32() % 4096);
  const logprobs = Float32Array.from({ length: samples * tokens }, () => -random.uint32() / 2 ** 33);
  return journal.append(
    {
      type: "group-sampled",
      phase: "train",
      batch: step,
      group,
      policy: step,
      problem,
      source: "starter",
      datasetIndex: step * groups + group,
      seed: 0,
      temperature: 1,
      promptTokens,
      cachedTokens: 0,
      samples: verdicts.map((solved) => ({ tokens, truncated: false, text: program(random, solved) })),
      start: time,
      end: time + 1500,
    },
    { prompt, tokens: ids, logprobs },
  );
}

function graded(step: number, group: number, index: number, solved: boolean, time: number): NewEvent {
  const failure = {
    status: "wrong_answer",
    testIndex: 1,
    input: "5\n1 2 3 4 5\n",
    expected: "30\n",
    printed: "35\n",
    stderr: "",
  };
  return {
    type: "graded",
    phase: "train",
    batch: step,
    group,
    sample: index,
    grade: {
      verdict: solved ? "pass" : "fail",
      status: solved ? "pass" : "wrong_answer",
      reward: solved ? 1 : 0,
      formatOk: true,
      passed: solved ? 5 : 1,
      total: 5,
      ran: 5,
      wallMs: 12.5,
      queueMs: 3.25,
      cached: false,
      flags: [],
      codeHash: `${step}${group}${index}`.padStart(64, "0"),
      ...(solved ? {} : { failure }),
    },
    start: time + 1500,
    end: time + 1600,
  };
}

function submit(
  journal: Journal,
  step: number,
  outcomes: readonly { problem: string; passed: number; verdicts: boolean[] }[],
): Promise<void> {
  return journal.append({
    type: "update-submitted",
    step,
    rule: updateRule,
    examples: groups * samples,
    tokens: groups * samples * (promptTokens + tokens),
    readTokens: 0,
    nextOffset: (step + 1) * groups,
    carried: [],
    groups: outcomes.map(({ problem, passed, verdicts }, group) => ({
      batch: step,
      group,
      problem,
      outcome: passed === 0 ? "all-fail" : passed === samples ? "all-pass" : "mixed",
      skipped: passed === 0 || passed === samples,
      advantages: verdicts.map((solved) => (solved ? 1 : 0) - passed / samples),
      trained: passed === 0 || passed === samples ? [] : verdicts.map((_, sample) => sample),
      graded: samples,
      passed,
    })),
  });
}

async function finish(
  journal: Journal,
  random: Random,
  {
    step,
    correct,
    outcomes,
    time,
  }: { step: number; correct: number; outcomes: readonly { passed: number }[]; time: number },
): Promise<void> {
  const of = (wanted: (passed: number) => boolean) => outcomes.filter(({ passed }) => wanted(passed)).length;
  const noise = () => random.uint32() / 2 ** 32 - 0.5;
  const metrics: Record<string, number> = {
    mean_reward: correct,
    mean_correct: correct,
    format_rate: 1,
    groups_total: groups,
    groups_skipped: of((passed) => passed === 0 || passed === samples),
    groups_mixed: of((passed) => passed > 0 && passed < samples),
    groups_all_pass: of((passed) => passed === samples),
    groups_all_fail: of((passed) => passed === 0),
    groups_ungraded: 0,
    loss: 0.02 * noise(),
    "optim/kl_sample_train_v1": 1e-3 * noise(),
    "optim/effective_sample_size": 0.99,
    "optim/entropy": 0.1 + 0.01 * noise(),
    "pipeline/lag": 0,
    "time/total": 4,
  };
  // As many figures as a real step has.
  for (let figure = Object.keys(metrics).length; figure < 70; figure++) metrics[`other/figure_${figure}`] = noise();
  const spans = [
    { name: "sample", start: time, end: time + 1500 },
    { name: "grade", start: time + 1500, end: time + 1600 },
    { name: "train", start: time + 1600, end: time + 3800 },
    { name: "weights", start: time + 3800, end: time + 3900 },
    { name: "total", start: time, end: time + 4000 },
  ];
  const logprobs = Float32Array.from({ length: 64 }, noise);
  await journal.append(
    { type: "update-done", step, lossSum: 1, server: {}, start: time + 1600, end: time + 3800 },
    { logprobs },
  );
  await journal.append({
    type: "policy-published",
    version: step + 1,
    path: `tinker://bench/sampler_weights/${step + 1}`,
    start: time,
    end: time,
  });
  await journal.append({ type: "step-done", step, datasetOffset: step * groups, spans, observed: {}, metrics });
}

async function evaluate(journal: Journal, step: number, skill: number, time: number): Promise<void> {
  await journal.append({ type: "evaluation-started", step });
  const outcomes = Array.from({ length: 400 }, (_, number) => ({
    id: `starter-test-${number}`,
    source: "starter",
    samples: 1,
    passed: number < 400 * skill ? 1 : 0,
    ungraded: 0,
    well_formed: 1,
    truncated: 0,
    statuses: { pass: 1 },
  }));
  const metrics = {
    "eval/pass@1": skill,
    "eval/pass@1_low": skill - 0.05,
    "eval/pass@1_high": skill + 0.05,
    "eval/n": 400,
  };
  await journal.append({ type: "evaluated", step, final: false, outcomes, metrics, start: time, end: time + 1000 });
}
