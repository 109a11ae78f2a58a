// Limits on time, against programs that try to use more than they have: children that vanish with the time they used, and waiting that the
// program arranged itself. Each says on its stderr what it really used; on an idle machine and beside others that take the processors.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Jail, openJail } from "../../src/sandbox/jail.ts";
import { job, stdin, textOf } from "./plain.ts";

const limitMs = 600;

/** Children that each use a little time and end, one after the other; `starting` says how they are started and what becomes of them. */
const chain = (preparing: string, starting = "p = os.fork()") => `
import ctypes, os, signal, sys, time
libc = ctypes.CDLL(None, use_errno=True)
r, w = os.pipe()
def burn():
    while time.process_time() < 0.06: pass
    os.write(w, b"%8.4f" % time.process_time())
def end(how=None):
    if how: how()
    os._exit(0)
${preparing}
total, until = 0, time.monotonic() + 25
while time.monotonic() < until:
    ${starting.trim().replaceAll("\n", "\n    ")}
    if p == 0:
        burn()
        end()
    total += float(os.read(r, 8))
    print(total, file=sys.stderr, flush=True)
print("ok")
`;
const orphan = "p = os.fork()\nif p == 0:\n    if os.fork() != 0: os._exit(0)";
const vanishing: Record<string, string> = {
  "SIGCHLD ignored": chain("signal.signal(signal.SIGCHLD, signal.SIG_IGN)"),
  SA_NOCLDWAIT:
    chain(`class A(ctypes.Structure): _fields_ = [("handler", ctypes.c_void_p), ("mask", ctypes.c_ulong * 16), ("flags", ctypes.c_int), ("restorer", ctypes.c_void_p)]
libc.sigaction(17, ctypes.byref(A(flags=2)), None)`),
  "nobody waits": chain("", `${orphan}\nelse: os.waitpid(p, 0)`.replace("else:", "if p:")),
  "orphans, and SIGCHLD ignored": chain("signal.signal(signal.SIGCHLD, signal.SIG_IGN)", orphan),
  "sessions of their own": chain(
    "signal.signal(signal.SIGCHLD, signal.SIG_IGN)",
    "p = os.fork()\nif p == 0: os.setsid()",
  ),
  "children that send no signal": chain(
    "clone = ctypes.PyDLL(None).syscall",
    "p = clone(ctypes.c_long(56 if os.uname().machine == 'x86_64' else 220), *[ctypes.c_long(0)] * 5)",
  ),
  "children of the supervisor": chain(
    "clone = ctypes.PyDLL(None).syscall",
    "p = clone(ctypes.c_long(56 if os.uname().machine == 'x86_64' else 220), ctypes.c_long(0x8000 | 17), *[ctypes.c_long(0)] * 4)",
  ),
  "children that are killed": chain(
    "signal.signal(signal.SIGCHLD, signal.SIG_IGN)",
    "p = os.fork()\nif p == 0:\n    burn()\n    os.kill(os.getpid(), 9)",
  ),
  "other programs": chain(
    "signal.signal(signal.SIGCHLD, signal.SIG_IGN)",
    'p = os.fork()\nif p == 0:\n    os.set_inheritable(w, True)\n    os.execv(sys.executable, [sys.executable, "-ISc", "import os, time\\nwhile time.process_time() < 0.06: pass\\nos.write(%d, b\'%%8.4f\' %% time.process_time())" % w])',
  ),
  "threads that end": chain("import threading").replace(
    "p = os.fork()\n    if p == 0:\n        burn()\n        end()",
    'a = time.process_time()\n    def work():\n        b = time.thread_time()\n        while time.thread_time() - b < 0.06: pass\n    t = threading.Thread(target=work); t.start(); t.join()\n    os.write(w, b"%8.4f" % (time.process_time() - a))',
  ),
};

const lastLine = (text: string) => Number(text.trim().split("\n").at(-1));

