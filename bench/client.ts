// `./whet bench client`: our Tinker client beside the official Python SDK, doing the same work against the same server. Each side
// runs in a process of its own, in turns; CPU time is user and system time of the whole process, threads included.
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { availableParallelism, cpus, tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { typescriptFlags } from "../src/core/workers.ts";
import { simulatedModelName } from "../src/engine/simulated/engine.ts";
import { startServe } from "../test/contract/serve-process.ts";
import { newestSdk, openVenv } from "../test/support/venv.ts";
import type { Benchmark, BenchReport } from "./report.ts";

const sdk = `tinker==${newestSdk}`;
const turns = 2;
const settings = {
  data: 128,
  tokens: 6600,
  rounds: 5,
  calls: 2000,
  inFlight: 400,
  promptTokens: 256,
  maxTokens: 32,
  lossFn: "importance_sampling",
};

interface Figures {
  lists: number;
  arrays: number;
  bytes: number;
  sample: number;
  tokens: number;
}
interface Lag {
  totalMs: number;
  ownMs: number;
}
type OurFigures = Figures & { trainLag: Lag; sampleLag: Lag };

const here = (name: string) => fileURLToPath(new URL(name, import.meta.url));
const run = promisify(execFile);

async function measure<T extends Figures>(program: string, args: string[], baseUrl: string): Promise<T> {
  const environment = { ...process.env, TINKER_TELEMETRY: "0" };
  const all = [...args, baseUrl, simulatedModelName, JSON.stringify(settings)];
  const { stdout } = await run(program, all, { env: environment, timeout: 300_000, maxBuffer: 1 << 24 });
  return JSON.parse(stdout.trim().split("\n").at(-1)!) as T;
}

export const benchmark: Benchmark = {
  async run(say) {
    say(`preparing ${sdk} (kept for the next time)`);
    const venv = await openVenv([sdk]);
    if ("missing" in venv) return venv;
    const state = mkdtempSync(join(tmpdir(), "whetstone-bench-"));
    const server = await startServe(["engine=simulated", `state_dir=${state}`]);
    const ours: OurFigures[] = [];
    const theirs: Figures[] = [];
    try {
      for (let turn = 1; turn <= turns; turn++) {
        say(`turn ${turn} of ${turns}: ours`);
        const node = [...typescriptFlags, here("client-load.ts")];
        ours.push(await measure<OurFigures>(process.execPath, node, server.baseUrl));
        say(`turn ${turn} of ${turns}: ${sdk}`);
        theirs.push(await measure<Figures>(venv.python, [here("client_load.py")], server.baseUrl));
      }
    } finally {
      await server.close();
      rmSync(state, { recursive: true, force: true });
    }
    return report(ours, theirs);
  },
};

function report(ours: readonly OurFigures[], theirs: readonly Figures[]): BenchReport {
  if (ours[0]!.bytes !== theirs[0]!.bytes || ours[0]!.tokens !== theirs[0]!.tokens)
    throw new Error(`the two sides did not do the same work: ${JSON.stringify([ours[0], theirs[0]])}`);
  // Noise only adds CPU time, so the better turn of each side is the truer one.
  const best = (figures: readonly Figures[], key: "lists" | "arrays" | "sample") =>
    Math.min(...figures.map((figure) => figure[key]));
  const encode = (what: string, key: "lists" | "arrays", atLeast?: number) => {
    const ratio = best(theirs, key) / best(ours, key);
    return {
      what,
      ours: `${(best(ours, key) * 1000).toFixed(1)} ms CPU`,
      other: `${(best(theirs, key) * 1000).toFixed(1)} ms CPU`,
      figure: `${ratio.toFixed(1)}× less`,
      ...(atLeast !== undefined && { target: `≥ ${atLeast}×`, met: ratio >= atLeast }),
    };
  };
  const rate = (figures: readonly Figures[]) => settings.calls / best(figures, "sample");
  const sampling = rate(ours) / rate(theirs);
  const lag = (what: string, key: "trainLag" | "sampleLag") => {
    const worst = Math.max(...ours.map((figure) => figure[key].ownMs));
    const total = Math.max(...ours.map((figure) => figure[key].totalMs));
    return {
      what,
      ours: `${worst.toFixed(1)} ms`,
      other: `(${total.toFixed(1)} ms with waits)`,
      figure: `${worst.toFixed(1)} ms`,
      target: "< 20 ms",
      met: worst < 20,
    };
  };
  const size = `${settings.data} data of ${settings.tokens} tokens`;
  return {
    title: "Tinker client: Whetstone beside the official Python SDK, one server, one run",
    columns: ["Whetstone", sdk],
    rows: [
      encode(`build and encode ${size}, from lists`, "lists", 10),
      encode(`the same, from typed arrays / numpy`, "arrays"),
      {
        what: `${settings.calls} samples, ${settings.inFlight} in flight`,
        ours: `${rate(ours).toFixed(0)} calls/CPU s`,
        other: `${rate(theirs).toFixed(0)} calls/CPU s`,
        figure: `${sampling.toFixed(1)}× more`,
        target: "≥ 3×",
        met: sampling >= 3,
      },
      lag(`event-loop lag p99, submitting ${size}`, "trainLag"),
      lag("event-loop lag p99, sampling", "sampleLag"),
    ],
    notes: [
      `The batch is ${(ours[0]!.bytes / 1e6).toFixed(1)} MB of protobuf on both sides, with targets, logprobs and advantages.`,
      `Samples: prompts of ${settings.promptTokens} tokens, ${settings.maxTokens} tokens each; ./whet serve engine=simulated.`,
      `Best of ${turns} turns (of ${settings.rounds} rounds each for encoding) for CPU time, worst for lag. Lag leaves out the time this process waited for a processor (Linux).`,
      `Node ${process.versions.node}, ${availableParallelism()} × ${cpus()[0]?.model.trim()}.`,
    ],
  };
}
