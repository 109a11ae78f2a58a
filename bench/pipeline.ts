// `./whet bench pipeline`: updates per hour at lag 0, 1, 2 and 4 under five latency profiles, with tail=wait and tail=carry, beside
// tinker-cookbook's own trainer, synchronous and asynchronous with the same lag, all against one simulated server per profile. What was
// sampled and when each update was applied is counted by the server (its audit), alike for all.
import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { availableParallelism, loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { mean } from "../src/core/statistics.ts";
import { typescriptFlags } from "../src/core/workers.ts";
import { type BatchTimes, carryPaces, lastPaced, paceOf, updateTimes } from "../src/diagnosis/pace.ts";
import { type AuditLine, readAudit } from "../src/engine/audited.ts";
import { simulatedModelName } from "../src/engine/simulated/engine.ts";
import { presetConfig } from "../src/rl/config.ts";
import { startServe } from "../test/contract/serve-process.ts";
import { openNewest } from "../test/support/venv.ts";
import { batchTimes, boundOf, type Profile, profiles, serverOptions } from "./pipeline-model.ts";
import type { Benchmark, BenchRow } from "./report.ts";

/** What a trainer is told; the Python side reads the same. */
export interface TrainerSettings {
  base_url: string;
  model_name: string;
  log_path: string;
  batches: number;
  groups: number;
  samples: number;
  max_tokens: number;
  grade_s: number;
  tail: Tail;
  carry_rounds: boolean;
  /** null: synchronous. */
  lag: number | null;
}

type Tail = "wait" | "carry";
/** Of its groups that a batch waits for, by tail. */
const shares: Readonly<Record<Tail, number>> = { wait: 1, carry: presetConfig("deepcoder").carry_share };
const tails = Object.keys(shares) as Tail[];

const seed = 1;
const groups = 8;
const samples = 4;

interface Plan {
  profiles: readonly Profile[];
  lags: readonly number[];
  batches: number;
  /** Seconds that a sequential step is scaled to. */
  stepS: number;
}
const whole: Plan = { profiles, lags: [0, 1, 2, 4], batches: 61, stepS: 2 };
const quick: Plan = { profiles: profiles.slice(0, 1), lags: [0, 1], batches: 3, stepS: 0.8 };

/** What the server saw of one run. */
interface Outcome {
  /** Seconds of the profile's time from the model's beginning to each update. */
  doneS: number[];
  groupsSampled: number;
}

export const benchmark: Benchmark = {
  async run(say, options) {
    const plan = options.quick ? quick : whole;
    const cookbook = options.quick ? { missing: "quick=true" } : await prepareCookbook(say);
    const folder = mkdtempSync(join(tmpdir(), "whetstone-bench-"));
    const rows: BenchRow[] = [];
    const ratios: number[] = [];
    let shortest = Number.POSITIVE_INFINITY;
    try {
      for (const [index, profile] of plan.profiles.entries()) {
        say(`profile ${index + 1} of ${plan.profiles.length}: ${profile.name}`);
        const results = await measure(profile, plan, cookbook, join(folder, String(index)));
        for (const { row, ratio } of rowsOf(profile, plan, results)) {
          rows.push(row);
          ratios.push(...ratio);
        }
        shortest = Math.min(shortest, results.scale);
      }
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
    return {
      title: "Pipelines at a fixed lag: updates per hour under five latency profiles",
      columns: ["Whetstone, tail=wait, tail=carry", "missing" in cookbook ? "tinker-cookbook" : cookbook.name],
      rows: [...rows, ...summary(ratios)],
      notes: [
        `${plan.batches} batches of ${groups} groups; a profile names a group's median latency and what else is not 4 s of grading, 40 s of training, 6 s of sync`,
        "figures: share of the bound | share of what the lag allows | the same with tail=carry",
        "the bound: max(training, (sync + slowest group + grading + training) / (lag + 1)), averaged over the batches",
        "rounds: with carry_rounds=true, where the event model says that this is faster by a twentieth",
        "what the lag allows: an event model with the same draws in which all but the latencies is free; uneven batches keep it from the bound",
        `an hour is played in ${Math.round(3600 * shortest)} s or more; ${availableParallelism()} cores, load ${loadavg()[0]!.toFixed(1)}`,
        ...("missing" in cookbook ? [`tinker-cookbook's side was skipped: ${cookbook.missing}`] : []),
      ],
    };
  },
};

type Cookbook = { python: string; name: string } | { missing: string };

async function prepareCookbook(say: (line: string) => void): Promise<Cookbook> {
  say("preparing tinker-cookbook (the first time this downloads some gigabytes)");
  const venv = await openNewest("tinker-cookbook");
  return "missing" in venv ? venv : { python: venv.python, name: `tinker-cookbook ${venv.version}` };
}

interface Results {
  /** Seconds of the clock per second of the profile. */
  scale: number;
  ours: Readonly<Record<Tail, ReadonlyMap<number, Outcome>>>;
  theirs: ReadonlyMap<number, Outcome & { stale: number }>;
}

/** Runs every lag of a trainer at once: nearly all of the time is waiting. */
async function measure(profile: Profile, plan: Plan, cookbook: Cookbook, folder: string): Promise<Results> {
  mkdirSync(folder);
  const times = batchTimes(profile, seed, plan.batches, groups);
  const sequentialS = updateTimes(times, 0).at(-1)! / plan.batches;
  const scale = plan.stepS / sequentialS;
  const audit = join(folder, "audit.jsonl");
  const server = await startServe([
    ...serverOptions(profile, scale, seed),
    `state_dir=${join(folder, "state")}`,
    `audit=${audit}`,
  ]);
  const settingsOf = (name: string, lag: number | null, tail: Tail = "wait"): TrainerSettings => {
    const log_path = join(folder, name);
    mkdirSync(log_path);
    return {
      base_url: server.baseUrl,
      model_name: simulatedModelName,
      log_path,
      batches: plan.batches,
      groups,
      samples,
      max_tokens: 16,
      grade_s: scale * profile.gradeS,
      tail,
      carry_rounds: isInRounds(times, tail, lag ?? 0),
      lag,
    };
  };
  const script = (name: string) => fileURLToPath(new URL(name, import.meta.url));
  try {
    const key = server.apiKey;
    const runAll = async (tail: Tail) => {
      const runs = plan.lags.map(async (lag) => {
        const settings = settingsOf(`${tail}-${lag}`, lag, tail);
        const args = [...typescriptFlags, script("./pipeline-run.ts"), JSON.stringify(settings)];
        await execute(process.execPath, args, "", key);
        return [lag, outcomeOf(audit, settings, scale)] as const;
      });
      return new Map(await Promise.all(runs));
    };
    const [wait, carry] = await Promise.all([runAll("wait"), runAll("carry")]);
    // After that: Python takes seconds of processor time to start.
    const theirs = ("missing" in cookbook ? [] : plan.lags).map(async (lag) => {
      const settings = settingsOf(`cookbook-${lag}`, lag === 0 ? null : lag);
      const args = [script("./pipeline_cookbook.py")];
      const output = await execute((cookbook as { python: string }).python, args, JSON.stringify(settings), key);
      const { stale } = JSON.parse(output.trim().split("\n").at(-1)!) as { stale: number };
      return [lag, { ...outcomeOf(audit, settings, scale), stale }] as const;
    });
    return { scale, ours: { wait, carry }, theirs: new Map(await Promise.all(theirs)) };
  } finally {
    await server.close();
  }
}

/** Runs a program to its end and returns what it printed. */
function execute(program: string, args: readonly string[], input: string, apiKey: string): Promise<string> {
  const child = spawn(program, args, {
    env: { ...process.env, TINKER_API_KEY: apiKey, TINKER_TELEMETRY: "0" },
    stdio: ["pipe", "pipe", "pipe"],
  });
  child.stdin.end(input);
  let [output, errors] = ["", ""];
  child.stdout.on("data", (chunk: Buffer) => (output += chunk.toString()));
  child.stderr.on("data", (chunk: Buffer) => (errors = (errors + chunk.toString()).slice(-4000)));
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code) =>
      code === 0 ? resolve(output) : reject(new Error(`${args.at(-1)} ended with ${code}: ${errors}`)),
    );
  });
}

