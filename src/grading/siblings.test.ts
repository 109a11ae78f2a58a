// Programs of one problem go in step, whatever happens to some of them. The sandbox is the test's own and writes down what starts when.
import { setImmediate as pause } from "node:timers/promises";
import fc from "fast-check";
import { expect, test } from "vitest";
import { Limiter } from "../core/limiter.ts";
import { defaultLimits, type Sandbox, SandboxError, type TestOutcome } from "../sandbox/sandbox.ts";
import { type Judgement, judge } from "./judge.ts";
import { normalizeTests } from "./normalize.ts";
import { Siblings } from "./siblings.ts";

const rules = {
  comparator: "tolerant",
  limits: defaultLimits,
  preamble: true,
  problemMs: Number.POSITIVE_INFINITY,
} as const;

/** What a program does: where it is wrong first, crashes, is given up, or loses its sandbox; and how much it prints. */
interface Plan {
  wrongAt?: number;
  crashAt?: number;
  abortAt?: number;
  lostAt?: number;
  padding?: number;
  /** Comes when this many tests have been run in all. */
  joinsAfter?: number;
}

const tests = normalizeTests({
  inputs: Array.from({ length: 70 }, (_, index) => `${index}`),
  outputs: Array.from({ length: 70 }, (_, index) => `${index}`),
}).tests;
const roundOf = (index: number) => (index < 16 ? 0 : index < 64 ? 1 : 2);

interface Event {
  program: number;
  test: number;
  what: "start" | "end" | "gone";
}

/** Grades programs together; what started and ended, and what became of each. */
async function together(plans: readonly Plan[], options: { slots: number; maxHeldBytes?: number; openMs?: number }) {
  const siblings = new Siblings(options);
  const limiter = new Limiter(options.slots);
  const events: Event[] = [];
  let maxHeld = 0;
  const results = await Promise.allSettled(
    plans.map(async (plan, program): Promise<Judgement> => {
      while (events.length / 2 < (plan.joinsAfter ?? 0)) await pause();
      const controller = new AbortController();
      const outcomeOf = (test: number): TestOutcome => ({
        status: "finished",
        stdout: Buffer.from(" ".repeat(plan.padding ?? 0) + (test === plan.wrongAt ? "no" : test)),
        stderrTail: "",
        exitCode: test === plan.crashAt ? 1 : 0,
        signal: null,
        wallMs: 1,
        cpuMs: 1,
        maxRssBytes: 0,
      });
      const sandbox: Sandbox = {
        description: { kind: "jail", summary: "", lacks: [], python: "" },
        supports: async () => {},
        close: async () => {},
        async run(job, afterTest, { signal } = {}) {
          const outcomes: TestOutcome[] = [];
          for (const input of job.tests) {
            const test = Number(input.kind === "stdin" && input.stdin);
            events.push({ program, test, what: "start" });
            for (let turn = (program * 7 + test * 3) % 5; turn >= 0; turn--) await pause();
            if (test === plan.abortAt) controller.abort(new Error("given up"));
            if (test === plan.lostAt) throw new SandboxError("sandbox/lost", "lost");
            signal?.throwIfAborted();
            outcomes.push(outcomeOf(test));
            events.push({ program, test, what: "end" });
            if (afterTest(outcomes.at(-1)!, outcomes.length - 1) === "stop") break;
            maxHeld = Math.max(maxHeld, siblings.heldBytes);
          }
          return outcomes;
        },
      };
      const place = siblings.join("problem");
      const turn = (work: () => Promise<void>) => limiter.run(work, { signal: controller.signal });
      return await judge({ sandbox, place, turn, signal: controller.signal }, "", tests, rules).finally(() => {
        events.push({ program, test: -1, what: "gone" });
        place.leave();
      });
    }),
  );
  expect(siblings.heldBytes).toBe(0);
  return { events, results, maxHeld };
}

