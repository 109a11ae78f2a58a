// The grader over a small sandbox of the test's own, which shows what a sandbox is told and lets it fail at will. Real programs
// in real sandboxes are in test/grading/.
import { expect, test } from "vitest";
import { type Job, type Sandbox, SandboxError, type TestOutcome } from "../sandbox/sandbox.ts";
import { createGrader } from "./grade.ts";
import { normalizeTests } from "./normalize.ts";

const outcome = (stdout: string, more: Partial<TestOutcome> = {}): TestOutcome => ({
  status: "finished",
  stdout: Buffer.from(stdout),
  stderrTail: "",
  exitCode: 0,
  signal: null,
  wallMs: 1,
  cpuMs: 1,
  maxRssBytes: 0,
  ...more,
});

/** Runs a "program" written as a JavaScript function, and keeps every job it was given. */
class FunctionSandbox implements Sandbox {
  readonly description = { kind: "jail", summary: "a function", lacks: [], python: "" } as const;
  readonly jobs: Job[] = [];
  readonly program: (input: string, job: Job, index: number) => TestOutcome | Promise<TestOutcome>;

  constructor(program: FunctionSandbox["program"]) {
    this.program = program;
  }

  async run(job: Job, afterTest: Parameters<Sandbox["run"]>[1], options: { signal?: AbortSignal } = {}) {
    this.jobs.push(job);
    const outcomes: TestOutcome[] = [];
    for (const [index, input] of job.tests.entries()) {
      options.signal?.throwIfAborted();
      outcomes.push(await this.program(input.kind === "stdin" ? input.stdin : "", job, index));
      if (afterTest(outcomes[index]!, index) === "stop") break;
    }
    return outcomes;
  }

  async supports() {}

  close() {
    return Promise.resolve();
  }
}

const echo = () => new FunctionSandbox((input) => outcome(input));
const problem = { tests: normalizeTests({ inputs: ["1", "2", "3"], outputs: ["1", "2", "3"] }).tests };
const fenced = (code: string) => `Here:\n\`\`\`python\n${code}\n\`\`\``;

test("the reward table: no block, a wrong program, a right one", async () => {
  const sandbox = new FunctionSandbox((input, job) => outcome(job.source === "right" ? input : "0"));
  const grader = createGrader({ sandbox });
  const rewards = [];
  for (const response of ["no code", fenced("wrong"), fenced("right")]) {
    const { verdict, status, reward, formatOk } = await grader.grade({ problem, response });
    rewards.push([verdict, status, reward, formatOk]);
  }
  expect(rewards).toEqual([
    ["fail", "format_error", -0.1, false],
    ["fail", "wrong_answer", 0, true],
    ["pass", "pass", 1, true],
  ]);
  expect(sandbox.jobs.map((job) => job.source)).toEqual(["wrong", "right"]);
});

test("an answer that was cut off is graded by its code; the format weighs what is asked for", async () => {
  const grader = createGrader({ sandbox: echo(), reward: { formatCoef: 0.5 } });
  const graded = await grader.grade({ problem, response: fenced("x"), truncated: true });
  expect(graded).toMatchObject({ reward: 1, status: "pass", truncated: true });
  const without = await grader.grade({ problem, response: "x", truncated: true });
  expect(without).toMatchObject({ reward: -0.5, status: "format_error", truncated: true });
});

test("counts what passed before the first failure; fractional credit only when asked for", async () => {
  const half = () => new FunctionSandbox((input) => outcome(input === "2" ? "no" : input));
  const sandbox = half();
  const result = await createGrader({ sandbox }).grade({ problem, code: "x" });
  expect(result).toMatchObject({ verdict: "fail", passed: 1, total: 3, ran: 3, firstFailed: 1, reward: 0 });
  expect(result.tests[1]!.detail).toBe('got "no", expected "2"');
  expect(result.failure).toEqual({
    testIndex: 1,
    status: "wrong_answer",
    input: "2",
    expected: "2",
    printed: "no",
    stderr: "",
  });
  const fractional = await createGrader({ sandbox: half(), reward: { fractional: true } }).grade({
    problem,
    code: "x",
  });
  expect(fractional.reward).toBeCloseTo(1 / 3);
});

