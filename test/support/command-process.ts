// Runs commands in a process that stays, where the start of one is not what a test is about: it takes longer than most commands do. What a
// process looks up once stays as it was: the languages on PATH and their folders, a module of an environment. Tests of those start ./whet.
import { type ChildProcess, fork } from "node:child_process";
import type { Socket } from "node:net";
import { fileURLToPath } from "node:url";
import { cleanEnvironment, type WhetOptions, type WhetResult, whetPath } from "./whet.ts";

const program = fileURLToPath(new URL("./command-process.mjs", import.meta.url));
/** Processes of this worker that wait for a command. */
const idle: ChildProcess[] = [];

function start(): ChildProcess {
  const child = fork(program, {
    env: cleanEnvironment({ WHET_LAUNCHER: whetPath }),
    execArgv: [],
    stdio: ["ignore", "pipe", "pipe", "ipc"],
  });
  // It ends with this process, and does not keep it.
  child.unref();
  child.channel?.unref();
  for (const stream of [child.stdout, child.stderr]) (stream as Socket).unref();
  return child;
}

/** The command as `./whet` runs it, without its start and its end. One that ends the process has ended all the same. */
export function runCommand(args: readonly string[], options: Omit<WhetOptions, "onStart"> = {}): Promise<WhetResult> {
  let child = idle.pop();
  while (child && !child.connected) child = idle.pop();
  child ??= start();
  const env = { ...cleanEnvironment(options.env), WHET_LAUNCHER: whetPath };
  const output = { stdout: "", stderr: "" };
  return new Promise((resolve, reject) => {
    const streams = [child.stdout!, child.stderr!];
    const addDirect = (name: keyof typeof output) => (chunk: Buffer) => (output[name] += chunk.toString());
    const message = (said: { stdout?: string; stderr?: string; code?: number }) => {
      output.stdout += said.stdout ?? "";
      output.stderr += said.stderr ?? "";
      if (said.code === undefined) return;
      for (const event of ["message", "error", "close"]) child.removeAllListeners(event);
      for (const stream of streams) stream.removeAllListeners("data");
      child.channel?.unref();
      idle.push(child);
      resolve({ code: said.code, signal: null, ...output });
    };
    child.on("message", message);
    child.once("error", reject);
    child.once("close", (code, signal) => resolve({ code, signal, ...output }));
    child.stdout!.on("data", addDirect("stdout"));
    child.stderr!.on("data", addDirect("stderr"));
    child.channel?.ref();
    child.send({ args, env, cwd: options.cwd ?? process.cwd() });
  });
}
