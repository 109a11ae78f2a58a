// Runs somebody's agent: any command, with the address of the policy in its environment and the problem on its standard input. It ends
// with all that it has started: when it is done, when its episode is over, and when this process is killed.
import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Readable } from "node:stream";
import { scratchFolder } from "../core/files.ts";
import { jailedCommand, openDoor } from "./jail.ts";

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
  /** Whether it printed more than is kept. */
  tooMuch: boolean;
}

/** Of what an agent prints. */
const maxCharacters = 4 << 20;
const maxErrorCharacters = 8192;
/** How long the watcher gets, and output may still come. */
const farewellMs = 2000;

/**
 * A watcher that reads the end of descriptor 3, which nobody but this process holds: it kills the group, and what has left the group but
 * still bears the episode's name. The agent takes the shell's place.
 */
const guarded = `
(
  [ -r /proc/self/stat ] && read -r self _ < /proc/self/stat
  read -r _ <&3
  for round in 1 2 3; do
    for file in $(grep -lsF -- "WHETSTONE_EPISODE=$WHETSTONE_EPISODE" /proc/[0-9]*/environ); do
      pid=\${file#/proc/}; pid=\${pid%/environ}
      [ "$pid" = "$self" ] || kill -9 "$pid"
    done
  done
  kill -9 -- -$$
) </dev/null >/dev/null 2>&1 &
exec 3<&-
exec "$@"
`;

/** Runs an agent to its end; rejects with the signal's reason where that comes first. */
export async function runAgent(run: AgentRun): Promise<AgentResult> {
  const { command, cwd, sandbox, endpoint, input, signal } = run;
  signal.throwIfAborted();
  const folder = scratchFolder("agent");
  const door = sandbox ? await openDoor(folder, endpoint.baseURL) : undefined;
  try {
    const problem = join(folder, "problem");
    for (const [name, text] of Object.entries({ "": "", ...run.files })) {
      const path = join(problem, name);
      mkdirSync(name === "" ? path : dirname(path), { recursive: true });
      if (name !== "") writeFileSync(path, text);
    }
    const own = { WHETSTONE_EPISODE: randomUUID(), PROBLEM_DIR: problem };
    const openai = { OPENAI_BASE_URL: endpoint.baseURL, OPENAI_API_KEY: endpoint.apiKey, OPENAI_MODEL: endpoint.model };
    const { TINKER_API_KEY: _, ...environment } = process.env;
    const argv = door ? jailedCommand({ command, cwd, problem, door }) : ["/bin/sh", "-c", command];
    const env = door
      ? { PATH: environment["PATH"], LANG: environment["LANG"], HOME: "/tmp", TMPDIR: "/tmp", ...own, ...openai }
      : { ...environment, ...own, ...openai };
    return await untilEnd(argv, { cwd, env }, input, signal);
  } finally {
    door?.close();
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
    // A group of its own, so that nothing that a person types at this terminal reaches it.
    const child = spawn("/bin/sh", ["-c", guarded, "agent", ...argv], {
      ...options,
      stdio: ["pipe", "pipe", "pipe", "pipe"],
      detached: true,
    });
    const { stdin, stdout, stderr } = child;
    const guard = child.stdio[3] as Readable;
    const output = kept(stdout, "start", maxCharacters);
    const errors = kept(stderr, "end", maxErrorCharacters);
    for (const stream of [stdin, guard]) stream.on("error", () => {});
    stdin.end(input);
    let late: NodeJS.Timeout | undefined;
    // The watcher kills; should somebody have killed it, this does.
    const kill = () => {
      guard.destroy();
      late ??= setTimeout(() => {
        killGroup(child.pid);
        for (const stream of [stdout, stderr]) stream.destroy();
      }, farewellMs);
    };
    signal.addEventListener("abort", kill, { once: true });
    child.once("error", reject);
    // What it left behind goes with it.
    child.once("exit", kill);
    child.once("close", (code, killedBy) => {
      clearTimeout(late);
      signal.removeEventListener("abort", kill);
      if (signal.aborted) reject(signal.reason);
      else resolve({ code, signal: killedBy, stdout: output.text, stderr: errors.text, tooMuch: output.tooMuch });
    });
  });
}

function killGroup(leader: number | undefined): void {
  try {
    if (leader !== undefined) process.kill(-leader, "SIGKILL");
  } catch {
    // Nobody is left in it.
  }
}

/** What a stream says, its start or its end. */
function kept(
  stream: Readable,
  which: "start" | "end",
  most: number,
): { readonly text: string; readonly tooMuch: boolean } {
  let text = "";
  let tooMuch = false;
  stream.setEncoding("utf8").on("data", (part: string) => {
    text += part;
    if (text.length <= most) return;
    tooMuch = true;
    text = which === "start" ? text.slice(0, most) : text.slice(-most);
  });
  stream.on("error", () => {});
  return {
    get text() {
      return text;
    },
    get tooMuch() {
      return tooMuch;
    },
  };
}
