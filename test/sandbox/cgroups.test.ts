// Memory that no process shows, bounded by the kernel where control groups can be made. Elsewhere these tests say so and skip.
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Cgroups } from "../../src/sandbox/cgroups.ts";
import { type Jail, openJail } from "../../src/sandbox/jail.ts";
import { pythonFolder } from "../../src/sandbox/outer.ts";
import { job, stdin, textOf } from "./plain.ts";

const megabyte = 1024 ** 2;

// Shared memory, touched piece by piece and given back: it stays, and no process holds it. Raw, without the jail, which refuses such mappings.
const holder = `
import json, mmap, os, sys
sys.path.insert(0, sys.argv[1])
import cgroups
given = json.loads(sys.argv[2])
if given: cgroups.open_all(given["version"], given["folders"])
group = cgroups.Cgroup(0 if given else None, 1)
group.bound({"treeBytes": 32 << 20, "scratchBytes": 0})
def hold(name, make):
    child = os.fork()
    if child == 0:
        open("/proc/self/oom_score_adj", "w").write("1000")
        held = make()
        for at in range(0, 160 << 20, 4 << 20):
            held[at:at + (4 << 20)] = bytes([1]) * (4 << 20)
            held.madvise(mmap.MADV_DONTNEED, at, 4 << 20)
        shown = [int(l.split()[1]) for l in open("/proc/self/status") if l.startswith("RssAnon")][0]
        os._exit(0 if held[100 << 20] == 1 and shown < 40 << 10 else 1)
    print(name, os.waitpid(child, 0)[1], group.exceeded())
def zero():
    return mmap.mmap(os.open("/dev/zero", os.O_RDWR), 160 << 20)
def file():
    f = os.memfd_create("x")
    os.ftruncate(f, 160 << 20)
    return mmap.mmap(f, 160 << 20)
hold("anonymous", lambda: mmap.mmap(-1, 160 << 20))
hold("zero", zero)
hold("memory-file", file)
`;

const hold = (groups: unknown) =>
  execFileSync("python3", ["-B", "-c", holder, pythonFolder, JSON.stringify(groups)], { encoding: "utf8" })
    .trim()
    .split("\n");

const groups = Cgroups.open();
if (!groups) console.warn("memory groups: none can be made here, so programs are counted and these tests skip");

describe.runIf(groups)("memory control groups", () => {
  afterAll(() => groups?.close());

  test("what no process shows is held without a group and ended by the kernel in one", () => {
    expect(hold(null)).toEqual(["anonymous 0 False", "zero 0 False", "memory-file 0 False"]);
    expect(hold(groups!.forZygote(1))).toEqual(["anonymous 9 True", "zero 9 True", "memory-file 9 True"]);
  });

  test("groups of a process that was killed are removed by the next one, those of a living one are not", async () => {
    const stale = join(dirname(groups!.folder), "whetstone-999999999-1");
    mkdirSync(join(stale, "1"), { recursive: true });
    const other = Cgroups.open()!;
    expect(existsSync(stale)).toBe(false);
    expect(existsSync(groups!.folder)).toBe(true);
    await other.close();
    expect(existsSync(other.folder)).toBe(false);
  });
});

// Buffers of sockets belong to no process either; 60 MB of memory and hundreds of megabytes of buffers.
const buffers = `
import os, socket
held = []
for n in range(3):
    if os.fork() == 0: break
for n in range(60):
    pair = socket.socketpair()
    for s in pair:
        s.setblocking(False)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
        try:
            while True: s.send(b"x" * 200000)
        except BlockingIOError: pass
    held.append(pair)
try: os.wait()
except OSError: pass
`;

describe.runIf(groups)("a program in its group", () => {
  let jail: Jail;
  const limits = { memoryBytes: 60 * megabyte, scratchBytes: megabyte, wallMs: 20_000 };
  beforeAll(async () => {
    jail = await openJail({ levels: ["jail"], slots: 2 });
  }, 60_000);
  afterAll(() => jail?.close());

  test("buffers of the kernel count, the neighbour is unharmed, and the next program has its room", async () => {
    expect(jail.description.summary).toContain("memory control groups");
    const honest = job("x = bytearray(20 << 20)\nprint(len(x) >> 20)", [stdin("")], limits);
    const run = (one: typeof honest) => jail.run(one, () => "continue").then(([outcome]) => outcome!);
    const both = await Promise.all([run(job(buffers, [stdin("")], limits)), run(honest)]);
    expect([both[0].status, both[1].status, textOf(both[1])]).toEqual(["memory-limit", "finished", "20\n"]);
    for (let n = 0; n < 6; n++) expect(textOf(await run(honest))).toBe("20\n");
  }, 60_000);

  test("without groups the same program is only counted; nothing is left of the groups when the jail closes", async () => {
    process.env["WHET_CGROUP"] = "";
    try {
      const plain = await openJail({ levels: ["jail"], slots: 1 });
      const [outcome] = await plain.run(job(buffers, [stdin("")], limits), () => "continue");
      expect(plain.description.summary).not.toContain("memory control groups");
      expect(outcome!.status).toBe("finished");
      await plain.close();
    } finally {
      delete process.env["WHET_CGROUP"];
    }
    await jail.close();
    const left = readdirSync(dirname(groups!.folder)).filter((name) => name.startsWith(`whetstone-${process.pid}-`));
    expect(left).toEqual([]);
  }, 60_000);
});