/** A run's model is named in its checkpoints.jsonl; both trainers write one. */
function outcomeOf(audit: string, settings: TrainerSettings, scale: number): Outcome {
  const checkpoints = readFileSync(join(settings.log_path, "checkpoints.jsonl"), "utf8");
  const session = /tinker:\/\/([0-9a-f-]{36})/.exec(checkpoints)![1]!;
  const lines = readAudit(audit);
  const ofModel = (line: AuditLine) => "model" in line && line.model.startsWith(session);
  const begun = lines.find((line) => line.op === "create_model" && ofModel(line))!.at;
  return {
    doneS: lines
      .filter((line) => line.op === "optim_step" && ofModel(line))
      .map(({ at }) => (at - begun) / 1000 / scale),
    groupsSampled:
      lines.reduce((sum, line) => sum + (line.op === "sample" && line.source.includes(session) ? line.samples : 0), 0) /
      samples,
  };
}

function rowsOf(profile: Profile, plan: Plan, { ours, theirs }: Results): { row: BenchRow; ratio: number[] }[] {
  const times = batchTimes(profile, seed, plan.batches, groups);
  const sequential = paceOf(ours.wait.get(0)!.doneS, 0);
  return plan.lags.map((lag) => {
    const [wait, carry] = tails.map((tail) => resultOf(ours[tail].get(lag)!, times, lag, tail));
    const bound = mean(times.slice(1, lastPaced(plan.batches, lag) + 1).map((batch) => boundOf(batch, lag)))!;
    const peer = theirs.get(lag);
    const peerPace = peer && paceOf(peer.doneS, 0);
    const both = [wait!, carry!];
    const texts = both.map(
      ({ pace, discarded, rounds }) =>
        `${perHour(pace)}  ${(sequential / pace).toFixed(2)}×  ${discarded} discarded${rounds ? "  rounds" : ""}`,
    );
    return {
      row: {
        what: `${profile.name} · lag ${lag}`,
        ours: texts.join(" · "),
        other: peer ? `${perHour(peerPace!)}  ${peer.stale} discarded` : "–",
        figure: `${percent(bound / wait!.pace)} | ${both.map(({ possible }) => percent(possible)).join(" | ")}`,
        ...(plan === whole && {
          target: `| ≥ 95%${peer ? ", carry ahead" : ""}`,
          met:
            both.every(({ possible, discarded }) => possible >= 0.95 && discarded === 0) &&
            (peerPace === undefined || carry!.pace < peerPace),
        }),
      },
      ratio: peer && lag > 0 ? [peerPace! / carry!.pace] : [],
    };
  });
}

