// What esbuild makes of a program's text, outside of the jail. Each text has a process with limits of its own: there are short ones that no translator
// comes to an end with ("a ? (b) : c => " thirty times over), and nobody else's may wait for them or end with them.
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { findEsbuild } from "../esbuild.mjs";
import { ProgramError } from "./language.ts";

/** Nobody's program takes as much. */
const limits = { cpuSeconds: 5, memoryKib: 1024 ** 2, outputBytes: 64 * 1024 ** 2 };
/** Without as much processor time it is the machine that is slow. */
const patienceSeconds = 60;
const shownOfErrors = 64 * 1024;

export interface Transformed {
  code: string;
  /** What it warned of. */
  warnings: string;
}

/** Rejects with ProgramError where the text is to blame. */
export async function esbuild(source: string, flags: readonly string[]): Promise<Transformed> {
  const { code, signal, stdout, stderr } = await run(source, flags);
  if (code === 0) return { code: stdout, warnings: stderr };
  if (code === 1 && stderr.includes("[ERROR]")) throw new ProgramError(stderr);
  const how = `esbuild ended with ${code ?? signal} (${stderr.split("\n")[0]})`;
  // Where it does not work at all, nothing can be said of a program.
  if (signal !== null || (await run("", flags)).code !== 0) throw new Error(how);
  throw new ProgramError(`the translator does not survive it: ${how}`);
}

interface Ended {
  code: number | null;
  signal: NodeJS.Signals | null;
  stdout: string;
  stderr: string;
}

function run(source: string, flags: readonly string[]): Promise<Ended> {
  return new Promise((resolve, reject) => {
    // The limit of time is for a process that nobody watches any more.
    const start = `ulimit -v ${limits.memoryKib}; ulimit -t ${2 * limits.cpuSeconds}; ulimit -c 0; exec "$@"`;
    const child = spawn("/bin/sh", ["-c", start, "sh", findEsbuild() ?? "esbuild", ...flags], {
      cwd: "/",
      env: { GOMAXPROCS: "1" },
    });
    const end = (error: Error) => {
      child.kill("SIGKILL");
      reject(error);
    };
    const out: Buffer[] = [];
    let bytes = 0;
    child.stdout.on("data", (chunk: Buffer) => {
      out.push(chunk);
      bytes += chunk.length;
      if (bytes > limits.outputBytes)
        end(new ProgramError(`its translation has more than ${limits.outputBytes} bytes`));
    });
    let stderr = "";
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      stderr = (stderr + text).slice(0, shownOfErrors);
    });
    child.on("error", reject);
    child.on("close", (code, signal) => {
      clearInterval(watch);
      resolve({ code, signal, stdout: Buffer.concat(out).toString("utf8"), stderr });
    });
    child.stdin.on("error", () => {}); // it may end before it has read everything
    child.stdin.end(source);
    let seconds = 0;
    const watch = setInterval(() => {
      if (cpuSecondsOf(child.pid) >= limits.cpuSeconds)
        end(new ProgramError(`translating took more than ${limits.cpuSeconds} s of processor time`));
      else if (++seconds === patienceSeconds) end(new Error(`esbuild did not end within ${seconds} s`));
    }, 1000);
  });
}

/** What the kernel has counted; 0 for a process that has ended. */
function cpuSecondsOf(pid: number | undefined): number {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, "utf8")
      .replace(/^.*\) /s, "")
      .split(" ");
    return (Number(fields[11]) + Number(fields[12])) / 100;
  } catch {
    return 0;
  }
}
