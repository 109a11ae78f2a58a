// Runs somebody's agent: any command, with the address of the policy in its environment and the problem on its standard input. It ends
// with all that it has started: when it is done, when its episode is over, and when this process is killed.
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { scratchFolder } from "../core/files.ts";
import { capture, startGuarded } from "./guarded.ts";
import { jailedCommand, openSocket } from "./jail.ts";

/** One run of an agent. */
export interface AgentRun {
  /** As a shell takes it. */
  command: string;
  /** Where it is run. */
  cwd: string;
  /** In a jail that has no network but the endpoint. */
  sandbox: boolean;
  endpoint: { baseURL: string; apiKey: string; model: string };
  /** Its standard input. */
  input: string;
  /** What its problem folder has. */
  files: Readonly<Record<string, string>>;
  /** Aborted: it is killed. */
  signal: AbortSignal;
}

/** How it ended. */
export interface AgentResult {
  code: number | null;
  signal: NodeJS.Signals | null;
  stdout: string;
  /** Its end. */
  stderr: string;
  /** Whether it printed more than is captured; it was killed then. */
  isCut: boolean;
}

/** Of what an agent prints. */
const maxCharacters = 4 << 20;
const maxErrorCharacters = 8192;

/** Runs an agent to its end; rejects with the signal's reason where that comes first. */
export async function runAgent(run: AgentRun): Promise<AgentResult> {
  const { command, cwd, sandbox, endpoint, input, signal } = run;
  signal.throwIfAborted();
  const folder = scratchFolder("agent");
  const socket = sandbox ? await openSocket(folder, endpoint.baseURL) : undefined;
  try {
    const problem = join(folder, "problem");
    for (const [name, text] of Object.entries({ "": "", ...run.files })) {
      const path = join(problem, name);
      mkdirSync(name === "" ? path : dirname(path), { recursive: true });
      if (name !== "") writeFileSync(path, text);
    }
    const own = { PROBLEM_DIR: problem };
    const openai = { OPENAI_BASE_URL: endpoint.baseURL, OPENAI_API_KEY: endpoint.apiKey, OPENAI_MODEL: endpoint.model };
    const argv = socket ? jailedCommand({ command, cwd, problem, socket }) : ["/bin/sh", "-c", command];
    const env = socket
      ? { PATH: process.env["PATH"], LANG: process.env["LANG"], HOME: "/tmp", TMPDIR: "/tmp", ...own, ...openai }
      : { ...process.env, ...own, ...openai };
    return await untilEnd(argv, { cwd, env }, input, signal);
  } finally {
    socket?.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

function untilEnd(
  argv: readonly string[],
  options: { cwd: string; env: NodeJS.ProcessEnv },
  input: string,
  signal: AbortSignal,
): Promise<AgentResult> {
  return new Promise((resolve, reject) => {
    const { child, kill } = startGuarded(argv, options);
    let isCut = false;
    const output = capture(child.stdout, "start", maxCharacters, () => {
      isCut = true;
      kill();
    });
    const errors = capture(child.stderr, "end", maxErrorCharacters);
    child.stdin.end(input);
    signal.addEventListener("abort", kill, { once: true });
    child.once("error", reject);
    child.once("close", (code, killedBy) => {
      signal.removeEventListener("abort", kill);
      if (signal.aborted) reject(signal.reason);
      else resolve({ code, signal: killedBy, stdout: output.text, stderr: errors.text, isCut });
    });
  });
}
