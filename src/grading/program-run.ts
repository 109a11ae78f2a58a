// Runs one program on its tests, a round at a time. The sandbox gets inputs only; expected values stay here. Nothing in a round depends on
// whether an answer is right: what came out is kept, as small as it can be made without looking at what is expected, until the round is over.
import { entryOf } from "../core/maps.ts";
import { whet } from "../core/program.ts";
import { type Sandbox, SandboxError, type TestInput, type TestOutcome } from "../sandbox/sandbox.ts";
import { longestShown, shownOfFrame, shownOfOutput } from "./failure.ts";
import { writeJson } from "./json.ts";
import type { GradeStatus, JudgeRules } from "./judge.ts";
import { shrinkInThread } from "./judge-thread.ts";
import type { NormalizedTest } from "./normalize.ts";
import { restOfRound } from "./rounds.ts";
import type { Place, Turn } from "./siblings.ts";
import type { Evidence } from "./verdicts.ts";

/** A longer output is made smaller as soon as it is there. */
const shortOutput = 64 * 1024;
/** A program that has printed this much is taken out of the sandbox until its outputs are smaller; then its round goes on. */
const maxPrintedBytes = 32 * 1024 ** 2;

/** Where a program runs and waits for its siblings. */
export interface RunPlace {
  sandbox: Sandbox;
  place: Place;
  turn: Turn;
  signal?: AbortSignal | undefined;
}

/** One test that was run. */
export interface RanTest {
  /** Of stdout and the returned value only what people are shown. */
  outcome: TestOutcome;
  printedBytes: number;
  /** What the program did itself; undefined where the evidence decides. */
  status?: GradeStatus;
}

/** What a sandbox may know of a test. */
const sandboxInput = (test: NormalizedTest): TestInput =>
  test.kind === "stdin"
    ? { kind: "stdin", stdin: test.input }
    : { kind: "call", functionName: test.functionName, argumentsJson: test.args.map(writeJson) };
const inputs = new WeakMap<readonly NormalizedTest[], readonly TestInput[]>();

/** The expected values of a call as text. */
const expectedTexts = ({ expected, expectedAlt }: NormalizedTest & { kind: "functional" }) => ({
  expected: writeJson(expected),
  ...(expectedAlt === undefined ? {} : { expectedAlt: writeJson(expectedAlt) }),
});
const texts = new WeakMap<NormalizedTest, ReturnType<typeof expectedTexts>>();

export class ProgramRun {
  readonly outcomes: TestOutcome[] = [];
  readonly #where: RunPlace;
  readonly #source: string;
  readonly #tests: readonly NormalizedTest[];
  readonly #rules: JudgeRules;
  #spentMs = 0;
  #stopped = false;

  constructor(where: RunPlace, source: string, tests: readonly NormalizedTest[], rules: JudgeRules) {
    this.#where = where;
    this.#source = source;
    this.#tests = tests;
    this.#rules = rules;
  }

  /** Nothing more is run: all tests were, or the program ended it by what it did. */
  get ended(): boolean {
    return this.#stopped || this.outcomes.length === this.#tests.length;
  }

  /** Runs the next round. What is to be judged of it is in the place's hands. */
  async round(): Promise<RanTest[]> {
    const { place, turn, signal } = this.#where;
    const start = this.outcomes.length;
    // When every test is run, no verdict decides anything before the end.
    const end = this.#rules.everyTest ? this.#tests.length : start + restOfRound(start);
    const ran: RanTest[] = [];
    while (!this.ended && this.outcomes.length < end) await place.run(turn, () => this.#part(end, ran), signal);
    return ran;
  }

  /** Runs tests up to `end`, or until as much is printed as may be held at the same moment. */
  async #part(end: number, ran: RanTest[]): Promise<void> {
    const { sandbox, place, signal } = this.#where;
    const { language, limits, preamble, problemMs, everyTest } = this.#rules;
    const all = entryOf(inputs, this.#tests, () => this.#tests.map(sandboxInput));
    const tests = all.slice(this.outcomes.length, end);
    const evidence: (Evidence | Promise<Evidence>)[] = [];
    let printedBytes = 0;
    let endedItself = false;
    let asked = false;
    const outcomes = await sandbox.run(
      { language, source: this.#source, tests, limits, preamble },
      (outcome) => {
        const test = this.#tests[this.outcomes.length]!;
        printedBytes += outcome.stdout.length + (outcome.frame?.length ?? 0);
        const { kept, ...one } = this.#taken(outcome, test);
        if (kept) evidence.push(kept);
        ran.push(one);
        this.outcomes.push(outcome);
        this.#spentMs += outcome.wallMs;
        endedItself = outcome.status !== "finished" || outcome.exitCode !== 0 || outcome.signal !== null;
        this.#stopped = (endedItself && !everyTest) || this.#spentMs > problemMs;
        asked = this.#stopped || printedBytes > maxPrintedBytes;
        return asked ? "stop" : "continue";
      },
      signal ? { signal } : {},
    );
    place.hold(await Promise.all(evidence.map((one) => Promise.resolve(one))));
    if (asked || outcomes.length === tests.length) return;
    // Without being asked, a sandbox stops only when it has lost the program again and again.
    if (endedItself) this.#stopped = true;
    else
      throw new SandboxError(
        "sandbox/incomplete",
        `The sandbox answered for ${outcomes.length} of ${tests.length} tests and gave no reason. Grade the program again; if it repeats, run ${whet} doctor.`,
      );
  }

  /** What is to be judged, apart from what people are shown. */
  #taken(outcome: TestOutcome, test: NormalizedTest): RanTest & { kept?: Evidence | Promise<Evidence> } {
    const { stdout, frame } = outcome;
    const printedBytes = stdout.length;
    outcome.stdout = shownOfOutput(stdout);
    if (frame !== undefined) outcome.frame = shownOfFrame(frame);
    const status = ownStatus(outcome, test);
    if (status) return { outcome, printedBytes, status };
    if (test.kind === "functional") {
      const expected = entryOf(texts, test, () => expectedTexts(test));
      return { outcome, printedBytes, kept: { kind: "value", frame, ...expected } };
    }
    const { comparator } = this.#rules;
    const evidence = (bytes: Uint8Array): Evidence => ({
      kind: "output",
      stdout: bytes,
      expected: test.expected,
      comparator,
    });
    const kept =
      stdout.length > shortOutput
        ? shrinkInThread(stdout, comparator).then(evidence)
        : evidence(stdout.length > longestShown ? new Uint8Array(stdout) : outcome.stdout);
    return { outcome, printedBytes, kept };
  }
}

/** How a test ended that carries no evidence. */
function ownStatus(outcome: TestOutcome, test: NormalizedTest): GradeStatus | undefined {
  if (outcome.status !== "finished") return statusNames[outcome.status];
  const failed = outcome.exitCode !== 0 || outcome.signal !== null;
  return test.kind === "stdin" && failed ? "runtime_error" : undefined;
}

const statusNames: Record<Exclude<TestOutcome["status"], "finished">, GradeStatus> = {
  "missing-module": "missing_module",
  "compile-error": "compile_error",
  "runtime-error": "runtime_error",
  "time-limit": "time_limit",
  "memory-limit": "memory_limit",
  "output-limit": "output_limit",
  "no-result": "no_result",
  unserialisable: "unserialisable",
  "target-not-found": "target_not_found",
  "bad-arguments": "bad_test",
};
