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

/** Zygotes and slots of jails that this process opened. */
export const ownJailProcesses = () =>
  descendants(process.pid).filter((pid) => {
    try {
      return readFileSync(`/proc/${pid}/cmdline`, "utf8").includes("zygote.py");
    } catch {
      return false;
    }
  });

export function signalIfAlive(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {} // already gone with its parent
}

export function killAll(): void {
  for (const pid of ownJailProcesses()) signalIfAlive(pid, "SIGKILL");
}
