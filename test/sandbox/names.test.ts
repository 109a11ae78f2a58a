// Names that do not exist. A file system that remembers them for everybody carries messages without end, and grows: one program asks for names, a
// later one finds by the time of its own question which were asked for before. Tried between the tests of a program, programs, jails and processes,
// in every folder that programs see; and on the host itself, where it works, so that the test is known to see.
import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Jail, type JailLevel, openJail } from "../../src/sandbox/jail.ts";
import { randomBits } from "./information.ts";
import { job, stdin, textOf } from "./plain.ts";

const bitCount = 400;
/** Of a sum of ranks, in standard deviations: noise passes this once in a million times. */
const certain = 4.9;

/** Line 1: a key. Line 2: bits to send, or nothing: then it prints, per bit, how long its question took. */
const program = `
import os, sys, time
key, bits = sys.stdin.read().split("\\n")[:2]
folders = [os.path.dirname(os.__file__), "/usr/lib", "/usr", "/", "/dev", "/opt", "/usr/lib/x86_64-linux-gnu", "/proc", "/proc/self", "/usr/nothing"]
folders = folders[:int(key.split("-")[0])]
ask, clock = os.access, time.perf_counter_ns
if not bits: # what the processor's own caches hold of the kernel's tables goes: they are not covered, and are no memory of names
    for n in range(4): bytearray(b"x" * (48 << 20))
for n in range(300): ask("/usr/lib/warm", 0)
if bits:
    for n, bit in enumerate(bits):
        if bit == "1":
            for f in folders: ask(f + "/" + key + str(n), 0)
else:
    took = []
    for n in range(${bitCount}):
        t = []
        for f in folders:
            a = clock(); ask(f + "/" + key + str(n), 0); t.append(clock() - a)
        took.append(sorted(t)[len(t) // 2])
    print(*took)
`;

/** How far the times of names that were asked for lie from the others, in standard deviations. */
function distance(bits: readonly boolean[], times: readonly number[]): number {
  const order = times.map((time, index) => ({ time, bit: bits[index]! })).sort((a, b) => a.time - b.time);
  const ones = bits.filter(Boolean).length;
  const zeros = bits.length - ones;
  const sum = order.reduce((total, { bit }, rank) => total + (bit ? rank + 1 : 0), 0);
  const mean = (ones * (bits.length + 1)) / 2;
  return (sum - mean) / Math.sqrt((ones * zeros * (bits.length + 1)) / 12);
}

const text = (bits: readonly boolean[]) => bits.map((bit) => (bit ? "1" : "0")).join("");
const numbers = (printed: string) => printed.trim().split(" ").map(Number);
const newKey = (folders: number) => `${folders}-${randomBytes(8).toString("hex")}-`;

test("the host itself remembers names, and the receiver sees it", () => {
  const bits = randomBits(bitCount);
  const key = newKey(1);
  const run = (input: string) => execFileSync("python3", ["-c", program], { input, encoding: "utf8" });
  run(`${key}\n${text(bits)}\n`);
  expect(distance(bits, numbers(run(`${key}\n\n`)))).toBeLessThan(-certain);
});

describe.each<JailLevel>(["jail", "landlock"])("names that do not exist, level %s", (level) => {
  let jail: Jail;
  let other: Jail;
  beforeAll(async () => {
    [jail, other] = await Promise.all(
      [1, 2].map(() => openJail({ levels: [level], slots: 1 })) as [Promise<Jail>, Promise<Jail>],
    );
  }, 60_000);
  afterAll(async () => {
    await Promise.all([jail?.close(), other?.close()]);
  });
  const held = () => !jail.description.lacks.some((line) => line.startsWith("names "));

  const runs = async (where: Jail, ...inputs: string[]) => {
    const outcomes = await where.run(job(program, inputs.map(stdin)), () => "continue");
    expect(outcomes.map(({ status }) => status)).toEqual(inputs.map(() => "finished"));
    return textOf(outcomes.at(-1));
  };

  test.each([1, 10])("tell nobody that they were asked for, in %s folders", { timeout: 60_000 }, async (folders) => {
    if (!held()) return; // and the level says so
    const bits = randomBits(bitCount);
    const found: Record<string, number> = {};
    const send = (key: string) => `${key}\n${text(bits)}\n`;
    for (const [name, receiver] of [
      ["a later program", jail],
      ["another jail", other],
    ] as const) {
      const key = newKey(folders);
      await runs(jail, send(key));
      found[name] = distance(bits, numbers(await runs(receiver, `${key}\n\n`)));
    }
    const key = newKey(folders);
    found["a later test"] = distance(bits, numbers(await runs(jail, send(key), `${key}\n\n`)));
    const outside = newKey(1);
    await runs(jail, send(outside));
    const host = execFileSync("python3", ["-c", program], { input: `${outside}\n\n`, encoding: "utf8" });
    found["a process outside"] = distance(bits, numbers(host));
    for (const [receiver, far] of Object.entries(found)) expect(Math.abs(far), receiver).toBeLessThan(certain);
  });

  test("fill no memory", { timeout: 60_000 }, async () => {
    if (!held()) return;
    const entries = () => Number(readFileSync("/proc/sys/fs/dentry-state", "utf8").split(/\s+/)[4]); // those of names that do not exist
    const before = entries();
    const flood =
      "import os\nfor n in range(100_000): os.access('/usr/lib/%d-%d' % (n, os.getpid()), 0)\nfor n in range(100_000): os.access(os.__file__ + str(n), 0)";
    const [outcome] = await jail.run(job(flood, [stdin("")]), () => "continue");
    expect(outcome?.status).toBe("finished");
    expect(entries() - before).toBeLessThan(50_000); // other processes of the machine ask for names too
  });
});
