// The sandbox that a command runs programs in, and the grader over it.
import { WhetstoneError } from "../../core/errors.ts";
import { type LanguageName, languagesNamed } from "../../core/languages/languages.ts";
import { createGrader, type Grader, openSandbox, runCanary, type SandboxChoice } from "../../grading/index.ts";
import type { TrainConfig } from "../../rl/config.ts";
import { auditedSandbox } from "../../sandbox/audited.ts";
import type { Sandbox } from "../../sandbox/sandbox.ts";

/** Opens a sandbox in which programs of the languages, as language= names them, can run. */
export async function openPrograms(
  choice: SandboxChoice,
  language: string,
): Promise<{ sandbox: Sandbox; languages: readonly LanguageName[] }> {
  const sandbox = await openSandbox({ ...choice, say: (line) => console.error(`whetstone: ${line}`) });
  const languages = languagesNamed(language) ?? [];
  try {
    for (const name of languages) await sandbox.supports(name);
  } catch (error) {
    await sandbox.close();
    throw error;
  }
  return { sandbox, languages };
}

export interface GraderConnection {
  grader: Grader;
  /** What it runs programs in. */
  sandbox: Sandbox;
  /** Grades programs with known verdicts; rejects when one comes out wrong. */
  check(signal: AbortSignal): Promise<void>;
  close(): Promise<void>;
}

/** The grader that the settings of a run ask for. */
export async function openGrader(
  config: Pick<
    TrainConfig,
    | "sandbox_url"
    | "sandbox_python"
    | "sandbox_packages"
    | "sandbox_memory_mb"
    | "sandbox_max_concurrency"
    | "comparator"
    | "language"
    | "typecheck"
    | "reward_timeout"
    | "format_coef"
    | "reward"
    | "max_tests"
    | "seed"
  >,
): Promise<GraderConnection> {
  const concurrency = config.sandbox_max_concurrency || undefined;
  const { sandbox, languages } = await openPrograms(
    {
      sandboxUrl: config.sandbox_url || undefined,
      sandboxPython: config.sandbox_python || undefined,
      sandboxPackages: config.sandbox_packages,
      typecheck: config.typecheck,
      maxConcurrency: concurrency,
    },
    config.language,
  );
  // A share is one of all tests, so none is left out after a failure.
  const byShare = config.reward === "fraction";
  const rules = {
    sandbox,
    comparator: config.comparator,
    languages,
    limits: { rewardTimeoutS: config.reward_timeout, memoryBytes: config.sandbox_memory_mb * 1024 ** 2 },
    reward: { formatCoef: config.format_coef, fractional: byShare },
    tests: { maxTests: config.max_tests, seed: config.seed },
    everyTest: byShare,
    ...(concurrency !== undefined && { concurrency }),
  };
  // Counts the programs of the run alone, without the canary's.
  const audit = process.env["WHET_SANDBOX_AUDIT"];
  return {
    grader: createGrader(audit ? { ...rules, sandbox: auditedSandbox(sandbox, audit) } : rules),
    sandbox,
    check: async (signal) => {
      const known = createGrader({ ...rules, comparator: "tolerant", tests: {}, cacheSize: 0 });
      const { surprises } = await runCanary(known, { signal, languages });
      if (surprises.length === 0) return;
      throw new WhetstoneError(
        "cli/grader-broken",
        `The grader judges known programs wrongly: ${surprises.slice(0, 3).join("; ")}. Training on its rewards would teach nonsense. ` +
          "Check the sandbox's Python, or use another sandbox.",
      );
    },
    close: () => sandbox.close(),
  };
}
