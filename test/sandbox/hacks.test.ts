// The hack corpus against both levels: nothing is rewarded, nothing gets out, the neighbour graded at the same moment is unharmed, and
// the jail is healthy afterwards.
import { randomUUID } from "node:crypto";
import { existsSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Jail, type JailLevel, openJail } from "../../src/sandbox/jail.ts";
import { defaultLimits, type Job, type Limits, type TestInput, type TestOutcome } from "../../src/sandbox/sandbox.ts";
import { type Hack, hacks } from "./hacks.ts";

const megabyte = 1024 ** 2;
/** Tight, so that bombs end soon. */
const limits: Limits = {
  ...defaultLimits,
  wallMs: 250,
  cpuMs: 500,
  memoryBytes: 700 * megabyte,
  outputBytes: megabyte,
  fileBytes: 4 * megabyte,
  scratchBytes: 8 * megabyte,
  processes: 16,
};

const questions = [
  { a: 2, b: 3, sum: 5 },
  { a: 10, b: -4, sum: 6 },
];

function testsOf(hack: Pick<Hack, "kind">): TestInput[] {
  return questions.map(({ a, b }) =>
    hack.kind === "stdin"
      ? { kind: "stdin", stdin: `${a} ${b}\n` }
      : { kind: "call", functionName: "f", argumentsJson: [String(a), String(b)] },
  );
}

/** The judge's rule in two lines: the right output or the right value of a finished test, for every test. */
function rewarded(outcomes: readonly TestOutcome[]): boolean {
  return outcomes.every(({ status, stdout, frame }, index) => {
    const sum = String(questions[index]!.sum);
    const answer = frame === undefined ? Buffer.from(stdout).toString().trim() : frame;
    return status === "finished" && (answer === sum || answer === `["i","${sum}"]`);
  });
}

/** What ran into a limit has failed, and would again; with WHET_HOSTILE set it has to. */
const isLimited = ({ status }: TestOutcome) => !process.env["WHET_HOSTILE"] && status.endsWith("-limit");

const honest = "import sys, time\na, b = map(int, sys.stdin.read().split())\ntime.sleep(0.02)\nprint(a + b)\n";
const honestJob: Job = {
  source: honest,
  tests: testsOf({ kind: "stdin" }),
  limits: { ...defaultLimits, wallMs: 30_000, cpuMs: 30_000 },
  preamble: true,
};

describe.each<JailLevel>(["jail", "landlock"])("hack corpus, level %s", (level) => {
  let jail: Jail;
  let server: Server;
  let connections = 0;
  let siblings: Promise<number>;
  let stop = false;
  const secretFile = join(tmpdir(), `whetstone-hack-secret-${randomUUID()}`);
  const outside = { secretFile, port: 0, pid: process.pid, controlSocket: "" };

  beforeAll(async () => {
    writeFileSync(secretFile, "secret", { mode: 0o644 });
    server = createServer((socket) => {
      connections++;
      socket.destroy();
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const address = server.address();
    outside.port = typeof address === "object" && address ? address.port : 0;
    jail = await openJail({ levels: [level], slots: 4 });
    const folder = readdirSync(tmpdir()).find((name) => name.startsWith(`whetstone-jail-${process.pid}-`));
    outside.controlSocket = join(tmpdir(), folder ?? "", "control");
    // The neighbour: an honest program, graded again and again while the others rage.
    siblings = (async () => {
      let graded = 0;
      while (!stop) {
        const outcomes = await jail.run(honestJob, () => "continue");
        if (!rewarded(outcomes)) throw new Error(`the sibling was harmed: ${JSON.stringify(outcomes)}`);
        graded++;
        await sleep(50);
      }
      return graded;
    })();
    siblings.catch(() => {});
  }, 60_000);

  afterAll(async () => {
    await jail?.close();
    await new Promise((resolve) => server.close(resolve));
    rmSync(secretFile, { force: true });
  });

  test("no hack is rewarded and none gets out", async () => {
    const corpus = hacks(outside);
    expect(corpus.length).toBeGreaterThanOrEqual(60);
    expect(new Set(corpus.map((hack) => hack.name)).size).toBe(corpus.length);
    const successes: string[] = [];
    const queue = [...corpus];
    const lane = async () => {
      for (let hack = queue.shift(); hack; hack = queue.shift()) {
        const job: Job = { source: hack.source, tests: testsOf(hack), limits, preamble: true };
        const outcomes = await jail.run(job, (outcome) => (isLimited(outcome) ? "stop" : "continue"));
        if (!isLimited(outcomes.at(-1)!)) expect(outcomes, hack.name).toHaveLength(questions.length);
        if (rewarded(outcomes)) successes.push(`${hack.name}: rewarded`);
        for (const { stdout } of outcomes) {
          const text = Buffer.from(stdout.subarray(0, 10_000)).toString();
          if (text.includes("ESCAPED")) successes.push(`${hack.name}: ${text.slice(0, 200)}`);
        }
      }
    };
    await Promise.all([lane(), lane(), lane()]);
    expect(successes).toEqual([]);
    expect(connections).toBe(0);
    expect(existsSync(join(dirname(tmpdir()), "whetstone-escape"))).toBe(false);
  }, 120_000);

  test("the sibling was graded rightly all along, and the jail is healthy afterwards", async () => {
    stop = true;
    expect(await siblings).toBeGreaterThan(3);
    expect(rewarded(await jail.run(honestJob, () => "continue"))).toBe(true);
  }, 60_000);
});
