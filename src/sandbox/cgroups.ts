// Memory control groups: where this process may make some, the kernel itself bounds what all processes of a program hold together, memory that
// no process shows included. Where it may not, what a program holds is counted instead (python/levels.py), and nothing else changes.
import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { leftBehind } from "../core/files.ts";

/** A folder in which control groups can be made. */
interface Place {
  version: 1 | 2;
  folder: string;
}

/** One control group for each slot of a zygote. */
export interface ZygoteCgroups {
  version: 1 | 2;
  folders: readonly string[];
}

const prefix = "whetstone-";
const patienceMs = 3_000;

const read = (path: string) => {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
};

const words = (text: string) => text.split(/\s+/).filter(Boolean);

/** This process's own group as a folder, for the hierarchy that has the memory controller. */
function ownGroup(): Place | undefined {
  const lines = read("/proc/self/cgroup").trim().split("\n");
  for (const line of read("/proc/self/mountinfo").trim().split("\n")) {
    const [left = "", right = ""] = line.split(" - ");
    const [, , , root = "", mountPoint = ""] = left.split(" ");
    const [kind, , options = ""] = right.split(" ");
    const version = kind === "cgroup2" ? 2 : kind === "cgroup" && options.split(",").includes("memory") ? 1 : undefined;
    if (version === undefined) continue;
    const own = lines.find((text) =>
      version === 2 ? text.startsWith("0::") : text.split(":")[1]?.split(",").includes("memory"),
    );
    const path = own?.slice(own.indexOf("/"));
    if (path === undefined || path.includes("/..") || !(root === "/" || `${path}/`.startsWith(`${root}/`))) continue;
    const folder = join(mountPoint, root === "/" ? path : path.slice(root.length));
    const has = version === 1 || words(read(join(folder, "cgroup.controllers"))).includes("memory");
    if (has && existsSync(folder)) return { version, folder };
  }
  return undefined;
}

/** Where groups could be made, the first choice first. WHET_CGROUP names a folder; an empty value turns groups off. */
function* places(): Generator<Place> {
  const named = process.env["WHET_CGROUP"];
  if (named === "") return;
  if (named !== undefined) {
    yield { version: existsSync(join(named, "cgroup.controllers")) ? 2 : 1, folder: named };
    return;
  }
  const own = ownGroup();
  if (!own) return;
  // The second version gives controllers only to the children of a group that holds no process, so next to this one is where they can be.
  const shares = own.version === 1 || words(read(join(own.folder, "cgroup.subtree_control"))).includes("memory");
  yield shares ? own : { version: 2, folder: join(own.folder, "..") };
}

/** True when it is gone; a group with a living process stays. */
function remove(folder: string): boolean {
  try {
    if (!existsSync(folder)) return true;
    for (const entry of readdirSync(folder, { withFileTypes: true }))
      if (entry.isDirectory()) remove(join(folder, entry.name));
    rmdirSync(folder);
    return true;
  } catch {
    return false;
  }
}

/** Only a kill leaves these behind. */
const made = new Set<Cgroups>();
process.on("exit", () => {
  for (const { folder } of made) remove(folder);
});
let numbers = 0;

export class Cgroups {
  readonly folder: string;
  readonly #version: 1 | 2;
  #last = 0;

  private constructor(place: Place) {
    this.#version = place.version;
    this.folder = join(place.folder, `${prefix}${process.pid}-${++numbers}`);
  }

  /** Undefined where none can be made. */
  static open(): Cgroups | undefined {
    for (const place of places()) {
      try {
        for (const stale of leftBehind(place.folder, prefix)) remove(stale);
        const cgroups = new Cgroups(place);
        mkdirSync(cgroups.folder);
        made.add(cgroups);
        try {
          if (place.version === 2) writeFileSync(join(cgroups.folder, "cgroup.subtree_control"), "+memory");
          cgroups.remove(cgroups.forZygote(1));
          return cgroups;
        } catch {
          remove(cgroups.folder);
          made.delete(cgroups);
        }
      } catch {} // not ours to write
    }
    return undefined;
  }

  /** New ones, one for each slot that a zygote can have at a time. */
  forZygote(slots: number): ZygoteCgroups {
    const folders = Array.from({ length: slots }, () => join(this.folder, String(++this.#last)));
    for (const folder of folders) {
      mkdirSync(folder);
      if (!existsSync(join(folder, this.#version === 2 ? "memory.max" : "memory.limit_in_bytes")))
        throw new Error(`${folder} has no memory controller`);
      // What is in memory must not turn into what is on disk.
      if (this.#version === 2 && existsSync(join(folder, "memory.swap.max")))
        writeFileSync(join(folder, "memory.swap.max"), "0");
    }
    return { version: this.#version, folders };
  }

  /** True when they are gone; tried again when all of them are closed. */
  remove({ folders }: ZygoteCgroups): boolean {
    return folders.map(remove).every(Boolean);
  }

  /** After the zygotes: processes that were killed leave a moment later. */
  async close(): Promise<void> {
    const until = performance.now() + patienceMs;
    while (!remove(this.folder) && performance.now() < until) await sleep(20);
    made.delete(this);
  }
}
