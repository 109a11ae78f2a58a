// `./whet bench grading`: executions per second in the embedded jail beside spawning a bare, unisolated interpreter; latencies; and what
// is left behind after 10,000 executions. All in one run, in turns, with as many programs at once as there are cores. And how long grading programs
// that print as much as they may keeps the event loop.
import { spawn } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { availableParallelism, loadavg, tmpdir } from "node:os";
import { createGrader, normalizeTests } from "../src/grading/index.ts";
import { type Jail, openJail } from "../src/sandbox/jail.ts";
import { defaultLimits, type TestInput } from "../src/sandbox/sandbox.ts";
import { languageRows } from "./grading-languages.ts";
import { median } from "./intervals.ts";
import { LoopLag } from "./lag.ts";
import type { Benchmark } from "./report.ts";

const rounds = 7;
const spawnsPerRound = 60;
const batches = 10;
const testsPerBatch = 24;
const soak = 10_000;
const program = "a, b = map(int, input().split())\nprint(a + b)\n";
const limits = { ...defaultLimits, wallMs: 60_000, cpuMs: 60_000 };

export const benchmark: Benchmark = {
  async run(say) {
    const cores = availableParallelism();
    const jail = await openJail({ slots: cores });
    try {
      const bare: number[] = [];
      const single: number[] = [];
      const batch: number[] = [];
      const latencies: number[] = [];
      await perSecond(4, cores, () => runTests(jail, testsPerBatch));
      for (let round = 0; round < rounds; round++) {
        say(`round ${round + 1} of ${rounds}`);
        bare.push(await perSecond(spawnsPerRound, cores, () => spawnBare(jail.description.python)));
        single.push(await perSecond(spawnsPerRound, cores, () => runTests(jail, 1), latencies));
        batch.push((await perSecond(batches, cores, () => runTests(jail, testsPerBatch))) * testsPerBatch);
      }
      const alone: number[] = [];
      await perSecond(spawnsPerRound, 1, () => runTests(jail, 1), alone);
      say("outputs of 16 MiB");
      const lag = await lagOf(jail);
      const others = await languageRows(jail, (count, work) => perSecond(count, cores, work), say);
      const leaks = await soakTest(jail, cores, say);
      const ratio = (rates: number[]) => median(rates.map((rate, round) => rate / bare[round]!));
      const rate = (rates: number[]) => `${median(rates).toFixed(0)}/s`;
      const bareText = `${rate(bare)} bare python3 -I -S`;
      return {
        title: `Executions with full isolation (${jail.description.summary})`,
        columns: ["embedded jail", "compared with"],
        rows: [
          row("one program, one test", rate(single), bareText, ratio(single), 1.3),
          row(`one program, ${testsPerBatch} tests`, rate(batch), bareText, ratio(batch), 2.9),
          ...others,
          latencyRow(`latency, ${cores} at once`, latencies),
          latencyRow("latency, one at a time", alone),
          {
            what: "event-loop lag while outputs of 16 MiB are graded",
            ours: `with the wait for a processor ${lag.totalMs.toFixed(1)} ms`,
            other: "",
            figure: `p99 ${lag.ownMs.toFixed(1)} ms`,
            target: "< 20 ms",
            met: lag.ownMs < 20,
          },
          ...leaks,
        ],
        notes: [
          `${rounds} rounds in turns, medians; ${cores} cores, load average ${loadavg()[0]!.toFixed(1)}, Python ${jail.description.python}.`,
          "Every test is a process of its own, in namespaces of its own, with a fresh file system, seccomp and limits.",
        ],
      };
    } finally {
      await jail.close();
    }
  },
};

function row(what: string, ours: string, other: string, ratio: number, least: number) {
  return { what, ours, other, figure: `${ratio.toFixed(2)}×`, target: `≥ ${least}×`, met: ratio >= least };
}

function latencyRow(what: string, latencies: readonly number[]) {
  const at = (share: number) => `${quantile(latencies, share).toFixed(1)} ms`;
  return { what, ours: `p50 ${at(0.5)}`, other: "", figure: `p99 ${at(0.99)}` };
}

/** Runs the work `count` times, `width` at once. */
async function perSecond(
  count: number,
  width: number,
  work: () => Promise<void>,
  latencies: number[] = [],
): Promise<number> {
  let left = count;
  const started = performance.now();
  const lane = async () => {
    while (left-- > 0) {
      const before = performance.now();
      await work();
      latencies.push(performance.now() - before);
    }
  };
  await Promise.all(Array.from({ length: width }, lane));
  return count / ((performance.now() - started) / 1000);
}

function spawnBare(python: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = spawn(python, ["-I", "-S", "-c", program], { stdio: ["pipe", "pipe", "ignore"] });
    let output = "";
    child.stdout.on("data", (chunk: Buffer) => {
      output += chunk.toString();
    });
    child.on("error", reject);
    child.on("close", () => (output === "3\n" ? resolve() : reject(new Error(`bare python printed ${output}`))));
    child.stdin.end("1 2\n");
  });
}

