// The embedded jail beyond the shared suite, at both levels: execute(), failures of its own parts, leaks, and what is left after its end.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { ExecuteRequest } from "../../src/sandbox/execute.ts";
import { type Jail, type JailLevel, openJail } from "../../src/sandbox/jail.ts";
import { defaultLimits, SandboxError } from "../../src/sandbox/sandbox.ts";
import { job, stdin, textOf } from "./plain.ts";
import { descendants, killAll, ownJailProcesses, signalIfAlive } from "./processes.ts";

const here = fileURLToPath(new URL(".", import.meta.url));
const loader = join(here, "../../src/core/ts-loader.mjs");

const request = (code: string, more: Partial<ExecuteRequest> = {}): ExecuteRequest => ({
  code,
  stdin: "",
  files: new Map(),
  fetchFiles: [],
  limits: defaultLimits,
  ...more,
});

describe.each<JailLevel>(["jail", "landlock"])("execute and health, level %s", (level) => {
  let jail: Jail;
  beforeAll(async () => {
    jail = await openJail({ levels: [level], slots: 2 });
  }, 60_000);
  afterAll(() => jail?.close());

  test("one script with files in and out", async () => {
    const result = await jail.execute(
      request(
        "import sys\ns = open('dir/in.txt').read()\nopen('out.txt', 'w').write(s.upper())\nprint(len(sys.argv), input())\nsys.exit(3)",
        {
          stdin: "line\n",
          files: new Map([["dir/in.txt", Buffer.from("hello")]]),
          fetchFiles: ["out.txt", "missing.txt", "dir"],
        },
      ),
    );
    expect(result).toMatchObject({ status: "finished", exitCode: 3, signal: null, oom: false, stdoutTruncated: false });
    expect(Buffer.from(result.stdout).toString()).toBe("1 line\n");
    expect([...result.files.keys()]).toEqual(["out.txt"]);
    expect(Buffer.from(result.files.get("out.txt")!).toString()).toBe("HELLO");
  });

  test("a syntax error is the script's own failure", async () => {
    const result = await jail.execute(request("int a = 1"));
    expect(result).toMatchObject({ status: "finished", exitCode: 1 });
    expect(Buffer.from(result.stderr).toString()).toContain("SyntaxError");
  });

  test("symbolic links are not fetched, nor files that are too large", async () => {
    const code =
      "import os\nos.symlink('/etc/passwd', 'link')\nos.mkdir('real')\nopen('real/x', 'w').write('x')\nos.symlink('real', 'folder')\nopen('big', 'wb').write(b'x' * 5000)\nopen('small', 'w').write('ok')";
    const fetchFiles = ["link", "folder/x", "big", "small"];
    const result = await jail.execute(request(code, { fetchFiles, fetchBytes: 1000 }));
    expect([...result.files.keys()]).toEqual(["small"]);
    expect(result.filesLeftOut).toEqual(["big"]);
  });

  test.each(["/etc/x", "../x", "a/../../x", "", "a//b", "./a"])("the path %j is refused", async (path) => {
    await expect(jail.execute(request("pass", { fetchFiles: [path] }))).rejects.toMatchObject({
      code: "sandbox/bad-path",
    });
    const files = new Map([[path, Buffer.from("x")]]);
    await expect(jail.execute(request("pass", { files }))).rejects.toMatchObject({ code: "sandbox/bad-path" });
  });

  test("a path that is a file and a folder, and more than fits, are refused", async () => {
    const both = new Map(["a", "a/b"].map((path) => [path, Buffer.from("x")]));
    await expect(jail.execute(request("pass", { files: both }))).rejects.toMatchObject({ code: "sandbox/bad-path" });
    const big = { files: new Map([["big", Buffer.alloc(9000)]]), limits: { ...defaultLimits, scratchBytes: 8192 } };
    await expect(jail.execute(request("pass", big))).rejects.toMatchObject({ code: "sandbox/bad-path" });
  });

  test("caps on both streams, memory and time", async () => {
    const limits = { ...defaultLimits, outputBytes: 1000, wallMs: 500 };
    expect(await jail.execute(request("while True: print('x' * 100)", { limits }))).toMatchObject({
      status: "output-limit",
      stdoutTruncated: true,
      signal: 9,
    });
    const loud = await jail.execute(request("import sys\nwhile True: sys.stderr.write('x' * 100)", { limits }));
    expect(loud).toMatchObject({ status: "output-limit", stderrTruncated: true });
    expect(await jail.execute(request("x = 'x' * (1 << 34)"))).toMatchObject({ status: "memory-limit", oom: true });
    expect(await jail.execute(request("while True: pass", { limits }))).toMatchObject({ status: "time-limit" });
  });

  test("killing a zygote under a program: it is retried, and the next programs run", async () => {
    const running = jail.run(
      job("import time\ntime.sleep(0.5)\nprint(input())", [stdin("a"), stdin("b")]),
      () => "continue",
    );
    await new Promise((resolve) => setTimeout(resolve, 200));
    killAll();
    expect((await running).map(textOf)).toEqual(["a\n", "b\n"]);
    const next = await Promise.all(
      [1, 2, 3].map((n) => jail.run(job("print(input())", [stdin(`${n}`)]), () => "continue")),
    );
    expect(next.map(([outcome]) => textOf(outcome))).toEqual(["1\n", "2\n", "3\n"]);
  }, 60_000);

  test("a program lost again and again is an error of the sandbox, not a verdict", async () => {
    let stop = false;
    const killer = (async () => {
      while (!stop) {
        killAll();
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    })();
    const running = jail.run(job("import time\ntime.sleep(5)\nprint(1)", [stdin("")]), () => "continue");
    try {
      await expect(running).rejects.toSatisfy(
        (error) => error instanceof SandboxError && error.code === "sandbox/lost",
      );
    } finally {
      stop = true;
      await killer;
    }
    const [outcome] = await jail.run(job("print('again')", [stdin("")]), () => "continue");
    expect(textOf(outcome)).toBe("again\n");
  }, 60_000);

  test("a full scratch disk hurts only the program that filled it", async () => {
    const filler = "n = 0\nwhile True:\n    open(f'f{n}', 'wb').write(b'x' * 2**20)\n    n += 1";
    const limits = { scratchBytes: 8 * 1024 ** 2, wallMs: 3_000 };
    const [full] = await jail.run(job(filler, [stdin("")], limits), () => "continue");
    expect(["runtime-error", "output-limit", "time-limit"]).toContain(full!.status);
    const [next] = await jail.run(
      job("open('f', 'wb').write(b'x' * 2**22)\nprint('ok')", [stdin("")], limits),
      () => "continue",
    );
    expect(textOf(next)).toBe("ok\n");
  });

  test("after many executions nothing has leaked", async () => {
    const facts = () => ({
      descriptors: readdirSync("/proc/self/fd").length,
      mounts: readFileSync("/proc/self/mountinfo", "utf8").split("\n").length,
      processes: ownJailProcesses().length,
    });
    const once = () => jail.run(job("print(input())", [stdin("x")]), () => "continue");
    for (let i = 0; i < 10; i++) await once();
    const before = facts();
    for (let i = 0; i < 30; i++) await Promise.all([once(), once()]);
    // Spare slots are forked ahead, so the count wavers by a few; a leak would show as tens.
    const after = facts();
    expect(after.mounts).toBe(before.mounts);
    expect(after.descriptors).toBeLessThan(before.descriptors + 10);
    expect(after.processes).toBeLessThan(before.processes + 10);
  }, 60_000);
});

// On its own: it stops every jail process there is.
test.each<JailLevel>(["jail", "landlock"])(
  "a wedged jail is noticed and replaced, level %s",
  async (level) => {
    const others = new Set(ownJailProcesses());
    const impatient = await openJail({ levels: [level], slots: 1, patienceMs: 3_000 });
    try {
      const source = "import time\ntime.sleep(0.3)\nprint(input())";
      const running = impatient.run(job(source, [stdin("a")], { wallMs: 1_000 }), () => "continue");
      await new Promise((resolve) => setTimeout(resolve, 150));
      for (const pid of ownJailProcesses()) if (!others.has(pid)) signalIfAlive(pid, "SIGSTOP");
      expect((await running).map(textOf)).toEqual(["a\n"]);
    } finally {
      await impatient.close();
    }
  },
  60_000,
);

test("close leaves no process and no folder behind", async () => {
  const folders = () =>
    readdirSync(tmpdir())
      .filter((name) => name.startsWith(`whetstone-jail-${process.pid}-`))
      .sort();
  const foldersBefore = folders();
  const processesBefore = new Set(ownJailProcesses());
  const jail = await openJail({ levels: ["jail"], slots: 2 });
  const running = jail.run(job("while True: pass", [stdin("")]), () => "continue");
  running.catch(() => {});
  await new Promise((resolve) => setTimeout(resolve, 100));
  expect(ownJailProcesses().filter((pid) => !processesBefore.has(pid)).length).toBeGreaterThan(0);
  await jail.close();
  await expect(running).rejects.toMatchObject({ code: "sandbox/lost" });
  await expect(jail.run(job("pass", [stdin("")]), () => "continue")).rejects.toMatchObject({ code: "sandbox/lost" });
  // The kernel takes a moment to tear the namespaces down after the outer process is gone.
  for (let i = 0; i < 100 && ownJailProcesses().some((pid) => !processesBefore.has(pid)); i++)
    await new Promise((resolve) => setTimeout(resolve, 20));
  expect(ownJailProcesses().filter((pid) => !processesBefore.has(pid))).toEqual([]);
  expect(folders()).toEqual(foldersBefore);
});

test.each<JailLevel>(["jail", "landlock"])(
  "killing this process leaves no program running, level %s",
  async (level) => {
    const child = spawn(process.execPath, ["--import", loader, join(here, "open-jail.ts"), level, "hold"], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    await once(child.stdout, "data");
    await new Promise((resolve) => setTimeout(resolve, 300));
    const pids = descendants(child.pid!);
    expect(pids.length).toBeGreaterThan(2);
    child.kill("SIGKILL");
    await once(child, "close");
    const alive = () =>
      pids.filter((pid) => existsSync(`/proc/${pid}`) && !/\) Z /.test(readFileSync(`/proc/${pid}/stat`, "utf8")));
    for (let i = 0; i < 250 && alive().length > 0; i++) await new Promise((resolve) => setTimeout(resolve, 20));
    expect(alive()).toEqual([]);
    // The folder it could not remove goes with the next jail.
    const folders = () => readdirSync(tmpdir()).filter((name) => name.startsWith(`whetstone-jail-${child.pid}-`));
    expect(folders()).toHaveLength(1);
    await (await openJail({ levels: ["landlock"], slots: 1 })).close();
    expect(folders()).toEqual([]);
  },
  60_000,
);
