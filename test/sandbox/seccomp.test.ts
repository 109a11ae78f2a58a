// The system call filters of both architectures, run by a small interpreter of their byte code: what is allowed, what is refused.
import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";

const folder = fileURLToPath(new URL("../../src/sandbox/python", import.meta.url));
const ownPid = 4711;

interface Filters {
  allowList: Buffer;
  withProcesses: Buffer;
  withoutProcesses: Buffer;
  /** The same, where a supervisor is asked; and the one that asks. */
  answered: readonly Buffer[];
  asking: Buffer;
}

/** Assembles the filters for an architecture; this machine may be another. */
function filtersOf(machine: string): Filters {
  const script = `
import json, struct, sys
sys.path.insert(0, ${JSON.stringify(folder)}); sys.dont_write_bytecode = True
import seccomp
def ready(assembled):
    code, offsets = bytearray(assembled[0]), assembled[1]
    for offset in offsets: struct.pack_into("<I", code, offset, ${ownPid})
    return code.hex()
m = ${JSON.stringify(machine)}
answered = [seccomp.guards(processes, m, asks=True) for processes in (True, False)]
print(json.dumps([ready(one) for one in [seccomp.allow_list(m), seccomp.guards(True, m), seccomp.guards(False, m), *answered, seccomp.asking(m)]]))
`;
  const texts = JSON.parse(execFileSync("python3", ["-c", script], { encoding: "utf8" })) as string[];
  const all = texts.map((text) => Buffer.from(text, "hex"));
  const [allowList, withProcesses, withoutProcesses, inJail, confined, asking] = all;
  return {
    ...{ allowList: allowList!, withProcesses: withProcesses!, withoutProcesses: withoutProcesses! },
    ...{ answered: [inJail!, confined!], asking: asking! },
  };
}

/** Classic BPF, as far as these filters use it. Throws on anything else, so a wrong instruction cannot pass. */
function evaluate(code: Buffer, data: Buffer): number {
  let accumulator = 0;
  for (let at = 0; at < code.length / 8; at++) {
    const opcode = code.readUInt16LE(at * 8);
    const value = code.readUInt32LE(at * 8 + 4);
    const jump = (holds: boolean) => {
      at += code[at * 8 + (holds ? 2 : 3)]!;
    };
    if (opcode === 0x20) accumulator = data.readUInt32LE(value);
    else if (opcode === 0x54) accumulator = (accumulator & value) >>> 0;
    else if (opcode === 0x15) jump(accumulator === value);
    else if (opcode === 0x25) jump(accumulator > value);
    else if (opcode === 0x35) jump(accumulator >= value);
    else if (opcode === 0x45) jump((accumulator & value) !== 0);
    else if (opcode === 0x06) return value;
    else throw new Error(`instruction ${at} has the unknown opcode ${opcode}`);
  }
  throw new Error("the filter ran off its end");
}

const audit = { x86_64: 0xc000003e, aarch64: 0xc00000b7 };
type Machine = keyof typeof audit;

/** "allow", an errno, "done" (reports success, does nothing), "ask" or "kill": the strictest answer of the filters in force. */
function decide(
  machine: Machine,
  filters: readonly Buffer[],
  number: number,
  args: readonly number[],
  arch = audit[machine],
) {
  const data = Buffer.alloc(64);
  data.writeUInt32LE(number, 0);
  data.writeUInt32LE(arch, 4);
  for (const [index, value] of args.entries()) data.writeBigInt64LE(BigInt(value), 16 + 8 * index);
  const actions = filters.map((filter) => evaluate(filter, data));
  if (actions.includes(0x80000000)) return "kill";
  const refused = actions.find((action) => action !== 0x7fff0000 && action !== 0x7fc00000);
  if (refused === undefined) return actions.includes(0x7fc00000) ? "ask" : "allow";
  return refused & 0xffff || "done";
}

