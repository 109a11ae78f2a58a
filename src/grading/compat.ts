// A grader that works as older harnesses do: tests and judge travel into the sandbox, and exit status 0 is a pass. It can be fooled
// by any program that ends the process, and it tells every program what is expected. For measuring parity only; never the default.
import { readFileSync } from "node:fs";
import { FusionClient, type FusionOptions } from "../sandbox/fusion/client.ts";
import { SandboxError } from "../sandbox/sandbox.ts";
import { extractCode } from "./extract.ts";
import type { GradeRequest, GradeResult, Grader } from "./grade.ts";
import { writeJson } from "./json.ts";
import type { GradeStatus } from "./judge.ts";
import type { NormalizedTest } from "./normalize.ts";
import { rewardOf } from "./reward.ts";

export interface CompatOptions extends FusionOptions {
  rewardTimeoutS?: number;
  formatCoef?: number;
}

/** Opens the exploitable grader. `warn` is told so, once. */
export async function openCompatGrader(
  options: CompatOptions,
  warn: (message: string) => void,
): Promise<Grader & { close(): Promise<void> }> {
  warn(
    "harness=compat puts the judge and the expected outputs next to the program: any program can score full marks. Use it to compare with old results, never to train.",
  );
  const client = new FusionClient(options);
  await client.ping();
  const timeoutS = Math.max(1, Math.ceil(options.rewardTimeoutS ?? 6));
  const code = readFileSync(new URL("./compat.py", import.meta.url), "utf8");

  async function statusOf(
    program: string,
    tests: readonly NormalizedTest[],
    signal?: AbortSignal,
  ): Promise<GradeStatus> {
    const response = await client.runCode(
      {
        code,
        language: "python",
        run_timeout: (timeoutS + 1) * tests.length + 5,
        files: {
          "program.txt": Buffer.from(program).toString("base64"),
          "test_cases.txt": Buffer.from(JSON.stringify({ timeout: timeoutS, tests: tests.map(wireTest) })).toString(
            "base64",
          ),
        },
      },
      { signal },
    );
    if (response.status === "Success") return "pass";
    return response.run_result?.status === "TimeLimitExceeded" ? "time_limit" : "wrong_answer";
  }

  return {
    description: {
      kind: "fusion",
      summary: `Sandbox Fusion at ${client.urls.join(", ")}, compat harness (exploitable)`,
      lacks: ["the judge and the expected outputs are inside the sandbox"],
      python: "the server's",
    },
    async grade(request: GradeRequest, { signal }: { signal?: AbortSignal } = {}): Promise<GradeResult> {
      const start = performance.now();
      const { tests } = request.problem;
      const program = request.code ?? extractCode(request.response ?? "", { thinking: request.thinking ?? false });
      let status: GradeStatus = program === null ? "format_error" : "bad_test";
      let message: string | undefined;
      if (program !== null && tests.length > 0) {
        try {
          status = await statusOf(program, tests, signal);
        } catch (error) {
          if (signal?.aborted || !(error instanceof SandboxError)) throw error;
          status = "sandbox_error";
          message = error.message;
        }
      }
      const verdict = status === "pass" ? "pass" : status === "sandbox_error" ? "ungraded" : "fail";
      const passed = verdict === "pass" ? tests.length : 0;
      const formatOk = program !== null;
      const rules = { formatCoef: options.formatCoef ?? 0.1, fractional: false };
      const wallMs = performance.now() - start;
      return {
        verdict,
        status,
        reward: rewardOf({ verdict, formatOk, passed, total: tests.length }, rules),
        formatOk,
        truncated: request.truncated ?? false,
        code: program,
        passed,
        total: tests.length,
        ran: verdict === "ungraded" ? 0 : tests.length,
        firstFailed: null,
        tests: [],
        wallMs,
        queueMs: 0,
        sandboxMs: wallMs,
        cached: false,
        flags: [],
        ...(message ? { message } : {}),
      };
    },
    close: () => client.close(),
  };
}

const wireTest = (test: NormalizedTest) =>
  test.kind === "stdin"
    ? { input: test.input, output: test.expected }
    : { fn_name: test.functionName, arguments: test.args.map(writeJson), output: writeJson(test.expected) };