test("verdicts decide between rounds only: a wrong answer changes nothing that the sandbox could see", async () => {
  const texts = Array.from({ length: 100 }, (_, index) => String(index));
  const many = { tests: normalizeTests({ inputs: texts, outputs: texts }).tests };
  const ran = async (wrong: number, more: Partial<TestOutcome> = {}) => {
    const sandbox = new FunctionSandbox((input) => (input === String(wrong) ? outcome("no", more) : outcome(input)));
    const result = await createGrader({ sandbox }).grade({ problem: many, code: "x" });
    expect(result).toMatchObject({ verdict: "fail", firstFailed: wrong, passed: wrong });
    expect(result.failure).toMatchObject({ testIndex: wrong, printed: "no" });
    return result.ran;
  };
  expect(await Promise.all([0, 1, 14, 15].map((wrong) => ran(wrong)))).toEqual([16, 16, 16, 16]);
  expect(await Promise.all([16, 40, 63].map((wrong) => ran(wrong)))).toEqual([64, 64, 64]);
  expect(await Promise.all([64, 99].map((wrong) => ran(wrong)))).toEqual([100, 100]);
  // What a program knows of itself may end it at once.
  for (const more of [{ exitCode: 1 }, { exitCode: null, signal: 9 }, { status: "time-limit" }] as const)
    expect(await ran(3, more)).toBe(4);
});

test("a program longer than any judge takes is refused, not run", async () => {
  const sandbox = echo();
  const result = await createGrader({ sandbox }).grade({ problem, code: `#${"x".repeat(70 * 1024 ** 2)}` });
  expect(result).toMatchObject({ verdict: "fail", status: "compile_error", reward: 0, ran: 0 });
  expect(result.failure?.stderr).toContain("at most 1048576 are run");
  expect(sandbox.jobs).toEqual([]);
});

test("a time limit that load could explain is given and not remembered", async () => {
  const late = (waitedMs: number) =>
    new FunctionSandbox(() => outcome("", { status: "time-limit", wallMs: 6_250, waitedMs }));
  for (const [waitedMs, runs] of [
    [3_000, 2],
    [20, 1],
  ] as const) {
    const sandbox = late(waitedMs);
    const grader = createGrader({ sandbox });
    for (let time = 0; time < 2; time++)
      expect(await grader.grade({ problem, code: "x" })).toMatchObject({ verdict: "fail", status: "time_limit" });
    expect(sandbox.jobs).toHaveLength(runs);
  }
});

test("a module that is not there is named, with what brings it", async () => {
  const stderrTail = "Traceback (most recent call last):\nModuleNotFoundError: No module named 'numpy.linalg'\n";
  const sandbox = new FunctionSandbox(() => outcome("", { status: "missing-module", exitCode: 1, stderrTail }));
  const result = await createGrader({ sandbox }).grade({ problem, code: "import numpy.linalg" });
  expect(result).toMatchObject({ verdict: "fail", status: "missing_module", reward: 0 });
  expect(result.tests[0]!.detail).toMatch(/No module named numpy\.linalg: .*sandbox_packages=numpy/);
});

test("forged reports of millions of brackets are judged without being built", async () => {
  const call = normalizeTests([{ input: "1", output: "1", fn_name: "f" }]).tests;
  const wide = normalizeTests([{ input: "1", output: JSON.stringify(Array(50_000).fill(1)), fn_name: "f" }]).tests;
  for (const [tests, status] of [
    [call, "wrong_answer"],
    [wide, "no_result"],
  ] as const) {
    const frame = "[".repeat(8_388_000) + "]".repeat(8_388_000);
    const sandbox = new FunctionSandbox(() => outcome("", { frame }));
    const before = process.memoryUsage().heapUsed;
    const result = await createGrader({ sandbox }).grade({ problem: { tests }, code: "x" });
    expect(result).toMatchObject({ verdict: "fail", status });
    expect(process.memoryUsage().heapUsed - before).toBeLessThan(150e6);
  }
});

