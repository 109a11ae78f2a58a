// Finding and signalling the processes of a jail, by /proc.
import { readdirSync, readFileSync } from "node:fs";

/** Live processes below a zygote's outermost process, by /proc. */
export function descendants(pid: number): number[] {
  const children = readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .filter((name) => {
      try {
        return Number(/^\d+ \(.*\) \S (\d+)/s.exec(readFileSync(`/proc/${name}/stat`, "utf8"))?.[1]) === pid;
      } catch {
        return false;
      }
    })
    .map(Number);
  return children.flatMap((child) => [child, ...descendants(child)]);
}

const commandOf = (pid: number): string => {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8");
  } catch {
    return "";
  }
};

/**
 * Zygotes and slots of jails that this process opened. A bubblewrap that was killed while it started leaves its child to process 1; the
 * child is known by the control folder in its command line.
 */
export function ownJailProcesses(): number[] {
  const orphans = readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => commandOf(pid).includes(`whetstone-jail-${process.pid}-`));
  const all = new Set([process.pid, ...orphans].flatMap((pid) => [pid, ...descendants(pid)]));
  return [...all].filter((pid) => commandOf(pid).includes("zygote.py"));
}

export function signalIfAlive(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {} // already gone with its parent
}

export function killAll(): void {
  for (const pid of ownJailProcesses()) signalIfAlive(pid, "SIGKILL");
}
