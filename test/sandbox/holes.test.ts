// Attacks that once worked, one by one: each ends as the program's own failure, in its time, and hurts nobody beside it.
import { readdirSync, readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Jail, type JailLevel, openJail } from "../../src/sandbox/jail.ts";
import type { Limits, TestInput } from "../../src/sandbox/sandbox.ts";
import { randomBits } from "./information.ts";
import { call, job, stdin, textOf } from "./plain.ts";
import { descendants, ownJailProcesses, signalIfAlive } from "./processes.ts";

const megabyte = 1024 ** 2;
/** Of every process of this machine. */
function runningNames(): [pid: string, name: string][] {
  return readdirSync("/proc")
    .filter((entry) => /^\d+$/.test(entry))
    .flatMap((pid) => {
      try {
        return [[pid, readFileSync(`/proc/${pid}/comm`, "utf8").trim()] as [string, string]];
      } catch {
        return []; // gone meanwhile
      }
    });
}

const honest = "a = int(input())\nprint(sum(i for i in range(a)))";

describe.each<JailLevel>(["jail", "landlock"])("level %s", (level) => {
  let jail: Jail;
  const processes = level === "jail";
  beforeAll(async () => {
    jail = await openJail({ levels: [level], slots: 5, patienceMs: 2_500 });
  }, 60_000);
  afterAll(() => jail?.close());

  const run = async (source: string, limits: Partial<Limits> = {}, tests: readonly TestInput[] = [stdin("1")]) =>
    (await jail.run(job(source, tests, limits), () => "continue"))[0]!;
  const output = async (source: string, input = "") => {
    const outcome = await run(source, {}, [stdin(input)]);
    expect(outcome.status, outcome.stderrTail).toBe("finished");
    return textOf(outcome);
  };

  test("a program that takes bytes out of its own pipes does not stop its supervisor", async () => {
    const thief =
      "import os\nr = [os.open('/proc/self/fd/%d' % d, os.O_RDONLY | os.O_NONBLOCK) for d in (1, 2, 3)]\nwhile True:\n    for d in (1, 2, 3):\n        os.write(d, b'x' * 3000)\n    for d in r:\n        try: os.read(d, 1 << 20)\n        except BlockingIOError: pass";
    const started = performance.now();
    const [stolen, called, sibling] = await Promise.all([
      run(thief, { wallMs: 500 }),
      run(`def f(x): return 0\n${thief}`, { wallMs: 500 }, [call("1")]),
      run(honest, { wallMs: 30_000 }, [stdin("100000")]),
    ]);
    expect(["time-limit", "output-limit", "runtime-error"]).toContain(stolen.status);
    expect(["time-limit", "output-limit", "runtime-error"]).toContain(called.status);
    expect(textOf(sibling)).toBe("4999950000\n");
    expect(performance.now() - started).toBeLessThan(60_000);
  }, 90_000);

  test.runIf(processes)(
    "a loss that follows a program is its failure; its siblings keep their slots, its zygote lives",
    async () => {
      // From outside, the part of a program that takes its supervisor with it: whoever runs under this name loses its parent.
      const marked = "import ctypes, time\nctypes.CDLL(None).prctl(15, b'taker')\ntime.sleep(20)\nprint(1)\n";
      const zygotes = () => ownJailProcesses().filter((pid) => descendants(pid).length > 2).length;
      const before = zygotes();
      let stop = false;
      const taker = (async () => {
        while (!stop) {
          for (const name of readdirSync("/proc").filter((entry) => /^\d+$/.test(entry))) {
            try {
              const stat = readFileSync(`/proc/${name}/stat`, "utf8");
              const parent = /^\d+ \(taker\) \S (\d+)/.exec(stat)?.[1];
              if (parent) signalIfAlive(Number(parent), "SIGSTOP");
            } catch {} // gone meanwhile
          }
          await new Promise((resolve) => setTimeout(resolve, 50));
        }
      })();
      try {
        const [lost, ...siblings] = await Promise.all([
          jail.run(job(marked, [stdin(""), stdin("")], { wallMs: 30_000 }), () => "continue"),
          ...Array.from({ length: 6 }, () =>
            run(`import time\ntime.sleep(1)\n${honest}`, { wallMs: 30_000 }, [stdin("10")]),
          ),
        ]);
        expect(lost.map(({ status }) => status)).toEqual(["no-result"]);
        expect(siblings.map(textOf)).toEqual(Array(6).fill("45\n"));
        expect(zygotes()).toBeGreaterThanOrEqual(before);
      } finally {
        stop = true;
        await taker;
      }
    },
    90_000,
  );

  test("nothing that differs from test to test is in reach of a program", async () => {
    // All that frames, the collector and modules lead to, as one number; the first test compiles, the others load.
    const source = `
import gc, os, sys, time
bit = input() == "1"
gc.unfreeze()
found, waiting = {}, gc.get_objects()
waiting += [dict(m.__dict__) for m in list(sys.modules.values()) if hasattr(m, "__dict__")]
frame, names = sys._getframe(), []
while frame:
    names.append(frame.f_code.co_name)
    waiting += [dict(frame.f_locals)] if frame.f_back else []
    frame = frame.f_back
own = {id(found), id(waiting), id(names)}
own.add(id(own)) # addresses differ
values = []
while waiting:
    one = waiting.pop()
    if id(one) in found or id(one) in own: continue
    found[id(one)] = one
    kind = type(one).__name__
    if kind in ("int", "float", "str", "bytes") and one is not bit: values.append(kind + repr(one)[:200])
    elif kind in ("Slot", "Zygote", "Watch", "Link", "Jail", "Confined", "Group"): names.append(kind)
    elif kind not in ("frame",): waiting += gc.get_referents(one)
now = str(int(time.time()))[:7] # its own folder, and when that was made
values = [v for v in values if os.getcwd() not in v and now not in v]
print(names, len(values) > 3000, hash(tuple(sorted(values))))
if bit: [os.write(1, b" " * 65536) for _ in range(100)]; os.write(2, b"x" * 9999); os.mkdir("folder"); time.sleep(0.2)
`;
    const bits = randomBits(10);
    const outcomes = await jail.run(
      job(
        source,
        bits.map((bit) => stdin(bit ? "1" : "0")),
      ),
      () => "continue",
    );
    const seen = outcomes.map((outcome) => textOf(outcome).trim());
    expect(seen[0], outcomes[0]!.stderrTail).toMatch(
      /^\['<module>', 'run_script', '_perform', 'stage', '<module>'\] True/,
    );
    expect(new Set(seen.slice(1)).size).toBe(1);
    if (processes) return;
    const users = await Promise.all(Array.from({ length: 8 }, () => output("import os\nprint(os.getuid())")));
    const steps = users.map(Number).map((user, index, all) => Math.abs(user - all[(index + 1) % all.length]!));
    expect(steps.filter((step) => step < 50).length).toBeLessThan(4); // how many came before is not to be seen
  });

  test("shared memory without a file is refused, however it is asked for", async () => {
    const source =
      "import mmap, ctypes, os\nfound = []\ntry: found.append(len(mmap.mmap(-1, 1 << 20)))\nexcept OSError: pass\ntry: found.append(len(mmap.mmap(os.open('/dev/zero', os.O_RDWR), 1 << 20)))\nexcept OSError: pass\nl = ctypes.CDLL(None)\nl.mmap.restype = ctypes.c_long\nif l.mmap(None, 1 << 20, 3, 0x21, -1, 0) != -1: found.append('raw')\nprint(found, len(mmap.mmap(-1, 4096, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)))";
    expect(await output(source)).toBe("[] 4096\n");
  });

  test.runIf(processes)(
    "pages that forked processes share count once",
    async () => {
      const source =
        "import os, time\nx = bytearray(b'x' * (150 << 20))\npids = []\nfor _ in range(4):\n    p = os.fork()\n    if p == 0:\n        time.sleep(1)\n        os._exit(0)\n    pids.append(p)\nfor p in pids: os.waitpid(p, 0)\nprint(len(x) >> 20)";
      const outcome = await run(source, { memoryBytes: 350 * megabyte, wallMs: 20_000 });
      expect([outcome.status, textOf(outcome)], outcome.stderrTail).toEqual(["finished", "150\n"]);
      const greedy = source.replace("        time.sleep(1)", "        y = bytearray(b'y') * (80 << 20); time.sleep(9)");
      expect((await run(greedy, { memoryBytes: 350 * megabyte, wallMs: 20_000 })).status).toBe("memory-limit");
    },
    60_000,
  );

  test.runIf(processes)(
    "processor time counts for all processes together, and sessions give no share of their own",
    async () => {
      const source =
        "import os, time\nfor _ in range(8):\n    if os.fork() == 0:\n        os.setsid()\n        while True: pass\ntime.sleep(60)";
      const outcome = await run(source, { cpuMs: 500, wallMs: 60_000 });
      expect(outcome.status).toBe("time-limit");
      expect(outcome.wallMs).toBeLessThan(20_000);
      expect(await output("import os\na = os.getsid(0)\nos.setsid()\nprint(os.getsid(0) == a)")).toBe("True\n");
    },
    90_000,
  );

  test("waiting for a processor is not the program's time", async () => {
    // More work at once than there are processors; each alone takes half of its limit.
    const work = "import time\nwhile time.process_time() < 0.3: pass\nprint('done')";
    const many = await Promise.all(
      Array.from({ length: 6 }, () => jail.run(job(work, [stdin("")], { wallMs: 600 }), () => "continue")),
    );
    expect(many.map(([outcome]) => outcome!.status)).toEqual(Array(6).fill("finished"));
  }, 60_000);

  test("an exception that escapes everything is a failure, also after the right output", async () => {
    const source =
      "import sys\nclass S:\n    def write(self, *a): pass\n    def flush(self): raise MemoryError\n    @property\n    def closed(self): raise KeyboardInterrupt\nprint('right', flush=True)\nsys.stderr = S()\nraise ValueError";
    expect((await run(source)).status).toBe("runtime-error");
    const hook =
      "import signal, os, threading\ndef late(*a): raise RuntimeError\nsignal.signal(signal.SIGALRM, late)\nclass D:\n    def __del__(self): os.kill(os.getpid(), signal.SIGALRM)\nd = D()\nprint('right', flush=True)\nraise ValueError";
    expect((await run(hook)).status).toBe("runtime-error");
  });

  test("datagram sockets, which can send to any path, are refused", async () => {
    const source =
      "import socket\ntry:\n    a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)\n    print('ESCAPED')\nexcept OSError: pass\na, b = socket.socketpair()\na.send(b'x')\nprint(b.recv(9))";
    expect(await output(source)).toBe("b'x'\n");
  });

  test.runIf(!processes)(
    "scratch space counts what has no name and keeps no folder closed",
    async () => {
      const limits = { scratchBytes: 8 * megabyte, fileBytes: 4 * megabyte, wallMs: 20_000 };
      const unlinked =
        "import os, time\nheld = []\nfor n in range(6):\n    f = open('f', 'wb'); f.write(b'x' * (3 << 20)); f.flush(); os.unlink('f'); held.append(f)\ntime.sleep(9)";
      expect((await run(unlinked, limits)).status).toBe("output-limit");
      const mapped =
        "import ctypes, os, time\nl = ctypes.CDLL(None)\nl.mmap.restype = ctypes.c_long\nfor n in range(6):\n    d = os.open('f', os.O_RDWR | os.O_CREAT)\n    os.write(d, b'x' * (3 << 20))\n    l.mmap(None, ctypes.c_size_t(4096), 1, 1, d, ctypes.c_long(0))\n    os.unlink('f'); os.close(d)\ntime.sleep(9)";
      expect((await run(mapped, limits)).status).toBe("output-limit");
      const closed =
        "import os\nfor act in (lambda: os.mkdir('d', 0), lambda: os.umask(0o777)):\n    try:\n        act()\n        print('ESCAPED')\n    except OSError: pass\nos.makedirs('a/b')\nprint('none')";
      expect(await output(closed)).toBe("none\n");
    },
    60_000,
  );

  test.runIf(processes)("where memory runs out, programs go first, whatever they write about themselves", async () => {
    const source =
      "import ctypes, os, time\nctypes.CDLL(None).prctl(15, b'greedy')\nx = bytearray(b'x' * (200 << 20))\ntry: os.write(os.open('/proc/self/oom_score_adj', os.O_WRONLY), b'0')\nexcept OSError: pass\ntime.sleep(1.5)\nprint('ended')";
    const seen: string[] = [];
    const looking = setInterval(() => {
      for (const [pid, name] of runningNames()) {
        if (name !== "greedy") continue;
        try {
          seen.push(readFileSync(`/proc/${pid}/oom_score_adj`, "utf8").trim());
        } catch {} // it has ended meanwhile
      }
    }, 100);
    try {
      expect(await output(source)).toBe("ended\n");
    } finally {
      clearInterval(looking);
    }
    expect(seen.at(-1)).toBe("1000");
  });

  test("stdin is a file: it has a size, can be mapped, and read again", async () => {
    expect(await output("import os\nprint(os.read(0, os.fstat(0).st_size))", "hello\n")).toBe("b'hello\\n'\n");
    expect(await output("import mmap\nprint(mmap.mmap(0, 0, prot=mmap.PROT_READ)[:])", "hello\n")).toBe(
      "b'hello\\n'\n",
    );
    expect(
      await output(
        "import sys\na = sys.stdin.read()\nsys.stdin.seek(0)\nprint(a == sys.stdin.read() == 'hello')",
        "hello",
      ),
    ).toBe("True\n");
    const writes =
      "import os\ntry:\n    os.write(0, b'x')\n    print('ESCAPED')\nexcept OSError: print(open(0).read())";
    expect(await output(writes, "same")).toBe("same\n");
  });

  test("what honest programs do to themselves works", async () => {
    expect(
      await output(
        "import resource\nresource.setrlimit(resource.RLIMIT_STACK, (1 << 28, resource.RLIM_INFINITY))\nprint('ok')",
      ),
    ).toBe("ok\n");
    expect(await output("import sys\nout = sys.stdout.detach()\nout.write(b'ok\\n')")).toBe("ok\n");
    expect(await output("import sys, io\nsys.stdout = io.TextIOWrapper(sys.stdout.detach())\nprint('ok')")).toBe(
      "ok\n",
    );
    expect(
      await output(
        "import fcntl\nf = open('x', 'w')\nfcntl.flock(f, fcntl.LOCK_EX)\nfcntl.lockf(f, fcntl.LOCK_UN)\nprint('ok')",
      ),
    ).toBe("ok\n");
    expect(
      await output(
        "import sqlite3\nc = sqlite3.connect('x.db')\nc.execute('create table t(x)')\nc.execute('insert into t values(7)')\nc.commit()\nprint(sqlite3.connect('x.db').execute('select x from t').fetchone()[0])",
      ),
    ).toBe("7\n");
    expect(
      await output(
        "@dataclass\nclass A:\n    x: int\ndef f(head: Optional[ListNode], root: TreeNode): return A(3).x\nprint(f(None, None), ListNode(4).val)",
      ),
    ).toBe("3 4\n");
  });

  test("returned values that are lists or numbers by another name", async () => {
    const values: [string, string][] = [
      ["map(int, '12')", '["l",[["i","1"],["i","2"]]]'],
      ["range(2)", '["l",[["i","0"],["i","1"]]]'],
      ["{x: 1}.keys()", '["l",[["i","1"]]]'],
      ["{x: 2}.items()", '["l",[["l",[["i","1"],["i","2"]]]]]'],
      ["__import__('array').array('i', [x])", '["l",[["i","1"]]]'],
      ["__import__('decimal').Decimal('1.50')", '["f","1.50"]'],
      ["__import__('fractions').Fraction(x, 4)", '["f","0.25"]'],
      ["__import__('fractions').Fraction(x)", '["i","1"]'],
      ["'é'.encode()", '["s","\\u00e9"]'],
    ];
    const outcomes = await Promise.all(values.map(([value]) => run(`def f(x): return ${value}`, {}, [call("1")])));
    expect(outcomes.map(({ frame }) => frame)).toEqual(values.map(([, frame]) => frame));
    const refused = [
      "{x}",
      "frozenset([x])",
      "deque([x])",
      "(i for i in [x])",
      "b'\\xff'",
      "zip(count(), count())",
      "object()",
    ];
    const statuses = await Promise.all(
      refused.map((value) => run(`def f(x): return ${value}`, { wallMs: 30_000, cpuMs: 30_000 }, [call("1")])),
    );
    expect(statuses.map(({ status }) => status)).toEqual(refused.map(() => "unserialisable"));
  }, 90_000);
});