test("right output with a failing exit status, or without evidence, is a failure", async () => {
  const cases: [Partial<TestOutcome>, string][] = [
    [{ exitCode: 1 }, "runtime_error"],
    [{ exitCode: null, signal: 9 }, "runtime_error"],
    [{ status: "time-limit" }, "time_limit"],
    [{ status: "no-result" }, "no_result"],
  ];
  for (const [more, status] of cases) {
    const sandbox = new FunctionSandbox((input) => outcome(input, more));
    expect(await createGrader({ sandbox }).grade({ problem, code: "x" })).toMatchObject({ verdict: "fail", status });
  }
  const call = normalizeTests([{ input: "1", output: "1", fn_name: "f" }]).tests;
  for (const frame of [undefined, "", "forged", '["i", "2"]', `["s", "${"x".repeat(200_000)}"]`]) {
    const sandbox = new FunctionSandbox(() => outcome("1", frame === undefined ? {} : { frame }));
    const { verdict } = await createGrader({ sandbox }).grade({ problem: { tests: call }, code: "x" });
    expect(verdict).toBe("fail");
  }
});

test("a sandbox that fails gives no verdict and no reward, and the next program is graded", async () => {
  let broken = true;
  const sandbox = new FunctionSandbox((input) => {
    if (broken) throw new SandboxError("sandbox/unavailable", "down");
    return outcome(input);
  });
  const grader = createGrader({ sandbox });
  const result = await grader.grade({ problem, code: "x" });
  expect(result).toMatchObject({ verdict: "ungraded", status: "sandbox_error", reward: null, message: "down" });
  broken = false;
  expect(await grader.grade({ problem, code: "x" })).toMatchObject({ verdict: "pass", cached: false });
});

test("a sandbox that loses tests gives no verdict", async () => {
  const sandbox = echo();
  sandbox.run = (job, afterTest) => {
    afterTest(outcome("1"), 0);
    return Promise.resolve([outcome(job.source)]);
  };
  expect((await createGrader({ sandbox }).grade({ problem, code: "x" })).verdict).toBe("ungraded");
});

test("the whole problem has a time limit too", async () => {
  const sandbox = new FunctionSandbox((input) => outcome(input, { wallMs: 20_000 }));
  const result = await createGrader({ sandbox, limits: { rewardTimeoutS: 6 } }).grade({ problem, code: "x" });
  expect(result).toMatchObject({ verdict: "fail", status: "time_limit", ran: 2 });
});

test("equal programs run once, at the same moment and later; another limit or comparator runs again", async () => {
  const sandbox = echo();
  const grader = createGrader({ sandbox });
  const results = await Promise.all(Array.from({ length: 8 }, () => grader.grade({ problem, code: "same" })));
  expect(results.map((result) => result.verdict)).toEqual(Array(8).fill("pass"));
  expect(results.filter((result) => !result.cached)).toHaveLength(1);
  expect(await grader.grade({ problem, code: "same" })).toMatchObject({ cached: true, sandboxMs: 0 });
  expect(sandbox.jobs).toHaveLength(1);
  await grader.grade({ problem: { ...problem, comparator: "lcb" }, code: "same" });
  await grader.grade({ problem, code: "other" });
  expect(sandbox.jobs).toHaveLength(3);
  expect(await grader.grade({ problem, code: "same", fresh: true })).toMatchObject({ verdict: "pass", cached: false });
  expect(sandbox.jobs).toHaveLength(4);
});

test("a caller that gives up does not take a shared run with it", async () => {
  let release = () => {};
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  const sandbox = new FunctionSandbox(async (input) => {
    await held;
    return outcome(input);
  });
  const grader = createGrader({ sandbox });
  const controller = new AbortController();
  const first = grader.grade({ problem, code: "same" }, { signal: controller.signal });
  const second = grader.grade({ problem, code: "same" }, { signal: new AbortController().signal });
  controller.abort(new Error("stopped"));
  await expect(first).rejects.toThrow("stopped");
  release();
  expect((await second).verdict).toBe("pass");
});

