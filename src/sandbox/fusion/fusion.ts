// Sandbox Fusion as a sandbox: tests travel in chunks, one after another whatever the answers were. Inputs go in; outcomes come back signed;
// what is expected never leaves this process.
import { proveLanguage } from "../programs.ts";
import { type Job, type Sandbox, SandboxError, type TestInput, type TestOutcome, withoutEvidence } from "../sandbox.ts";
import { FusionClient, type FusionOptions } from "./client.ts";
import { runDirectly } from "./direct.ts";
import { type LauncherResult, launcherRequest, readResult, resultFile } from "./launcher.ts";

/** Tests per request, and input characters, so that bodies stay within what servers take; one test always goes. */
const chunkTests = 64;
const chunkInputLength = 16 * 1024 ** 2;

/** A program whose result is lost this often, while one that does nothing has its own every time, took it away itself. */
const turnsWhenLost = 3;

/** Connects to Sandbox Fusion; rejects within seconds when no server is there. */
export async function openFusion(options: FusionOptions): Promise<Sandbox> {
  const client = new FusionClient(options);
  try {
    await client.ping();
  } catch (error) {
    await client.close();
    throw error;
  }
  const servers = client.urls.length;
  const sandbox: Sandbox = {
    description: {
      kind: "fusion",
      summary: `Sandbox Fusion at ${client.urls.join(", ")}${servers > 1 ? ` (${servers} instances)` : ""}`,
      lacks: ["isolation is the server's: with its default settings programs share a user, a network and /tmp"],
      python: "the server's",
      programsAtOnce: client.capacity,
    },
    async run(job, afterTest, { signal } = {}) {
      const isPython = job.language === undefined || job.language === "python";
      const outcomes: TestOutcome[] = [];
      while (outcomes.length < job.tests.length) {
        const rest = job.tests.slice(outcomes.length, outcomes.length + chunkTests);
        const ran = isPython
          ? await runChunk(client, job, fitting(rest), signal)
          : [await runDirectly(client, job, rest[0]!, signal)];
        for (const outcome of ran) {
          outcomes.push(outcome);
          if (afterTest(outcome, outcomes.length - 1) === "stop") return outcomes;
        }
      }
      return outcomes;
    },
    supports: async (language) => {
      if (language !== "python") await proveLanguage(sandbox, language);
    },
    close: () => client.close(),
  };
  return sandbox;
}

/** The outcomes of at least the first test. */
async function runChunk(
  client: FusionClient,
  job: Job,
  tests: readonly TestInput[],
  signal: AbortSignal | undefined,
): Promise<TestOutcome[]> {
  const result = await ask(client, job, tests, signal);
  if (result.outcomes.length > 0) return result.outcomes;
  // Signed by the keeper: the test ended the process that watched it.
  if (result.workerDied) return [withoutEvidence()];
  // Nothing verifiable came back although the request ran. Either the program attacked its launcher or the server is in trouble: the test
  // by itself and a program that does nothing take turns, and a loss that follows the program is its own. Where the server calls the run a
  // success, it may have lost the file now and then, so that takes more turns.
  let problem = "";
  for (let turn = 0, turns = 1; turn < turns && problem === ""; turn++) {
    const again = await ask(client, job, tests.slice(0, 1), signal);
    if (again.outcomes.length > 0) return again.outcomes;
    const control = await ask(client, { ...job, source: "" }, [{ kind: "stdin", stdin: "" }], signal);
    if (again.lost) turns = turnsWhenLost;
    if (control.outcomes[0]?.status !== "finished") problem = control.note || again.note || "no message";
  }
  if (problem === "") return [withoutEvidence()];
  throw new SandboxError(
    "sandbox/fusion-no-result",
    `Sandbox Fusion at ${client.urls.join(", ")} ran a request and brought no result back (${problem}). Check that its python is 3.8 or newer and that it returns fetch_files.`,
  );
}

async function ask(
  client: FusionClient,
  job: Job,
  tests: readonly TestInput[],
  signal: AbortSignal | undefined,
): Promise<Asked> {
  const { request, key } = await launcherRequest(job, tests);
  const response = await client.runCode(request, { signal });
  const file = response.files[resultFile];
  const result = file === undefined ? undefined : readResult(file, key, tests.length);
  const note = (response.run_result?.stderr ?? "").trim().slice(-200);
  return { outcomes: [], workerDied: false, ...result, lost: !result && response.status === "Success", note };
}

interface Asked extends LauncherResult {
  /** The server says that the launcher did its work, yet there is no verifiable result. */
  lost: boolean;
  /** The end of the launcher's stderr. */
  note: string;
}

/** The longest prefix of tests whose inputs fit one request; at least one. */
function fitting(tests: readonly TestInput[]): readonly TestInput[] {
  let length = 0;
  const tooMany = tests.findIndex((test) => {
    length +=
      test.kind === "stdin" ? test.stdin.length : test.argumentsJson.reduce((sum, text) => sum + text.length, 0);
    return length > chunkInputLength;
  });
  return tooMany < 0 ? tests : tests.slice(0, Math.max(1, tooMany));
}
