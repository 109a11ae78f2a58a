// `./whet bench scale`: what a large run costs the machine that trains, whatever the engine: 256 prompts × 16 completions × 8,192 tokens
// per step, and 8 × 16 × 24,576 with tail=carry, through the whole of `./whet train`, one step of lag, with the real grader and journal,
// against the simulated engine.
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { availableParallelism, loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { readJsonLines } from "../src/core/jsonl.ts";
import { typescriptFlags } from "../src/core/workers.ts";
import { startServe } from "../test/contract/serve-process.ts";
import type { Benchmark, BenchRow } from "./report.ts";

const here = (name: string) => fileURLToPath(new URL(name, import.meta.url));

interface Size {
  prompts: number;
  tokens: number;
  steps: number;
  keys: readonly string[];
}
const whole: readonly Size[] = [
  { prompts: 256, tokens: 8192, steps: 5, keys: [] },
  { prompts: 8, tokens: 24_576, steps: 5, keys: ["tail=carry"] },
];
const small: readonly Size[] = [{ prompts: 8, tokens: 512, steps: 2, keys: [] }];

export const benchmark: Benchmark = {
  async run(say, { quick }) {
    // Groups come one after another, as from a very fast engine, not all in one moment.
    const spreadMs = quick ? 500 : 20_000;
    const rows: BenchRow[] = [];
    const notes: string[] = [];
    for (const size of quick ? small : whole) {
      const what = [`${size.prompts} × 16 × ${size.tokens} tokens`, ...size.keys].join(" ");
      say(`${size.steps} steps of ${what}`);
      for (const row of await measure(size, spreadMs, quick)) rows.push({ ...row, what: `${row.what} · ${what}` });
      const speed = (size.prompts * 16 * size.tokens) / spreadMs / 1000;
      notes.push(
        `${size.steps} steps of ${what} at lag 1, sampled within ${spreadMs / 1000} s (${speed.toFixed(1)} million tokens a second), real grading`,
      );
    }
    return {
      title: "Large runs, seen from the machine that trains",
      columns: ["measured", "beside it"],
      rows,
      notes: [
        ...notes,
        `${availableParallelism()} cores, shared with the simulated engine and the jail; load ${loadavg()[0]!.toFixed(1)}`,
      ],
    };
  },
};

async function measure(size: Size, spreadMs: number, quick: boolean): Promise<BenchRow[]> {
  const folder = mkdtempSync(join(tmpdir(), "whetstone-bench-"));
  const context = `context_window=${size.tokens + 2048}`;
  const server = await startServe([
    "engine=simulated",
    "tokenizer=nano-coder",
    "model_name=nano-coder",
    `answers=${here("../data/starter/train.jsonl")}`,
    `completion_tokens=constant:${size.tokens}`,
    `sampling_latency=uniform:0:${spreadMs}`,
    context,
    `state_dir=${join(folder, "state")}`,
  ]);
  try {
    const path = join(folder, "run");
    const settings = [
      `base_url=${server.baseUrl}`,
      `log_path=${path}`,
      `prompts_per_step=${size.prompts}`,
      "completions_per_prompt=16",
      `max_tokens=${size.tokens}`,
      context,
      `max_steps=${size.steps}`,
      "max_lag=1",
      "eval_every=0",
      "save_every=0",
      ...size.keys,
    ];
    const { stdout } = await promisify(execFile)(
      process.execPath,
      [...typescriptFlags, here("./loop-run.ts"), ...settings],
      { env: { ...process.env, TINKER_API_KEY: server.apiKey }, timeout: 590_000, maxBuffer: 1 << 24 },
    );
    const { code, ownMs, totalMs, peakBytes } = JSON.parse(stdout.trim().split("\n").at(-1)!) as Record<string, number>;
    const records = readJsonLines(join(path, "metrics.jsonl")) as Record<string, number>[];
    if (code !== 0 || records.length < size.steps) throw new Error(`./whet train ended with ${code}`);
    const sum = (name: string) => records.reduce((total, record) => total + (record[name] ?? 0), 0);
    const share = sum("time/other") / sum("time/total");
    const last = records.findLast((record) => record["journal/append_p99_ms"] !== undefined)!;
    const gib = peakBytes! / 2 ** 30;
    const goal = (target: string, met: boolean) => (quick ? {} : { target, met });
    return [
      {
        what: "peak memory of the training process",
        ours: `${gib.toFixed(2)} GiB`,
        other: `${((size.prompts * 16 * size.tokens * 8) / 2 ** 30).toFixed(2)} GiB of tokens and logprobs per batch`,
        figure: `${gib.toFixed(2)} GiB`,
        ...goal("< 2 GiB", gib < 2),
      },
      {
        what: "event-loop lag, p99",
        ours: `${ownMs!.toFixed(1)} ms`,
        other: `${totalMs!.toFixed(1)} ms with the wait for a processor`,
        figure: `${ownMs!.toFixed(1)} ms`,
        ...goal("< 50 ms", ownMs! < 50),
      },
      {
        what: "time in neither engine nor grader",
        ours: `${sum("time/other").toFixed(2)} s`,
        other: `${sum("time/total").toFixed(1)} s`,
        figure: `${(100 * share).toFixed(2)}%`,
        ...goal("< 5%", share < 0.05),
      },
      {
        what: "journal append, p99",
        ours: `${last["journal/append_p99_ms"]!.toFixed(1)} ms`,
        other: `${(last["journal/bytes"]! / 2 ** 20).toFixed(0)} MiB written`,
        figure: `${last["journal/append_p99_ms"]!.toFixed(1)} ms`,
      },
    ];
  } finally {
    await server.close();
    rmSync(folder, { recursive: true, force: true });
  }
}