const test: TestInput = { kind: "stdin", stdin: "1 2\n" };

async function runTests(jail: Jail, count: number): Promise<void> {
  const job = { source: program, tests: Array.from({ length: count }, () => test), limits, preamble: true };
  const outcomes = await jail.run(job, () => "continue");
  const right = outcomes.every(
    ({ status, stdout }) => status === "finished" && Buffer.from(stdout).toString() === "3\n",
  );
  if (!right || outcomes.length !== count) throw new Error(`the jail answered ${JSON.stringify(outcomes.at(-1))}`);
}

/** Grades programs that print as much as they may: blanks, line ends, short lines, one word. */
async function lagOf(jail: Jail): Promise<{ totalMs: number; ownMs: number }> {
  const tests = normalizeTests({ inputs: ["1", "2"], outputs: ["1", "2\n".repeat(1_000)] }).tests;
  const printing = (piece: string) => `import os
out = memoryview((${JSON.stringify(piece)} * ${2 ** 24})[: ${2 ** 24} - 64].encode() + input().encode())
while out: out = out[os.write(1, out):]`;
  const grader = createGrader({ sandbox: jail, limits: { memoryBytes: 2 ** 30 } });
  const lag = new LoopLag();
  lag.start();
  for (const comparator of ["tolerant", "lcb", "tokens"] as const)
    await Promise.all(
      [" ", "\n", "1\n", "x"].map((piece) => grader.grade({ problem: { tests, comparator }, code: printing(piece) })),
    );
  return lag.stop();
}

/** Single executions and batches until `soak` programs have run, and what that changed. */
async function soakTest(jail: Jail, cores: number, say: (line: string) => void) {
  const share = soak / 4;
  const mixed = async (executions: number) => {
    await perSecond(executions / 2, cores, () => runTests(jail, 1));
    await perSecond(executions / 2 / testsPerBatch, cores, () => runTests(jail, testsPerBatch));
  };
  const before = await settledFacts();
  for (let part = 1; part <= 4; part++) {
    await mixed(share);
    say(`${part * share} executions`);
  }
  const after = await settledFacts();
  const limit: Record<keyof Facts, number> = {
    zombies: 0,
    mounts: 0,
    files: 0,
    descriptors: 8,
    processes: 8,
    "memory of zygotes, MB": 4,
    "memory of node, MB": 100,
  };
  return (Object.keys(limit) as (keyof Facts)[]).map((name) => {
    const grown = after[name] - before[name];
    return {
      what: `after ${soak} executions: ${name}`,
      ours: after[name].toFixed(0),
      other: `${before[name].toFixed(0)} before`,
      figure: `${grown >= 0 ? "+" : ""}${grown.toFixed(0)}`,
      target: `≤ +${limit[name]}`,
      met: grown <= limit[name],
    };
  });
}

interface Facts {
  zombies: number;
  mounts: number;
  files: number;
  descriptors: number;
  processes: number;
  "memory of zygotes, MB": number;
  "memory of node, MB": number;
}

/** Counted when the last slots have ended and the spare ones are there. */
async function settledFacts(): Promise<Facts> {
  await new Promise((resolve) => setTimeout(resolve, 1000));
  globalThis.gc?.();
  const pids = [process.pid, ...descendants(process.pid)];
  const zygotes = pids.filter(
    (pid) => read(pid, "cmdline").includes("zygote.py") && !read(pid, "cmdline").includes("--unshare-all"),
  );
  const sum = (numbers: number[]) => numbers.reduce((total, number) => total + number, 0);
  const lines = (pid: number, name: string) => read(pid, name).split("\n").length;
  return {
    zombies: pids.filter((pid) => /\) Z /.test(read(pid, "stat"))).length,
    mounts: lines(process.pid, "mountinfo"),
    files: readdirSync(tmpdir()).filter((name) => name.startsWith(`whetstone-jail-${process.pid}-`)).length,
    descriptors: sum(pids.map(descriptorsOf)),
    processes: pids.length,
    "memory of zygotes, MB":
      sum(zygotes.map((pid) => Number(read(pid, "statm").split(" ")[1] ?? 0) * 4096)) /
      1e6 /
      Math.max(1, zygotes.length),
    "memory of node, MB": process.memoryUsage().rss / 1e6,
  };
}

function descriptorsOf(pid: number): number {
  try {
    return readdirSync(`/proc/${pid}/fd`).length;
  } catch {
    return 0; // not ours to look into
  }
}

function descendants(pid: number): number[] {
  const children = readdirSync("/proc").filter(
    (name) => /^\d+$/.test(name) && Number(/\) \S (\d+)/.exec(read(Number(name), "stat"))?.[1]) === pid,
  );
  return children.flatMap((child) => [Number(child), ...descendants(Number(child))]);
}

function read(pid: number, name: string): string {
  try {
    return readFileSync(`/proc/${pid}/${name}`, "utf8");
  } catch {
    return ""; // ended meanwhile
  }
}

function quantile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}