describe("limits on time", () => {
  let jail: Jail;
  beforeAll(async () => {
    jail = await openJail({ levels: ["jail"], slots: 4 });
  }, 60_000);
  afterAll(() => jail?.close());

  const run = async (source: string, limits: { cpuMs?: number; wallMs?: number }) =>
    (await jail.run(job(source, [stdin("")], limits), () => "continue"))[0]!;

  /** While `work` runs, two programs take the processors. */
  async function besideOthers<Result>(work: () => Promise<Result>): Promise<Result> {
    const stop = new AbortController();
    const spinning = [1, 2].map(() =>
      jail
        .run(job("while True: pass", [stdin("")], { cpuMs: 120_000, wallMs: 120_000 }), () => "continue", {
          signal: stop.signal,
        })
        .catch(() => {}),
    );
    try {
      return await work();
    } finally {
      stop.abort();
      await Promise.all(spinning);
    }
  }

  async function attack(source: string): Promise<void> {
    const outcome = await run(source, { cpuMs: limitMs, wallMs: 30_000 });
    expect([outcome.status, textOf(outcome)], outcome.stderrTail).toEqual(["time-limit", ""]);
    expect(lastLine(outcome.stderrTail) * 1000).toBeGreaterThan(limitMs / 2);
    expect(lastLine(outcome.stderrTail) * 1000).toBeLessThan(1.5 * limitMs);
  }

  test.each(Object.entries(vanishing))("no processor time vanishes: %s", { timeout: 60_000 }, (_name, source) =>
    attack(source),
  );

  test("nor does it beside others that take the processors", { timeout: 120_000 }, () =>
    besideOthers(() => Promise.all(Object.values(vanishing).map(attack))),
  );

  test("waiting that the program arranged is its own time", { timeout: 60_000 }, async () => {
    const starving = `
import os, time
for cpu in sorted(os.sched_getaffinity(0)):
    if os.fork() == 0:
        os.sched_setaffinity(0, {cpu}); os.nice(19)
        while True: pass
until = time.monotonic() + 20
while time.monotonic() < until: time.sleep(0.25)
print("ok")
`;
    const outcome = await besideOthers(() => run(starving, { cpuMs: 60_000, wallMs: 1_500 }));
    expect([outcome.status, textOf(outcome)]).toEqual(["time-limit", ""]);
    expect(outcome.waitedMs).toBeLessThan(750); // it was four times the limit and five seconds
  });

  test("honest programs pass beside others that take the processors", { timeout: 60_000 }, async () => {
    const work = "import time\nwhile time.process_time() < 0.6: pass\nprint('done')";
    const [outcome] = await besideOthers(() =>
      jail.run(job(work, [stdin("")], { wallMs: 800, cpuMs: 1_000 }), () => "continue"),
    );
    expect(outcome!.status).toBe("finished");
  });

  test("what honest programs do with their children works", { timeout: 60_000 }, async () => {
    const source = `
import os, signal, subprocess, multiprocessing, asyncio
print(signal.signal(signal.SIGCHLD, signal.SIG_DFL) == signal.SIG_DFL)
for _ in range(200):
    p = os.fork()
    if p == 0: os._exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(p, 0)[1]) == 7
print(subprocess.run("true & (exit 3)", shell=True).returncode)
print(subprocess.run("sleep 0.05 & (exit 3) & wait $!; echo $?; wait; echo 'a\\\\nb'", shell=True, capture_output=True).stdout)
with multiprocessing.Pool(2) as pool: print(pool.map(abs, [-1, -2]))
async def main():
    p = await asyncio.create_subprocess_exec("echo", "hi", stdout=-1)
    print((await p.communicate())[0])
asyncio.run(main())
for _ in range(150):
    p = os.fork()
    if p == 0:
        if os.fork(): os._exit(0)
        os._exit(0)
    os.waitpid(p, 0)
    import time; time.sleep(0.002)
print("end")
`;
    const outcome = await run(source, { wallMs: 20_000 });
    expect([outcome.status, textOf(outcome)], outcome.stderrTail).toEqual([
      "finished",
      "True\n3\nb'3\\na\\nb\\n'\n[1, 2]\nb'hi\\n'\nend\n",
    ]);
  });
});
