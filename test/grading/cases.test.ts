// Every conformance case, in the embedded jail and over HTTP to `./whet sandbox`: the same verdicts in both.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
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
import type { Sandbox } from "../../src/sandbox/sandbox.ts";
import { venvWith } from "../support/venv.ts";
import { startWhet, type WhetProcess } from "./processes.ts";
import { casesAreThere, type GradingCase, gradingCases } from "./shared.ts";

const { cases, extraction } = gradingCases();
const numpy = venvWith(["numpy"]);
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

describe.each(["embedded jail", "Sandbox Fusion's API"])("%s", (backend) => {
  let sandbox: Sandbox;
  let server: WhetProcess | undefined;

  beforeAll(async () => {
    if (backend === "embedded jail") sandbox = await openJail(python === undefined ? {} : { python });
    else {
      server = await startWhet("sandbox", ["port=0", ...(python === undefined ? [] : [`sandbox_python=${python}`])]);
      sandbox = await openFusion({ url: `${server.url}/run_code`, maxConcurrency: 4 });
    }
  });

  afterAll(async () => {
    await sandbox?.close();
    await server?.stop();
  });

  test("the canary programs get their known verdicts", async () => {
    expect((await runCanary(createGrader({ sandbox }))).surprises).toEqual([]);
  });

  test.skipIf(!casesAreThere)("every case gets the wanted verdict and status", async () => {
    const grader = createGrader({ sandbox, rewardTimeoutS: 2, concurrency: 4, cacheSize: 0 });
    const results = await Promise.all(usable.map(async (one) => ({ one, result: await gradeCase(grader, one) })));
    const surprises: string[] = [];
    for (const { one, result } of results) {
      if (isWanted(one, result)) continue;
      // Two seconds are little on a machine that does other things too: once more, alone.
      const again = await gradeCase(grader, one);
      if (!isWanted(one, again))
        surprises.push(`${one.id}: wanted ${one.expect} (${one.status}), got ${again.verdict} (${again.status})`);
    }
    expect(surprises).toEqual([]);
    expect(results).toHaveLength(usable.length);
  });
});