function isRight(plan: Plan, result: PromiseSettledResult<Judgement>): void {
  const ends = [plan.wrongAt, plan.crashAt].filter((at) => at !== undefined);
  const firstBad = Math.min(...ends, tests.length);
  // Nothing is run past a crash, nor past the round of a wrong answer.
  const stops = Math.min(plan.crashAt ?? 999, plan.wrongAt === undefined ? 999 : [15, 63, 69][roundOf(plan.wrongAt)]!);
  const cut = Math.min(plan.abortAt ?? 999, plan.lostAt ?? 999);
  if (cut <= Math.min(stops, tests.length - 1)) expect(result.status).toBe("rejected");
  else if (firstBad === tests.length)
    expect(result).toMatchObject({ status: "fulfilled", value: { status: "pass", passed: tests.length } });
  else expect(result).toMatchObject({ status: "fulfilled", value: { firstFailed: firstBad, passed: firstBad } });
}

/** No round begins while a sibling that is still there has an earlier one to run. */
function inStep(events: readonly Event[], programs: number): void {
  const lastRound = (program: number) =>
    Math.max(
      ...events.filter((event) => event.program === program && event.what === "start").map((e) => roundOf(e.test)),
    );
  for (const [at, event] of events.entries()) {
    if (event.what !== "start" || roundOf(event.test) === 0) continue;
    for (let program = 0; program < programs; program++) {
      const after = events.slice(at).filter((other) => other.program === program && other.test >= 0);
      const earliest = Math.min(...after.map((other) => roundOf(other.test)), 99);
      expect(earliest, `${JSON.stringify(event)} beside ${program} (${lastRound(program)})`).toBeGreaterThanOrEqual(
        roundOf(event.test),
      );
    }
  }
}

const at = fc.option(fc.integer({ min: 0, max: 69 }), { nil: undefined });
const plan: fc.Arbitrary<Plan> = fc.record({
  wrongAt: at,
  crashAt: fc.oneof({ weight: 2, arbitrary: fc.constant(undefined) }, at),
  abortAt: fc.oneof({ weight: 4, arbitrary: fc.constant(undefined) }, at),
  lostAt: fc.oneof({ weight: 4, arbitrary: fc.constant(undefined) }, at),
  padding: fc.constantFrom(0, 100, 70_000),
}) as fc.Arbitrary<Plan>;

test("siblings go in step and every one comes to its end: whatever is wrong, crashes, is given up or lost, in groups of any size", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(plan, { minLength: 1, maxLength: 7 }),
      fc.integer({ min: 1, max: 3 }),
      fc.constantFrom(0, 50, 2_000, 1e9),
      async (plans, slots, maxHeldBytes) => {
        const { events, results } = await together(plans, { slots, maxHeldBytes });
        for (const [program, one] of plans.entries()) isRight(one, results[program]!);
        inStep(events, plans.length);
      },
    ),
    { numRuns: 30 },
  );
}, 60_000);

test("who comes late is judged too, and keeps nobody waiting", async () => {
  for (const openMs of [0, 10_000]) {
    const late = [0, 5, 20, 40, 100].map((joinsAfter) => ({ joinsAfter, padding: 10 }));
    const { results } = await together([{}, {}, { wrongAt: 3 }, ...late], { slots: 2, openMs });
    expect(results.map((one) => one.status === "fulfilled" && one.value.passed)).toEqual([
      70, 70, 3, 70, 70, 70, 70, 70,
    ]);
  }
});

test("what is held until it is judged is bounded: beyond, nobody starts until it has been judged", async () => {
  const plans = Array.from({ length: 6 }, () => ({ padding: 1_000 }));
  const { maxHeld, results } = await together(plans, { slots: 2, maxHeldBytes: 20_000 });
  expect(results.every((one) => one.status === "fulfilled" && one.value.status === "pass")).toBe(true);
  // A round of two programs may be on its way when the bound is reached.
  expect(maxHeld).toBeLessThan(20_000 + 2 * 48 * 1_010);
});
