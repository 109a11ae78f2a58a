// A run in which everything that a model, a data set or a file name can say is hostile. Each text, were it taken for markup or a script,
// would set `window.broken`, open a dialog or ask another host.
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { NewEvent } from "../../src/runs/events.ts";
import { Journal } from "../../src/runs/journal.ts";
import { updateRule } from "../support/synthetic-run.ts";

const run = "window.broken=1;alert(1)";

/** One for each way that text has become more than text. */
export const hostileTexts: readonly string[] = [
  `<script>${run}</script>`,
  `<img src=x onerror="${run}">`,
  `<img src="https://evil.example/pixel.png"><link rel=stylesheet href="https://evil.example/x.css">`,
  `<svg onload="${run}"><animate onbegin="${run}" attributeName=x dur=1s></svg>`,
  `<svg><script href="data:text/javascript,${run}"/></svg>`,
  `"><iframe srcdoc="<script>parent.broken=1</script>"></iframe>`,
  `</script><script>${run}</script>`,
  `</pre></code></style></title></textarea><script>${run}</script>`,
  `javascript:${run}`,
  `[click](javascript:${run}) ![x](https://evil.example/y.png)`,
  `' onmouseover='${run}' x='`,
  `\${${run}} {{constructor.constructor('${run}')()}} <%= 1 %>`,
  'data: {}\n\nevent: info\ndata: {"findings":[]}\n\n',
  "\u202Eevil\u202C\u2066hidden\u2069 \u200Bzero\u200D \uFEFFbom \u00ADsoft",
  "\u0000\u0001\u0007\u001B[31mred\u001B[0m\u009B2J\u007F\r\nnext",
  "\uD800 lone \uDC00 surrogates \u{E0041}\u{E0042} tags",
  "a\u0301\u0302\u0303\u0304\u0305".repeat(50),
  "../../../etc/passwd",
  "%2e%2e%2f%00#?&=+ spaces\ttabs",
  "__proto__",
];

/** A line of `length` characters with a script at its end. */
export const longLine = (length: number) => `${"A".repeat(length - 40)}<script>${run}</script>`;

/** A name that a folder may have. */
export const hostileName = `<img src=x onerror=${run}> "'&\u202E#?%41`;

/** Writes the run into `folder/NAME`. Returns its path. */
export async function writeHostileRun(folder: string, name = hostileName, longest = 10_000_000): Promise<string> {
  const path = join(folder, name);
  mkdirSync(path);
  const journal = await Journal.open(path);
  const config: Record<string, unknown> = {
    model_name: hostileTexts[0],
    max_steps: 2,
    max_lag: 0,
    tokenizer: "nano-coder",
  };
  for (const [index, text] of hostileTexts.entries()) config[`${text} ${index}`] = text;
  await journal.append({ type: "opened", pid: process.pid });
  const changes = hostileTexts.map((text) => ({ key: text, was: text, is: { [text]: text } }));
  await journal.append({ type: "started", session: 0, config, changes });
  for (const text of hostileTexts) await journal.append({ type: "log", level: "WARNING", message: text });
  const texts = [...hostileTexts, longLine(longest)];
  const answers = texts.map((text, index) => (index % 2 === 0 ? `\`\`\`python\n${text}\n\`\`\`` : text));
  for (const phase of ["train", "eval"] as const) {
    if (phase === "eval") await journal.append({ type: "evaluation-started", step: 0 });
    for (const [group, problem] of hostileTexts.entries())
      await writeGroup(journal, { phase, group, problem, answers: group === 0 ? answers : answers.slice(0, 2) });
  }
  await journal.append({
    type: "update-submitted",
    step: 0,
    rule: updateRule,
    examples: 0,
    tokens: 0,
    readTokens: 0,
    nextOffset: 8,
    carried: [],
    groups: hostileTexts.map((problem, group) => ({
      batch: 0,
      group,
      problem,
      outcome: "mixed",
      skipped: false,
      advantages: (group === 0 ? answers : answers.slice(0, 2)).map((_, index) => (index % 2 === 0 ? 0.5 : -0.5)),
      trained: [],
      graded: 2,
      passed: 1,
    })),
  });
  const metrics: Record<string, number> = {
    mean_reward: 0.5,
    mean_correct: 0.5,
    format_rate: 1,
    groups_mixed: 8,
    groups_total: 8,
  };
  for (const text of hostileTexts) metrics[text] = 1;
  await journal.append({
    type: "step-done",
    step: 0,
    datasetOffset: 0,
    spans: [
      { name: `<script>${run}</script>`, start: 1, end: 2 },
      { name: "total", start: 1, end: 2 },
    ],
    observed: {},
    metrics,
  });
  const outcomes = hostileTexts.map((id) => ({
    id,
    source: id,
    samples: 2,
    passed: 1,
    ungraded: 0,
    well_formed: 1,
    truncated: 0,
    statuses: { [id]: 1 },
  }));
  for (const step of [0, 1])
    await journal.append({
      type: "evaluated",
      step,
      final: false,
      outcomes: outcomes.map((outcome) => ({ ...outcome, passed: step })),
      metrics: { "eval/pass@1": 0.5, "eval/pass@1_low": 0.4, "eval/pass@1_high": 0.6, [hostileTexts[1]!]: 1 },
      start: 1,
      end: 2,
    });
  for (const text of hostileTexts)
    await journal.append({ type: "saved", record: { name: text, step: 1, dataset_offset: 8 }, start: 1, end: 2 });
  for (const [index, text] of hostileTexts.entries())
    await journal.append({
      type: "finding",
      step: 0,
      action: "none",
      finding: {
        id: text,
        level: "error",
        message: text,
        figures: [{ name: text, value: 1 }],
        samples: [{ step: 0, group: 0, sample: 0, problem: text }],
        means: text,
        remedy: text,
        command: text,
        ...(index > 1 && { symptomOf: [hostileTexts[0]!] }),
      },
    });
  await journal.append({ type: "stopped", outcome: "failed", error: hostileTexts[3]! });
  await journal.close();
  return path;
}

interface Group {
  phase: "train" | "eval";
  group: number;
  problem: string;
  answers: readonly string[];
}

async function writeGroup(journal: Journal, { phase, group, problem, answers }: Group): Promise<void> {
  const place = { phase, batch: 0, group };
  const sampled: NewEvent = {
    type: "group-sampled",
    ...place,
    policy: 0,
    problem,
    source: problem,
    question: problem,
    datasetIndex: group,
    seed: null,
    temperature: 1,
    promptTokens: 3,
    cachedTokens: 0,
    samples: answers.map((text) => ({ tokens: 3, truncated: false, text })),
    start: 1,
    end: 2,
  };
  const all = 3 * answers.length;
  await journal.append(sampled, {
    prompt: Int32Array.of(1, 2, 3),
    tokens: Int32Array.from({ length: all }, (_, index) => index % 300),
    logprobs: new Float32Array(all).fill(-0.5),
  });
  for (const sample of answers.keys()) {
    const text = hostileTexts[sample % hostileTexts.length]!;
    await journal.append({
      type: "graded",
      ...place,
      sample,
      grade: {
        verdict: sample % 2 === 0 ? "pass" : "fail",
        status: text,
        reward: sample % 2,
        formatOk: true,
        passed: 1,
        total: 2,
        ran: 2,
        wallMs: 1,
        queueMs: 1,
        cached: false,
        flags: [text],
        codeHash: null,
        message: text,
        failure: { status: text, testIndex: 0, input: text, expected: text, printed: text, stderr: text },
      },
      start: 1,
      end: 2,
    });
  }
}