test("whoever asks after a run was cancelled gets a run of their own", async () => {
  const sandbox = new FunctionSandbox(async (input) => {
    await new Promise((resolve) => setImmediate(resolve));
    return outcome(input);
  });
  const grader = createGrader({ sandbox });
  const controller = new AbortController();
  const first = grader.grade({ problem, code: "same" }, { signal: controller.signal });
  const rejected = expect(first).rejects.toThrow("stopped");
  controller.abort(new Error("stopped"));
  const second = grader.grade({ problem, code: "same" });
  await rejected;
  expect((await second).verdict).toBe("pass");
});

test("at most `concurrency` programs are in the sandbox", async () => {
  let active = 0;
  let most = 0;
  const sandbox = new FunctionSandbox(async (input) => {
    most = Math.max(most, ++active);
    await new Promise((resolve) => setImmediate(resolve));
    active--;
    return outcome(input);
  });
  const grader = createGrader({ sandbox, concurrency: 3 });
  await Promise.all(Array.from({ length: 20 }, (_, index) => grader.grade({ problem, code: `${index}` })));
  expect(most).toBe(3);
});

test("max_tests picks tests by position, by size, or by seed, always in data order", async () => {
  const inputs = ["1", "22", "333", "4", "55555"];
  const { tests } = normalizeTests({ inputs, outputs: inputs });
  const picked = async (selection: "first" | "longest_input" | "random", seed = 0) => {
    const sandbox = echo();
    await createGrader({ sandbox, tests: { maxTests: 2, selection, seed } }).grade({
      problem: { id: "p", tests },
      code: "x",
    });
    return sandbox.jobs[0]!.tests.map((input) => (input.kind === "stdin" ? input.stdin : ""));
  };
  expect(await picked("first")).toEqual(["1", "22"]);
  expect(await picked("longest_input")).toEqual(["333", "55555"]);
  expect(await picked("random", 1)).toEqual(await picked("random", 1));
  const choices = await Promise.all(Array.from({ length: 10 }, (_, seed) => picked("random", seed)));
  expect(new Set(choices.map(String)).size).toBeGreaterThan(2);
});

test("a sandbox is never told what is expected", async () => {
  const marker = "EXPECTED-7f3a9c";
  const { tests } = normalizeTests({ inputs: ["1", "2"], outputs: [marker, marker] });
  const calls = normalizeTests({ fn_name: "f", inputs: [[1]], outputs: [[marker]] }).tests;
  const sandbox = echo();
  const grader = createGrader({ sandbox });
  for (const list of [tests, calls]) await grader.grade({ problem: { tests: list }, code: "x" });
  expect(sandbox.jobs).toHaveLength(2);
  expect(JSON.stringify(sandbox.jobs)).not.toContain(marker);
});

test("a long comparison goes on beside the tests and still decides", async () => {
  const rows = Array.from({ length: 80_000 }, (_, index) => `${index} ${index}.5`);
  const expected = rows.join("\n");
  const { tests } = normalizeTests({ inputs: ["a", "b"], outputs: [expected, "b"] });
  for (const [tail, verdict] of [
    ["", "pass"],
    ["\nmore", "fail"],
  ]) {
    const sandbox = new FunctionSandbox((input) => outcome(input === "a" ? rows.join(" \n\n") + tail : "b"));
    const result = await createGrader({ sandbox }).grade({ problem: { tests }, code: "x" });
    expect([result.verdict, result.passed]).toEqual([verdict, verdict === "pass" ? 2 : 0]);
  }
});

test("audit flags do not change the verdict", async () => {
  const code = "import ctypes, atexit\nos._exit(0)\nprint(5)";
  const result = await createGrader({ sandbox: echo() }).grade({ problem, code });
  expect(result.verdict).toBe("pass");
  expect(result.flags).toEqual(["ctypes", "os-exit", "atexit", "reads-no-input"]);
});
