// What every sandbox must do, whichever implementation runs the programs.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Limits, Sandbox, TestInput } from "../../src/sandbox/sandbox.ts";
import { call, job, stdin, textOf } from "./plain.ts";

export interface Abilities {
  /** Programs may start processes. */
  processes: boolean;
  /** What a program wrote before a limit ended it comes back too. It is no evidence, so a sandbox may drop it. */
  outputBeforeLimits: boolean;
  /** The memory limit holds for all processes of a program together, not only for each. */
  memoryTogether: boolean;
}

export function describeSandbox(name: string, open: () => Promise<Sandbox>, can: Abilities): void {
  describe(name, () => {
    let sandbox: Sandbox;
    beforeAll(async () => {
      sandbox = await open();
    }, 60_000);
    afterAll(() => sandbox?.close());

    const run = (source: string, tests: readonly TestInput[], limits: Partial<Limits> = {}, preamble = true) =>
      sandbox.run(job(source, tests, limits, preamble), () => "continue");
    const output = async (source: string, input = "", limits: Partial<Limits> = {}) => {
      const [outcome] = await run(source, [stdin(input)], limits);
      expect(outcome, outcome?.stderrTail).toMatchObject({ status: "finished", exitCode: 0 });
      return textOf(outcome);
    };
    const status = async (source: string, tests: readonly TestInput[], limits: Partial<Limits> = {}) =>
      (await run(source, tests, limits)).map((outcome) => outcome.status);

    test("a program is a script on real descriptors", async () => {
      expect(await output("import os\nprint(__name__, os.read(0, 5), end='')", "hello")).toBe("__main__ b'hello'");
      expect(await output("import sys\nsys.stdout.buffer.write(sys.stdin.buffer.read()[::-1])", "abc")).toBe("cba");
      expect(await output("print(open(0).read().upper())", "é\n")).toBe("É\n\n");
      expect(await output("import os\nos.write(1, b'raw')")).toBe("raw");
      expect(await output("import pickle\nclass A: pass\nprint(type(pickle.loads(pickle.dumps(A()))).__name__)")).toBe(
        "A\n",
      );
    });

    test("exit(), quit(), threads, atexit and open files end as in Python", async () => {
      expect(await output("print(1); exit(); print(2)")).toBe("1\n");
      expect(await output("print(1); quit(0); print(2)")).toBe("1\n");
      expect(
        await output(
          "import threading, time\nthreading.Thread(target=lambda: (time.sleep(.05), print('late'))).start()",
        ),
      ).toBe("late\n");
      expect(await output("import atexit\natexit.register(print, 'bye')\nprint('hi')")).toBe("hi\nbye\n");
      expect(await output("out = open(1, 'w', closefd=False)\nout.write('kept')")).toBe("kept");
      expect(await output("class A:\n    def __del__(self): print('del')\na = A()")).toBe("del\n");
    });

    test("a status other than 0 is a runtime error, whatever was printed", async () => {
      expect(await status("print(5)\nraise SystemExit(3)", [stdin("")])).toEqual(["runtime-error"]);
      expect(await status("print(5)\n1 / 0", [stdin("")])).toEqual(["runtime-error"]);
      const [killed] = await run("import os\nos.kill(os.getpid(), 9)", [stdin("")]);
      expect(killed).toMatchObject({ status: "runtime-error", exitCode: null, signal: 9 });
      const [failed] = await run("import sys\nsys.exit('why')", [stdin("")]);
      expect(failed).toMatchObject({ exitCode: 1, stderrTail: "why\n" });
    });

    test("the preamble gives names and keeps builtins; without it there are none", async () => {
      expect(await output("print(sqrt(4), pow(2, 5, 7), gcd(4, 6), List[int], datetime.date(2020, 1, 2))")).toBe(
        "2.0 4 2 typing.List[int] 2020-01-02\n",
      );
      expect(await output("from __future__ import annotations\ndef f(x: Nope): pass\nprint(f.__annotations__)")).toBe(
        "{'x': 'Nope'}\n",
      );
      const [without] = await run("print(sqrt(4))", [stdin("")], {}, false);
      expect(without).toMatchObject({ status: "runtime-error" });
      expect(without!.stderrTail).toContain("NameError");
    });

    test("deep recursion works with the preamble's limit", async () => {
      expect(await output("def f(n): return 0 if n == 0 else 1 + f(n - 1)\nprint(f(50000))")).toBe("50000\n");
    });

    test("large input and output pass whole", async () => {
      const input = `${"9".repeat(999_999)}\n`.repeat(3);
      expect((await output("import sys\nsys.stdout.write(sys.stdin.read())", input)).length).toBe(input.length);
      // A program that reads nothing is not disturbed by what is left.
      expect(await output("print('done')", input)).toBe("done\n");
    });

    test("every test has a fresh process, a fresh folder and its own input", async () => {
      const source =
        "import os, builtins\nn = getattr(builtins, 'n', 0); builtins.n = n + 1\nprint(n, sorted(os.listdir('.')), input())\nopen('left', 'w').close()";
      const outcomes = await run(source, [stdin("a"), stdin("b"), stdin("c")]);
      const texts = outcomes.map(textOf);
      expect(texts.map((text) => text.slice(-2))).toEqual(["a\n", "b\n", "c\n"]);
      for (const text of texts) expect(text).not.toMatch(/left|^1/);
    });

    test("afterTest sees every outcome in order and can stop", async () => {
      const seen: string[] = [];
      const outcomes = await sandbox.run(job("print(input())", ["1", "2", "3", "4"].map(stdin)), (outcome, index) => {
        seen.push(`${index}:${textOf(outcome).trim()}`);
        return index === 2 ? "stop" : "continue";
      });
      expect(seen).toEqual(["0:1", "1:2", "2:3"]);
      expect(outcomes).toHaveLength(3);
    });

    test("a program that does not parse", async () => {
      expect(await status("def f(:\n", [stdin("")])).toEqual(["compile-error"]);
      expect(await status("  x = 1\n y = 2\n", [call("1")])).toEqual(["compile-error"]);
      expect(await status("x = '\0'\n", [stdin("")])).toEqual(["compile-error"]);
    });

    test("a call returns a tagged tree, and what it prints is ignored", async () => {
      const source =
        "class Solution:\n  def f(self, a, b):\n    print('noise')\n    return [a, b, (None, True), {1: 0.1}, 'é']";
      const [outcome] = await run(source, [call("[1, 2]", "12345678901234567891")]);
      expect(outcome!.status).toBe("finished");
      expect(JSON.parse(outcome!.frame!)).toEqual([
        "l",
        [
          [
            "l",
            [
              ["i", "1"],
              ["i", "2"],
            ],
          ],
          ["i", "12345678901234567891"],
          ["l", [["n"], ["b", true]]],
          [
            "d",
            [
              [
                ["i", "1"],
                ["f", "0.1"],
              ],
            ],
          ],
          ["s", "é"],
        ],
      ]);
    });

    test("what a call can go wrong with", async () => {
      const cases: [string, string, string][] = [
        ["def g(x): pass", "1", "target-not-found"],
        ["f = 5", "1", "target-not-found"],
        ["def f(x): return {x}", "1", "unserialisable"],
        ["async def f(x): return x", "1", "unserialisable"],
        ["def f(x):\n  a = []\n  a.append(a)\n  return a", "1", "unserialisable"],
        ["def f(x): return x", "[1,", "bad-arguments"],
        ["def f(x): return x[0]", "1", "runtime-error"],
        ["def f(x): return f(x)", "1", "runtime-error"],
        ["def f(x): raise SystemExit(0)", "1", "no-result"],
        ["x = input()\ndef f(x): return x", "1", "runtime-error"],
      ];
      const slow = { wallMs: 60_000, cpuMs: 60_000 };
      const statuses = await Promise.all(cases.map(([source, argument]) => status(source, [call(argument)], slow)));
      expect(statuses).toEqual(cases.map(([, , wanted]) => [wanted]));
    }, 60_000);

    test("preamble names are no targets", async () => {
      const add: TestInput = { kind: "call", functionName: "add", argumentsJson: ["1", "2"] };
      expect(await status("pass", [add])).toEqual(["target-not-found"]);
      expect(await status("def add(a, b): return a + b", [add])).toEqual(["finished"]);
    });

    test("limits end a program and say which", async () => {
      const quick = { wallMs: 400 };
      const ended = await Promise.all([
        status("while True: pass", [stdin("")], quick),
        status("import time\ntime.sleep(60)", [stdin("")], quick),
        status("def f(x):\n  while True: pass", [call("1")], quick),
        status("while True: pass", [stdin("")], { cpuMs: 1000, wallMs: 60_000 }),
        status("x = bytearray(1 << 34)", [stdin("")]),
      ]);
      // Too little to run at all is no failure of the sandbox.
      expect(await status("x = [0] * 10**6", [stdin("")], { memoryBytes: 1024 ** 2 })).not.toContain("finished");
      expect(await status("while True: pass", [stdin("")], { wallMs: 0.5 })).toEqual(["time-limit"]);
      expect(ended.flat()).toEqual(["time-limit", "time-limit", "time-limit", "time-limit", "memory-limit"]);
      const [loud] = await run("while True: print('y' * 999)", [stdin("")], { outputBytes: 100_000 });
      expect(loud).toMatchObject({ status: "output-limit" });
      expect(loud!.stdout.length).toBe(can.outputBeforeLimits ? 100_000 : 0);
      const [noisy] = await run("import sys\nfor i in range(99999): print(i, file=sys.stderr)", [stdin("")]);
      expect(noisy!.status).toBe("finished");
      expect(noisy!.stderrTail.length).toBe(4096);
      expect(noisy!.stderrTail.endsWith("99998\n")).toBe(true);
    });

    if (can.outputBeforeLimits) {
      test("a cut-off output is kept up to the moment of the kill", async () => {
        const [outcome] = await run("print('first', flush=True)\nwhile True: pass", [stdin("")], { wallMs: 400 });
        expect(textOf(outcome)).toBe("first\n");
      });
    }

    test("an aborted run rejects with the signal's reason", async () => {
      const abort = new AbortController();
      const running = sandbox.run(job("while True: pass", [stdin("")]), () => "continue", { signal: abort.signal });
      setTimeout(() => abort.abort(new Error("enough")), 100);
      await expect(running).rejects.toThrow("enough");
      expect(await output("print('next')")).toBe("next\n");
    });

    if (can.processes) {
      test("processes work", async () => {
        const echo = "import subprocess\nprint(subprocess.run(['echo', 'x'], capture_output=True, text=True).stdout)";
        expect(await output(echo)).toBe("x\n\n");
        const pool =
          "from multiprocessing import Pool\ndef g(x): return x * x\nif __name__ == '__main__':\n  with Pool(2) as p: print(p.map(g, [1, 2, 3]))";
        expect(await output(pool)).toBe("[1, 4, 9]\n");
      });
    }
    if (can.memoryTogether) {
      test("the memory of all processes counts together", async () => {
        const hungry =
          "import os, time\nfor _ in range(4):\n  if os.fork() == 0: break\nx = bytearray(b'x' * (200 * 2**20))\ntime.sleep(30)";
        const limits = { memoryBytes: 500 * 1024 ** 2, wallMs: 30_000 };
        expect(await status(hungry, [stdin("")], limits)).toEqual(["memory-limit"]);
      }, 60_000);
    }

    test("asyncio works without a network", async () => {
      expect(
        await output("import asyncio\nasync def main(): print(await asyncio.sleep(0, 'ok'))\nasyncio.run(main())"),
      ).toBe("ok\n");
    });
  });
}
