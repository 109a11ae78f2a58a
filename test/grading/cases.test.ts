// Every conformance case in the embedded jail, and every fifth at its second level and over HTTP to `./whet sandbox`: the same verdicts
// everywhere. All of them everywhere with WHET_HOSTILE set, as for test/grading/hostile.
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import {
  createGrader,
  extractCode,
  type GradeResult,
  type Grader,
  normalizeTests,
  runCanary,
} from "../../src/grading/index.ts";
import { openFusion } from "../../src/sandbox/fusion/fusion.ts";
import { openJail } from "../../src/sandbox/jail.ts";
import { type Sandbox, SandboxError } from "../../src/sandbox/sandbox.ts";
import { suiteVenv } from "../support/venv.ts";
import { startWhet, type WhetProcess } from "./processes.ts";
import { casesAreThere, type GradingCase, gradingCases } from "./shared.ts";

const { cases, extraction } = gradingCases();
const numpy = await suiteVenv();
if ("missing" in numpy) console.warn(`skipping the cases that use numpy: ${numpy.missing}`);
const python = "python" in numpy ? numpy.python : undefined;
const usable = cases.filter(({ code }) => python !== undefined || !code.includes("numpy"));

/** The cases name one status where ours says more exactly what happened. */
const finer: Record<string, readonly string[]> = {
  runtime_error: ["target_not_found", "unserialisable"],
  time_limit: ["unserialisable"],
};

/** Filling 600,000 frames until Python gives up takes about as long as the limit; on a busy machine the limit comes first. */
const lateIsFine = new Set(["fn-recursion-error"]);

function isWanted(wanted: GradingCase, { verdict, status }: GradeResult): boolean {
  if (wanted.expect === "either") return verdict !== "ungraded";
  if (verdict !== wanted.expect) return false;
  if (status === "time_limit" && lateIsFine.has(wanted.id)) return true;
  return wanted.status === "any_fail" || status === wanted.status || (finer[wanted.status]?.includes(status) ?? false);
}

function gradeCase(grader: Grader, { kind, fn_name, tests, code }: GradingCase): Promise<GradeResult> {
  const named = fn_name === null ? {} : { metadata: { func_name: fn_name } };
  const normalized = normalizeTests(tests.map((one) => ({ ...one, testtype: kind, ...named })));
  return grader.grade({ problem: { tests: normalized.tests }, code });
}

describe.skipIf(!casesAreThere)("extraction", () => {
  test.each(extraction)("$id", ({ text, expect: wanted, ...rest }) => {
    expect(extractCode(text)).toBe(wanted);
    if (rest.expect_thinking_renderer !== undefined)
      expect(extractCode(text, { thinking: true })).toBe(rest.expect_thinking_renderer);
  });
});

/** The second level of the jail says that programs cannot start processes. */
const startsProcesses = new Set(["subprocess-use", "fork-use"]);

describe.each(["embedded jail", "embedded jail, second level", "Sandbox Fusion's API"])("%s", (backend) => {
  let sandbox: Sandbox | undefined;
  let server: WhetProcess | undefined;
  let covered = usable;
  let missing = "";

  beforeAll(async () => {
    const interpreter = python === undefined ? {} : { python };
    if (backend === "Sandbox Fusion's API") {
      server = await startWhet("sandbox", ["port=0", ...(python === undefined ? [] : [`sandbox_python=${python}`])]);
      await vi.waitFor(() => expect(server!.stderr()).toContain("programs run in"));
      // The launcher that grades over HTTP starts a process per test.
      if (server.stderr().includes("second level")) missing = "the jail of this machine cannot start processes";
      else sandbox = await openFusion({ url: `${server.url}/run_code`, maxConcurrency: 4 });
    } else {
      const level = backend.endsWith("second level") ? "landlock" : "jail";
      try {
        sandbox = await openJail({ ...interpreter, levels: [level] });
      } catch (error) {
        if (!(error instanceof SandboxError)) throw error;
        missing = error.message;
      }
      if (level === "landlock") covered = usable.filter(({ id }) => !startsProcesses.has(id));
    }
    if (backend !== "embedded jail" && !process.env["WHET_HOSTILE"])
      covered = covered.filter((_, index) => index % 5 === 0);
    if (missing !== "") console.warn(`skipping ${backend}: ${missing}`);
  });

  afterAll(async () => {
    await sandbox?.close();
    await server?.stop();
  });

  test("the canary programs get their known verdicts", async (context) => {
    if (!sandbox) return context.skip(missing);
    expect((await runCanary(createGrader({ sandbox }))).surprises).toEqual([]);
  });

  test.skipIf(!casesAreThere)("every case gets the wanted verdict and status", async (context) => {
    if (!sandbox) return context.skip(missing);
    const [grader, hasty] = [2, 0.5].map((rewardTimeoutS) =>
      createGrader({ sandbox: sandbox!, limits: { rewardTimeoutS }, concurrency: 4, cacheSize: 0 }),
    ) as [Grader, Grader];
    // What never ends need not be waited for as long as what may be late.
    const graderOf = ({ status }: GradingCase) => (status === "time_limit" ? hasty : grader);
    const results = await Promise.all(
      covered.map(async (one) => ({ one, result: await gradeCase(graderOf(one), one) })),
    );
    const surprises: string[] = [];
    for (const { one, result } of results) {
      if (isWanted(one, result)) continue;
      // Two seconds are little on a machine that does other things too: once more, alone.
      const again = await gradeCase(graderOf(one), one);
      if (!isWanted(one, again))
        surprises.push(
          `${one.id}: wanted ${one.expect} (${one.status}), got ${again.verdict} (${again.status}) ${again.message ?? ""}`,
        );
    }
    expect(surprises).toEqual([]);
    expect(results).toHaveLength(covered.length);
  });
});
