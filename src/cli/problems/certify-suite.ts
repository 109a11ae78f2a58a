// `./whet certify suite=`: a suite's references pass its own check here, apart from the program, and programs that know nothing fail.

import { certify } from "../../grading/certify.ts";
import { presetConfig } from "../../rl/config.ts";
import { stderrLogger as logger } from "../terminal/loggers.ts";
import { type CertifyRow, printTable, rowOf } from "../text/certify.ts";
import { loadSuiteOf, openSuite, type ReadyProblem, suiteSettings } from "./suite-work.ts";

interface CertifySuiteOptions {
  suite: string;
  repeats: number;
  max_solutions: number;
  show: "all" | "bad";
  sandbox_url?: string | null | undefined;
  sandbox_python?: string | undefined;
  sandbox_packages: string;
  memory_mb: number;
  concurrency?: number | undefined;
  reward_timeout?: number | undefined;
}

export async function certifySuite(
  options: CertifySuiteOptions,
  given: ReadonlySet<string>,
  signal: AbortSignal,
): Promise<number> {
  const asked = {
    ...presetConfig("nano"),
    model_name: "",
    sandbox_url: options.sandbox_url ?? "",
    sandbox_python: options.sandbox_python ?? "",
    sandbox_packages: options.sandbox_packages,
    sandbox_memory_mb: options.memory_mb,
    sandbox_max_concurrency: options.concurrency ?? 0,
    ...(options.reward_timeout !== undefined && { reward_timeout: options.reward_timeout }),
  };
  const loaded = await loadSuiteOf(options.suite, asked, signal);
  const config = suiteSettings(loaded, asked, given);
  const suite = await openSuite({ name: options.suite, loaded, config, samples: "the suite itself", logger, signal });
  const counts = { good: 0, bad: 0 };
  const certifyProblem = async ({ id, tests, solutions, check }: ReadyProblem): Promise<CertifyRow> => {
    const problem = { id, tests: await tests(), languages: ["python"] as const };
    const chosen = solutions.slice(0, options.max_solutions);
    const certificate = await certify(
      suite.grader,
      { problem, solutions: chosen, repeats: options.repeats },
      { signal },
    );
    // Some suites are published without any.
    const problems = certificate.problems.filter((one) => solutions.length > 0 || one !== "no reference solution");
    return rowOf(id, problem.tests.length, { ...certificate, problems }, check?.timeoutS ?? config.reward_timeout);
  };
  const rows = { rows: suite.problems, total: suite.problems.length, window: 16, show: options.show };
  try {
    await printTable({ ...rows, certify: certifyProblem }, counts, signal);
  } finally {
    for (const note of suite.notes) console.error(`whetstone: ${note}`);
    await suite.close();
  }
  return counts.bad + suite.leftOut > 0 ? 1 : 0;
}
