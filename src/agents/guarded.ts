// A program that ends with all that it has started: when it is done, when it is killed, and when this process ends, however it does.
import { type ChildProcessByStdio, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import type { Readable, Writable } from "node:stream";

/** A running program. */
export interface Guarded {
  child: ChildProcessByStdio<Writable, Readable, Readable>;
  /** Kills it; its "close" event comes when all of it is gone. */
  kill(): void;
}

/** How long the watcher has to kill everything; output may still come. */
const closeMs = 2000;

/**
 * A watcher that reads the end of descriptor 3, which nobody but this process holds: it kills the group, and what has left the group but
 * still bears its name. The program takes the shell's place.
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

/** Starts a program. It emits "error" where it cannot be started. */
export function startGuarded(argv: readonly string[], { cwd, env }: { cwd: string; env: NodeJS.ProcessEnv }): Guarded {
  // The key of the server that trains is nobody else's.
  const { TINKER_API_KEY: _, ...shown } = env;
  // A group of its own, so that nothing that a person types at this terminal reaches it.
  const child = spawn("/bin/sh", ["-c", guarded, "guarded", ...argv], {
    cwd,
    env: { ...shown, WHETSTONE_EPISODE: randomUUID() },
    stdio: ["pipe", "pipe", "pipe", "pipe"],
    detached: true,
  });
  const { stdin, stdout, stderr } = child;
  const guard = child.stdio[3] as Readable;
  for (const stream of [stdin, guard]) stream.on("error", () => {});
  let late: NodeJS.Timeout | undefined;
  // The watcher kills; should somebody have killed it, this does.
  const kill = () => {
    guard.destroy();
    late ??= setTimeout(() => {
      killGroup(child.pid);
      for (const stream of [stdout, stderr]) stream.destroy();
    }, closeMs);
  };
  // What it left behind goes with it.
  child.once("exit", kill);
  child.once("close", () => clearTimeout(late));
  return { child: child as unknown as Guarded["child"], kill };
}

function killGroup(leader: number | undefined): void {
  try {
    if (leader !== undefined) process.kill(-leader, "SIGKILL");
  } catch {
    // Nobody is left in it.
  }
}

/** Keeps the end of what a stream says; or its start, and calls `onCut` when there is more. */
export function capture(stream: Readable, which: "start" | "end", most: number, onCut = () => {}): { text: string } {
  const captured = { text: "" };
  let isFull = false;
  stream.setEncoding("utf8").on("data", (part: string) => {
    if (isFull) return;
    captured.text += part;
    if (captured.text.length <= most) return;
    captured.text = which === "start" ? captured.text.slice(0, most) : captured.text.slice(-most);
    isFull = which === "start";
    if (isFull) onCut();
  });
  stream.on("error", () => {});
  return captured;
}