/** Seconds an update, that of the event model over it, and groups that were sampled and not trained on. */
function resultOf({ doneS, groupsSampled }: Outcome, times: readonly BatchTimes[], lag: number, tail: Tail) {
  const pace = paceOf(doneS, lag);
  const rounds = isInRounds(times, tail, lag);
  const possible = paceOf(updateTimes(times, lag, shares[tail], rounds), lag) / pace;
  return { pace, possible, discarded: groupsSampled - doneS.length * groups, rounds };
}

/** Whether batches begin in rounds: where the diagnosis would say so. */
const isInRounds = (times: readonly BatchTimes[], tail: Tail, lag: number): boolean =>
  tail === "carry" && carryPaces(times, lag, shares.carry).inRounds;

function summary(ratios: readonly number[]): BenchRow[] {
  if (ratios.length === 0) return [];
  const sorted = [...ratios].sort((a, b) => a - b);
  const middle = (sorted[Math.floor((sorted.length - 1) / 2)]! + sorted[Math.floor(sorted.length / 2)]!) / 2;
  return [
    {
      what: "tail=carry over the cookbook's asynchronous trainer at the same lag",
      ours: `least ${sorted[0]!.toFixed(2)}×`,
      other: `most ${sorted.at(-1)!.toFixed(2)}×`,
      figure: `median ${middle.toFixed(2)}×`,
    },
  ];
}

const perHour = (paceS: number) => `${(3600 / paceS).toFixed(1)}/h`;
const percent = (share: number) => `${Math.round(100 * share)}%`;
