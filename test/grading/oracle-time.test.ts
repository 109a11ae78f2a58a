// What programs can learn of verdicts from the clock: when the next test of a round starts, when the next round starts, and when the next
// program starts, each beside the verdict before it. Guesses are random, so "wrong starts later" is right half the time (an area under the ROC
// curve of 1/2) within what noise allows. The same with somebody who knows the verdict and waits a moment shows that it would be seen.
// WHET_ORACLE=N makes that many observations of each, at both levels and over HTTP.
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Random } from "../../src/core/random.ts";
import { createGrader, normalizeTests } from "../../src/grading/index.ts";
import { openFusion } from "../../src/sandbox/fusion/fusion.ts";
import { startFusionServer } from "../../src/sandbox/fusion/server.ts";
import { type JailLevel, openJail } from "../../src/sandbox/jail.ts";
import { type Sandbox, SandboxError, type TestOutcome } from "../../src/sandbox/sandbox.ts";

const wanted = Number(process.env["WHET_ORACLE"] ?? 0);
/** The wait of who knows the verdict: longer than a test between tests, elsewhere more than a busy machine hides. */
const waitMs = 40;
const longWaitMs = ({ description }: Sandbox) => (description.kind === "fusion" ? 2_000 : 80);
const random = new Random("oracle");
const coin = () => random.float() < 0.5;

/** One test as its program saw it. Milliseconds of one clock for all. */
interface Seen {
  program: string;
  test: number;
  start: number;
  end: number;
}

/** Prints a guess behind blanks, which a comparison has to walk over, and says when it was there. */
const guesser = (name: string, guesses: readonly string[]) => `# ${name}
import os, sys, time
start = time.monotonic_ns()
k = int(input())
out = memoryview(b" " * ${256 * 1024} + ${JSON.stringify(guesses)}[k].encode() + b"\\n")
while out: out = out[os.write(1, out):]
print(${JSON.stringify(name)}, k, start / 1e6, time.monotonic_ns() / 1e6, file=sys.stderr)
`;

/** Knows a verdict, and waits. */
interface Waiter {
  beforeRun?(tests: number): number;
  afterTest?(seen: Seen): number;
}

/** A sandbox, and what its programs saw. */
function watched(sandbox: Sandbox, waiter: Waiter = {}): { sandbox: Sandbox; seen: Seen[] } {
  const seen: Seen[] = [];
  const run: Sandbox["run"] = async (job, afterTest, options) => {
    await sleep(waiter.beforeRun?.(job.tests.length) ?? 0);
    return sandbox.run(
      job,
      (outcome, index) => {
        const [program, test, start, end] = outcome.stderrTail.trim().split(" ");
        const one = { program: program!, test: Number(test), start: Number(start), end: Number(end) };
        expect(one.end, outcome.stderrTail).toBeGreaterThan(one.start);
        seen.push(one);
        // As a comparison in this place would: nothing else goes on meanwhile.
        const until = performance.now() + (waiter.afterTest?.(one) ?? 0);
        while (performance.now() < until);
        return afterTest(outcome, index);
      },
      options,
    );
  };
  return { sandbox: { description: sandbox.description, run, supports: async () => {}, close: async () => {} }, seen };
}

/** How long after something the next thing started, and whether the answer before was right. */
interface Observation {
  afterMs: number;
  right: boolean;
}

const answers = ["YES", "NO"] as const;
/** Answers that nobody computes, guesses at them, and which of those are right. */
function guessing(tests: number) {
  const expected = Array.from({ length: tests }, () => answers[Number(coin())]!);
  const problem = {
    tests: normalizeTests({ inputs: expected.map((_, index) => `${index}\n`), outputs: expected }).tests,
  };
  const guess = (right: boolean, test: number) => answers[Number((expected[test] === "NO") === right)]!;
  return { problem, guess };
}

/** Hands over a test only when the one before has ended and been looked at. */
function oneByOne(sandbox: Sandbox): Sandbox {
  const run: Sandbox["run"] = async (job, afterTest, options) => {
    const outcomes: TestOutcome[] = [];
    for (const [index, test] of job.tests.entries()) {
      const one = await sandbox.run({ ...job, tests: [test] }, (outcome) => afterTest(outcome, index), options);
      outcomes.push(...one);
    }
    return outcomes;
  };
  return { description: sandbox.description, run, supports: async () => {}, close: async () => {} };
}

/** A test starts when the one before it in the round has ended; the verdict is on that one, or on the one before: who is handed over ahead waits for
 * neither, and the next for the first at most. */
async function testsOfRound(sandbox: Sandbox, count: number, knows: boolean, apart: 1 | 2): Promise<Observation[]> {
  const observations: Observation[] = [];
  const round = 16;
  const inOrder = knows && apart === 1 ? oneByOne(sandbox) : sandbox;
  while (observations.length < count) {
    const { problem, guess } = guessing(round);
    const rights = Array.from({ length: round }, coin);
    const afterTest = ({ test }: Seen) => (rights[test] ? 0 : waitMs);
    const { sandbox: inner, seen } = watched(inOrder, knows ? { afterTest } : {});
    await createGrader({ sandbox: inner, cacheSize: 0 }).grade({ problem, code: guesser("a", rights.map(guess)) });
    for (let test = apart; test < round; test++)
      observations.push({ afterMs: seen[test]!.start - seen[test - 1]!.end, right: rights[test - apart]! });
  }
  return observations;
}

