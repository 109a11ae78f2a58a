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
print(json.dumps([ready(seccomp.allow_list(m)), ready(seccomp.guards(True, m)), ready(seccomp.guards(False, m))]))
`;
  const texts = JSON.parse(execFileSync("python3", ["-c", script], { encoding: "utf8" })) as string[];
  const [allowList, withProcesses, withoutProcesses] = texts.map((text) => Buffer.from(text, "hex"));
  return { allowList: allowList!, withProcesses: withProcesses!, withoutProcesses: withoutProcesses! };
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
    else if (opcode === 0x06) return value;
    else throw new Error(`instruction ${at} has the unknown opcode ${opcode}`);
  }
  throw new Error("the filter ran off its end");
}

const audit = { x86_64: 0xc000003e, aarch64: 0xc00000b7 };
type Machine = keyof typeof audit;

/** "allow", an errno, or "kill": the strictest answer of the filters in force. */
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
  const refused = actions.find((action) => action !== 0x7fff0000);
  return refused === undefined ? "allow" : refused & 0xffff;
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
  perf_event_open: [298, 241],
  init_module: [175, 105],
  reboot: [169, 142],
} as const;

describe.each<Machine>(["x86_64", "aarch64"])("seccomp filters for %s", (machine) => {
  const filters = filtersOf(machine);
  const column = machine === "x86_64" ? 0 : 1;
  const program = (name: keyof typeof numbers, ...args: number[]) =>
    decide(machine, [filters.allowList, filters.withProcesses], numbers[name][column], args);
  const confined = (name: keyof typeof numbers, ...args: number[]) =>
    decide(machine, [filters.allowList, filters.withoutProcesses], numbers[name][column], args);

  test("ordinary calls pass at both levels", () => {
    for (const name of ["read", "mmap", "futex", "getrandom", "openat"] as const) {
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
      ] as const),
      ...([
        "process_vm_readv",
        "keyctl",
        "setresuid",
        "landlock_restrict_self",
        "userfaultfd",
        "perf_event_open",
      ] as const),
      ...(["init_module", "reboot"] as const),
    ];
    for (const name of names) expect([name, program(name), confined(name)]).toEqual([name, 1, 1]);
    for (const family of [1, 2, 10, 16, 17]) expect(program("socket", family)).toBe(97);
    expect(program("socketpair", 1)).toBe("allow");
    expect(program("socketpair", 2)).toBe(97);
    expect(program("clone3")).toBe(38);
  });

  test("processes and threads", () => {
    const thread = 0x003d0f00;
    for (const flag of [0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000]) {
      expect(program("clone", 17 | flag)).toBe(1);
      expect(confined("clone", thread | flag)).toBe(1);
    }
    expect(program("clone", 17)).toBe("allow");
    expect(program("clone", thread)).toBe("allow");
    expect(program("execve")).toBe("allow");
    expect(confined("clone", 17)).toBe(1);
    expect(confined("clone", thread)).toBe("allow");
    expect(confined("execve")).toBe(1);
  });

  test("signals and limits reach only oneself where there are no namespaces", () => {
    expect(program("kill", 1, 9)).toBe("allow");
    for (const name of ["kill", "tgkill"] as const) {
      expect(confined(name, ownPid, 9)).toBe("allow");
      for (const target of [0, 1, -1, ownPid + 1]) expect(confined(name, target, 9)).toBe(1);
    }
    expect(confined("tkill", ownPid, 9)).toBe(1);
    expect(confined("fchmodat")).toBe(1);
    for (const decideFor of [program, confined]) {
      expect(decideFor("prlimit64", 0)).toBe("allow");
      expect(decideFor("prlimit64", 1)).toBe(1);
      expect(decideFor("setpriority", 0, 0)).toBe("allow");
      expect(decideFor("setpriority", 0, 1)).toBe(1);
      expect(decideFor("setpriority", 2, 0)).toBe(1);
    }
  });

  test("arguments of the calls that do many things", () => {
    expect(program("prctl", 15)).toBe("allow");
    for (const option of [1, 4, 8, 22, 24]) expect(program("prctl", option)).toBe(1);
    expect(program("ioctl", 0, 0x5401)).toBe("allow");
    for (const command of [0x5412, 0x541c, 0x8901]) expect(program("ioctl", 0, command)).toBe(25);
    expect(program("fcntl", 0, 1)).toBe("allow");
    for (const command of [8, 10, 15, 1024, 1031]) expect(program("fcntl", 0, command)).toBe(1);
    expect(program("openat", 0, 0, 0o1001)).toBe("allow");
    expect(program("openat", 0, 0, 0o1000)).toBe(1);
  });

  test("other architectures and unknown numbers", () => {
    expect(decide(machine, [filters.allowList], numbers.read[column], [], 0x40000003)).toBe("kill");
    if (machine === "x86_64") expect(decide(machine, [filters.allowList], 0x40000000, [])).toBe("kill");
    expect(decide(machine, [filters.allowList], 5000, [])).toBe(38);
  });
});