/** [x86-64, arm64], from the kernel's own tables. */
const numbers = {
  read: [0, 63],
  mmap: [9, 222],
  futex: [202, 98],
  getrandom: [318, 278],
  openat: [257, 56],
  execve: [59, 221],
  clone: [56, 220],
  clone3: [435, 435],
  unshare: [272, 97],
  setns: [308, 268],
  mount: [165, 40],
  umount2: [166, 39],
  ptrace: [101, 117],
  bpf: [321, 280],
  connect: [42, 203],
  socket: [41, 198],
  socketpair: [53, 199],
  kill: [62, 129],
  tgkill: [234, 131],
  tkill: [200, 130],
  rt_sigqueueinfo: [129, 138],
  rt_tgsigqueueinfo: [297, 240],
  pidfd_send_signal: [424, 424],
  prlimit64: [302, 261],
  setpriority: [141, 140],
  prctl: [157, 167],
  ioctl: [16, 29],
  fcntl: [72, 25],
  fchmodat: [268, 53],
  memfd_create: [319, 279],
  io_uring_setup: [425, 425],
  process_vm_readv: [310, 270],
  keyctl: [250, 219],
  setresuid: [117, 147],
  landlock_restrict_self: [446, 446],
  userfaultfd: [323, 282],
  membarrier: [324, 283],
  sched_rr_get_interval: [148, 127],
  perf_event_open: [298, 241],
  init_module: [175, 105],
  reboot: [169, 142],
  flock: [73, 32],
  fadvise64: [221, 223],
  readahead: [187, 213],
  sync_file_range: [277, 84],
  setsid: [112, 157],
  mincore: [27, 232],
  cachestat: [451, 451],
  sysinfo: [99, 179],
  preadv2: [327, 286],
  madvise: [28, 233],
  clock_gettime: [228, 113],
  timer_create: [222, 107],
  getpgid: [121, 155],
  sched_getaffinity: [204, 123],
  mkdirat: [258, 34],
  umask: [95, 166],
  fstatfs: [138, 44],
  futex_waitv: [449, 449],
  futex_wait: [455, 455],
  pidfd_open: [434, 434],
  statx: [332, 291],
  rt_sigaction: [13, 134],
  sendmsg: [46, 211],
  sendmmsg: [307, 269],
  seccomp: [317, 277],
  getsockopt: [55, 209],
  setsockopt: [54, 208],
} as const;

