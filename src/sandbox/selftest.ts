// Proves a level before anything untrusted runs on it: a miniature of the hack corpus. Any surprise refuses the level.
import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { megabyte } from "../core/languages/language.ts";
import type { Jail } from "./jail.ts";
import type { JailLevel } from "./levels.ts";
import { programEnvironment, pythonFolder } from "./outer.ts";
import { defaultLimits, type Limits, type TestInput, type TestOutcome, type TestStatus } from "./sandbox.ts";

const limits: Limits = {
  ...defaultLimits,
  wallMs: 20_000,
  cpuMs: 20_000,
  memoryBytes: 512 * megabyte,
  outputBytes: megabyte,
  fileBytes: 2 * megabyte,
  scratchBytes: 5 * megabyte,
  processes: 8,
};

/** A program whose outcome is known in advance. */
interface Probe {
  name: string;
  source: string;
  tests: TestInput[];
  limits?: Partial<Limits>;
  statuses: TestStatus[];
  stdout?: string[];
}

const stdin = (text: string): TestInput => ({ kind: "stdin", stdin: text });

const leaver = `
import glob, os, sys
seen = [path for path in glob.glob("/tmp/left*") + glob.glob("left*")]
print(len(seen), len(sys.stdin.read()))
open("left", "w").write("x")
try:
    if os.fork() == 0:
        os.setsid()
        while True: pass
except OSError:
    pass
`;

const probes: Probe[] = [
  {
    name: "a script",
    source: "print(int(input()) + 1)",
    tests: [stdin("41\n")],
    statuses: ["finished"],
    stdout: ["42\n"],
  },
  {
    name: "a call",
    source: "def f(x): return x + 1",
    tests: [{ kind: "call", functionName: "f", argumentsJson: ["41"] }],
    statuses: ["finished"],
  },
  {
    name: "an exit before any output",
    source: "import os; os._exit(0)",
    tests: [{ kind: "call", functionName: "f", argumentsJson: ["41"] }],
    statuses: ["no-result"],
  },
  {
    name: "an endless loop",
    source: "while True: pass",
    tests: [stdin("")],
    limits: { wallMs: 50 },
    statuses: ["time-limit"],
  },
  { name: "too much memory", source: "x = bytearray(1 << 30)", tests: [stdin("")], statuses: ["memory-limit"] },
  { name: "too much output", source: "while True: print('y' * 9999)", tests: [stdin("")], statuses: ["output-limit"] },
  {
    name: "files and processes left behind",
    source: leaver,
    tests: [stdin("a"), stdin("b")],
    statuses: ["finished", "finished"],
    stdout: ["0 1\n", "0 1\n"],
  },
];

/** Rejects with a list of what is open. `controlSocket` is the path of the jail's own socket. */
export async function selfTest(jail: Jail, level: JailLevel, controlSocket: string): Promise<void> {
  const findings = await Promise.all([
    attack(jail, level, controlSocket),
    ...probes.map((probe) => check(jail, probe)),
  ]);
  const surprises = findings.flat();
  if (surprises.length > 0) throw new Error(`the self-test failed: ${surprises.join("; ")}`);
}

async function run(jail: Jail, probe: Pick<Probe, "source" | "tests" | "limits">): Promise<TestOutcome[]> {
  const { source, tests } = probe;
  const job = { source, tests, limits: { ...limits, ...probe.limits }, preamble: true };
  return jail.run(job, () => "continue");
}

async function check(jail: Jail, probe: Probe): Promise<string[]> {
  const outcomes = await run(jail, probe);
  const wrong = outcomes.filter((outcome, index) => {
    const text = Buffer.from(outcome.stdout).toString();
    return outcome.status !== probe.statuses[index] || (probe.stdout !== undefined && text !== probe.stdout[index]);
  });
  return wrong.map((outcome) => {
    const said = Buffer.from(outcome.stdout.subarray(0, 100)).toString().trim();
    return `${probe.name} ended as ${outcome.status} (${said} ${outcome.stderrTail.trim().slice(-300)})`;
  });
}

/** Runs python/probe.py against things that really exist on this machine: a file, a port, a process. */
async function attack(jail: Jail, level: JailLevel, controlSocket: string): Promise<string[]> {
  const secret = join(tmpdir(), `whetstone-secret-${randomUUID()}`);
  const server = createServer((socket) => socket.destroy());
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  const facts = {
    secrets: [secret, "/etc/passwd", "/etc/hostname", "/proc/1/environ", "/proc/1/mem", "/root/.bashrc"],
    closed: [
      "/",
      "/usr",
      "/dev",
      "/etc",
      "/var/tmp",
      "/proc",
      pythonFolder,
      "/opt/whetstone",
      ...(level === "jail" ? [] : ["/tmp", "/dev/shm"]),
    ],
    port: typeof address === "object" && address ? address.port : 0,
    controlSocket,
    pid: process.pid,
    namespaces: level === "jail",
    environment: [...Object.keys(programEnvironment), "PWD", "TMPDIR", "LC_CTYPE"],
    ...limits,
  };
  try {
    await writeFile(secret, "secret", { mode: 0o644 });
    const source = readFileSync(join(pythonFolder, "probe.py"), "utf8");
    const [outcome] = await run(jail, { source, tests: [stdin(`${JSON.stringify(facts)}\n`)] });
    const lines = Buffer.from(outcome!.stdout).toString().trim().split("\n");
    const finished = outcome!.status === "finished" && lines.pop() === "done";
    return finished
      ? lines.map((line) => `a program ${line}`)
      : [...lines, `the attack ended as ${outcome!.status}: ${outcome!.stderrTail}`];
  } finally {
    await rm(secret, { force: true });
    await new Promise((resolve) => server.close(resolve));
  }
}