/** A program's second round starts when its sibling has ended the first, in which that was right until the last test, or was never right. */
async function rounds(sandbox: Sandbox, count: number, knows: boolean): Promise<Observation[]> {
  const observations: Observation[] = [];
  const { problem, guess } = guessing(17);
  while (observations.length < count) {
    const right = coin();
    // Longer than what a busy machine puts between two rounds by itself: these are few.
    const beforeRun = (tests: number) => (tests === 1 && !right ? 4 * longWaitMs(sandbox) : 0);
    const { sandbox: inner, seen } = watched(sandbox, knows ? { beforeRun } : {});
    const grader = createGrader({ sandbox: inner, cacheSize: 0 });
    const passes = guesser(
      "passes",
      Array.from({ length: 17 }, (_, index) => guess(true, index)),
    );
    const other = guesser(
      "fails",
      Array.from({ length: 17 }, (_, index) => guess(right && index < 15, index)),
    );
    await Promise.all([passes, other].map((code) => grader.grade({ problem, code })));
    const next = seen.find(({ test }) => test === 16)!;
    expect(seen.filter(({ start }) => start < next.start)).toHaveLength(32);
    const ended = Math.max(...seen.filter(({ test }) => test < 16).map(({ end }) => end));
    observations.push({ afterMs: next.start - ended, right });
  }
  return observations;
}

/** A program of the problem starts in the place of the one before: in one group, or when its caller has been given the verdict. */
async function programs(sandbox: Sandbox, count: number, knows: boolean, atOnce: number): Promise<Observation[]> {
  const observations: Observation[] = [];
  while (observations.length < count) {
    const { problem, guess } = guessing(1);
    const rights = Array.from({ length: Math.min(count + 1, 61) }, coin);
    const afterTest = ({ program }: Seen) => (rights[Number(program)] ? 0 : longWaitMs(sandbox));
    const { sandbox: inner, seen } = watched(sandbox, knows ? { afterTest } : {});
    const grader = createGrader({ sandbox: inner, concurrency: 1, cacheSize: 0 });
    const queue = rights.map((right, index) => guesser(`${index}`, [guess(right, 0)]));
    const lane = async () => {
      for (let code = queue.shift(); code !== undefined; code = queue.shift()) await grader.grade({ problem, code });
    };
    await Promise.all(Array.from({ length: atOnce }, lane));
    for (let index = 1; index < seen.length; index++) {
      const before = seen[index - 1]!;
      observations.push({ afterMs: seen[index]!.start - before.end, right: rights[Number(before.program)]! });
    }
  }
  return observations;
}

/** The area under the ROC curve of "wrong starts later", and how far noise takes it from 1/2 once in 15,000 times. */
function separation(observations: readonly Observation[]): { area: number; noise: number } {
  const sorted = observations.toSorted((a, b) => a.afterMs - b.afterMs);
  const right = sorted.filter((one) => one.right).length;
  const wrong = sorted.length - right;
  let rank = 0;
  for (const [index, one] of sorted.entries()) if (!one.right) rank += index + 1;
  const area = (rank - (wrong * (wrong + 1)) / 2) / (right * wrong);
  return { area, noise: 4 * Math.sqrt((sorted.length + 1) / (12 * right * wrong)) };
}

const backends = ["jail", "landlock", "HTTP"] as const;
describe.each(backends.slice(0, wanted > 0 ? 3 : 1))("from the clock of programs, %s", (backend) => {
  let sandbox: Sandbox | undefined;
  let missing = "";
  const closing: (() => Promise<void>)[] = [];

  beforeAll(async () => {
    try {
      const jail = await openJail({ slots: 2, ...(backend === "HTTP" ? {} : { levels: [backend as JailLevel] }) });
      closing.unshift(() => jail.close());
      sandbox = jail;
    } catch (error) {
      if (!(error instanceof SandboxError)) throw error;
      missing = error.message;
      return;
    }
    if (backend !== "HTTP") return;
    const server = await startFusionServer({
      jail: sandbox as Awaited<ReturnType<typeof openJail>>,
      port: 0,
      concurrency: 2,
    });
    closing.unshift(() => server.close());
    const fusion = await openFusion({ url: server.url, maxConcurrency: 2 });
    closing.unshift(() => fusion.close());
    sandbox = fusion;
  }, 60_000);
  afterAll(async () => {
    for (const close of closing) await close();
  });

  type Observe = (sandbox: Sandbox, count: number, knows: boolean) => Promise<Observation[]>;
  const measures: (readonly [what: string, observe: Observe, few: number])[] = [
    ["the next test of a round", (...args) => testsOfRound(...args, 1), 150],
    ["the test after the next", (...args) => testsOfRound(...args, 2), 150],
    ["the next round", rounds, 45],
    ["the next program of a group", (...args) => programs(...args, 1_000), 80],
    ["the next program of a caller", (...args) => programs(...args, 1), 80],
  ];
  // Over HTTP the tests of a round travel together: no verdict exists before all have ended.
  if (backend === "HTTP") measures.splice(0, 2);
  test.for(measures)(
    "%s starts at a moment that says nothing of the verdict before it",
    { timeout: wanted > 0 ? 3_600_000 : 180_000 },
    async ([what, observe, few], context) => {
      if (!sandbox) return context.skip(missing);
      const { area, noise } = separation(await observe(sandbox, wanted > 0 ? wanted : few, false));
      const known = separation(await observe(sandbox, few, true));
      if (wanted > 0)
        console.log(
          `${backend}, ${what}: area ${area.toFixed(3)} (noise ±${noise.toFixed(3)}) over ${wanted}, known ${known.area.toFixed(3)}`,
        );
      expect(Math.abs(area - 0.5)).toBeLessThan(noise);
      expect(known.area - 0.5).toBeGreaterThan(known.noise);
    },
  );
});