describe.each<Machine>(["x86_64", "aarch64"])("seccomp filters for %s", (machine) => {
  const filters = filtersOf(machine);
  const column = machine === "x86_64" ? 0 : 1;
  const program = (name: keyof typeof numbers, ...args: number[]) =>
    decide(machine, [filters.allowList, filters.withProcesses], numbers[name][column], args);
  const confined = (name: keyof typeof numbers, ...args: number[]) =>
    decide(machine, [filters.allowList, filters.withoutProcesses], numbers[name][column], args);

  test("ordinary calls pass at both levels", () => {
    for (const name of ["read", "mmap", "getrandom", "openat"] as const) {
      expect([name, program(name), confined(name)]).toEqual([name, "allow", "allow"]);
    }
  });

  test("what leads out is refused at both levels", () => {
    const names = [
      ...([
        "unshare",
        "setns",
        "mount",
        "umount2",
        "ptrace",
        "bpf",
        "connect",
        "memfd_create",
        "io_uring_setup",
        "pidfd_open",
        "sendmsg",
        "sendmmsg",
        "futex_waitv",
        "futex_wait",
      ] as const),
      ...([
        "process_vm_readv",
        "keyctl",
        "setresuid",
        "landlock_restrict_self",
        "userfaultfd",
        "membarrier",
        "sched_rr_get_interval",
        "perf_event_open",
      ] as const),
      ...(["init_module", "reboot"] as const),
    ];
    for (const name of names) expect([name, program(name), confined(name)]).toEqual([name, 1, 1]);
    for (const family of [1, 2, 10, 16, 17]) expect(program("socket", family)).toBe(97);
    for (const type of [1, 5, 0o2000001]) expect(program("socketpair", 1, type)).toBe("allow");
    for (const type of [2, 3, 0o2000002]) expect(program("socketpair", 1, type)).toBe(1);
    expect(program("socketpair", 2, 1)).toBe(97);
    expect([program("clone3"), program("statx"), confined("statx")]).toEqual([38, 38, 38]);
  });

  test("processes and threads", () => {
    const thread = 0x003d0f00;
    for (const flag of [0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000]) {
      expect(program("clone", 17 | flag)).toBe(1);
      expect(confined("clone", thread | flag)).toBe(1);
    }
    expect(program("clone", 17 | 0x1000)).toBe(1); // the number of a process's descriptor counts all of the machine's
    expect(program("clone", 17)).toBe("allow");
    expect(program("clone", thread)).toBe("allow");
    expect(program("execve")).toBe("allow");
    expect(confined("clone", 17)).toBe(1);
    // A thread with descriptors of its own would hide them.
    for (const decideFor of [program, confined]) expect(decideFor("clone", thread & ~0x400)).toBe(1);
    expect(confined("clone", thread)).toBe("allow");
    expect(confined("execve")).toBe(1);
  });

  test("no process can be stopped, only ended", () => {
    const calls = {
      kill: 1,
      tkill: 1,
      tgkill: 2,
      rt_sigqueueinfo: 1,
      rt_tgsigqueueinfo: 2,
      pidfd_send_signal: 1,
    } as const;
    for (const [name, at] of Object.entries(calls) as [keyof typeof calls, number][]) {
      const send = (signal: number) => program(name, ...[ownPid, ownPid].slice(0, at), signal);
      for (const signal of [19, 20, 21, 22]) expect([name, send(signal)]).toEqual([name, 1]);
      for (const signal of [0, 9, 15, 18, 23, 40]) expect([name, send(signal)]).toEqual([name, "allow"]);
    }
  });

  test("what happens on SIGCHLD can be asked for, not changed", () => {
    for (const decideFor of [program, confined]) {
      expect(decideFor("rt_sigaction", 15, 0x7fff_0000)).toBe("allow");
      expect(decideFor("rt_sigaction", 17, 0)).toBe("allow");
      for (const address of [1, 0x7fff_0000, 2 ** 32, 5 * 2 ** 32])
        expect(decideFor("rt_sigaction", 17, address)).toBe("done");
    }
  });

  test("signals and limits reach only oneself where there are no namespaces", () => {
    expect(program("kill", 1, 9)).toBe("allow");
    for (const name of ["kill", "tgkill"] as const) {
      expect(confined(name, ownPid, 9)).toBe("allow");
      for (const target of [0, 1, -1, ownPid + 1]) expect(confined(name, target, 9)).toBe(1);
    }
    expect(confined("tkill", ownPid, 9)).toBe(1);
    expect([program("fchmodat"), confined("fchmodat")]).toEqual(["allow", "done"]);
    for (const decideFor of [program, confined]) {
      expect(decideFor("prlimit64", 0)).toBe("allow");
      expect(decideFor("prlimit64", 1)).toBe(1);
      expect(decideFor("prlimit64", ownPid)).toBe("allow");
      expect(decideFor("setpriority", 0, 0)).toBe("done");
    }
    expect([program("prlimit64", ownPid + 1), confined("prlimit64", ownPid + 1)]).toEqual(["allow", 1]);
  });

  test("arguments of the calls that do many things", () => {
    expect(program("prctl", 15)).toBe("allow");
    for (const option of [1, 4, 8, 22, 24]) expect(program("prctl", option)).toBe(1);
    expect(program("ioctl", 0, 0x5401)).toBe("allow");
    for (const command of [0x5412, 0x541c, 0x8901]) expect(program("ioctl", 0, command)).toBe(25);
    expect(program("fcntl", 0, 1)).toBe("allow");
    for (const command of [8, 10, 15, 1024, 1031]) expect(program("fcntl", 0, command)).toBe(22);
    expect(program("openat", 0, 0, 0o1001)).toBe("allow");
    expect(program("openat", 0, 0, 0o1000)).toBe(1);
  });

  test("nothing carries a message between programs that share files", () => {
    for (const decideFor of [program, confined]) {
      for (const name of ["flock", "fadvise64", "readahead", "sync_file_range", "setsid"] as const)
        expect([name, decideFor(name)]).toEqual([name, "done"]);
      for (const name of ["mincore", "cachestat", "sysinfo"] as const)
        expect([name, decideFor(name)]).toEqual([name, 1]);
      for (const set of [6, 7, 37, 38]) expect(decideFor("fcntl", 0, set)).toBe("done");
      for (const ask of [5, 36]) expect(decideFor("fcntl", 0, ask)).toBe(37);
      for (const hint of [1032, 1035, 1036, 1037, 1038]) expect(decideFor("fcntl", 0, hint)).toBe(22);
      expect(decideFor("preadv2", 0, 0, 1, 0, 0, 0)).toBe("allow");
      for (const flags of [1, 2, 8, 32]) expect(decideFor("preadv2", 0, 0, 1, 0, 0, flags)).toBe(95);
      for (const advice of [0, 4, 8, 14]) expect(decideFor("madvise", 0, 0, advice)).toBe("allow");
      for (const advice of [3, 12]) expect(decideFor("madvise", 0, 0, advice)).toBe("done");
      for (const advice of [9, 20, 21, 22, 23, 100]) expect(decideFor("madvise", 0, 0, advice)).toBe(22);
      for (const clock of [0, 1, 4, 7, 11, -2, -6]) expect(decideFor("clock_gettime", clock)).toBe("allow");
      // Clocks of process 1 and of a thread of another process, and of a descriptor.
      for (const clock of [~1 * 8 + 2, ~77 * 8 + 6, ~3 * 8 + 3, 12]) {
        expect(decideFor("clock_gettime", clock)).toBe(22);
        expect(decideFor("timer_create", clock)).toBe(22);
      }
      // Threads of one process wait and wake; between processes nobody sleeps.
      for (const operation of [0x80, 0x81, 0x189, 0x8a]) expect(decideFor("futex", 0, operation)).toBe("allow");
      for (const wait of [0, 9, 0x109]) expect(decideFor("futex", 0, wait)).toBe(11);
      for (const other of [1, 3, 4, 5, 6, 8, 11, 12, 13]) expect(decideFor("futex", 0, other)).toBe("done");
      for (const option of [3, 4, 7, 20]) expect(decideFor("getsockopt", 0, 1, option)).toBe("allow");
      for (const option of [26, 50, 57, 71, 76, 77]) {
        expect(decideFor("getsockopt", 0, 1, option)).toBe(92);
        expect(decideFor("setsockopt", 0, 1, option)).toBe(92);
      }
      expect(decideFor("getsockopt", 0, 6, 4)).toBe(92);
      expect(decideFor("mmap", 0, 4096, 3, 0x40022)).toBe(1);
      // Shared memory without a file; private memory and shared files are fine.
      expect(decideFor("mmap", 0, 4096, 3, 0x21)).toBe(1);
      for (const flags of [0x22, 0x02, 0x01, 0x20022]) expect(decideFor("mmap", 0, 4096, 3, flags)).toBe("allow");
    }
  });

  test("a supervisor is asked about waits between processes and about nothing else, and its own calls are not a program's", () => {
    for (const guards of filters.answered) {
      const decideFor = (name: keyof typeof numbers, ...args: number[]) =>
        decide(machine, [filters.allowList, filters.asking, guards], numbers[name][column], args);
      for (const wait of [0, 9, 0x109]) expect(decideFor("futex", 0, wait)).toBe("ask");
      for (const operation of [0x80, 0x81, 0x189, 0x8a]) expect(decideFor("futex", 0, operation)).toBe("allow");
      for (const other of [1, 3, 4, 5, 6, 8, 11, 12, 13]) expect(decideFor("futex", 0, other)).toBe("done");
      for (const name of ["read", "mmap", "openat"] as const) expect(decideFor(name)).toBe("allow");
      for (const name of ["seccomp", "sendmsg", "unshare"] as const) expect([name, decideFor(name)]).toEqual([name, 1]);
    }
    for (const decideFor of [program, confined]) expect(decideFor("seccomp")).toBe(1);
  });

  test("without namespaces nothing tells of the host's processes and disks, and every folder can be counted", () => {
    for (const [name, refused] of [
      ["getpgid", 1],
      ["sched_getaffinity", 38], // libc does without a call that is not there, not without leave
    ] as const) {
      const decided = [program(name, 1), confined(name, 0), confined(name, ownPid), confined(name, 1)];
      expect(decided).toEqual(["allow", "allow", "allow", refused]);
    }
    expect([program("fstatfs"), confined("fstatfs")]).toEqual(["allow", 1]);
    expect([confined("mkdirat", 0, 0, 0o777), confined("mkdirat", 0, 0, 0o077), program("mkdirat", 0, 0, 0)]).toEqual([
      "allow",
      1,
      "allow",
    ]);
    expect([confined("umask", 0o022), confined("umask", 0o777), program("umask", 0o777)]).toEqual([
      "allow",
      1,
      "allow",
    ]);
  });

  test("other architectures and unknown numbers", () => {
    expect(decide(machine, [filters.allowList], numbers.read[column], [], 0x40000003)).toBe("kill");
    if (machine === "x86_64") expect(decide(machine, [filters.allowList], 0x40000000, [])).toBe("kill");
    expect(decide(machine, [filters.allowList], 5000, [])).toBe(38);
  });
});
