// keep.py with a module that starts processes of its own, one of them in a session of its own and deaf to SIGTERM.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";

const keeper = fileURLToPath(new URL("./keep.py", import.meta.url));
const module = `
import os, signal, subprocess, sys, time
deaf = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf', flush=True); time.sleep(600)"
child = subprocess.Popen([sys.executable, "-c", deaf], stdout=subprocess.PIPE, start_new_session=True)
child.stdout.readline()
with open(f"/proc/{os.getppid()}/cmdline", "rb") as file: parent = file.read().split(bytes(1))
print("up", os.getpid(), child.pid, parent[2:5] == [b"run", b"-m", b"busy"], sys.argv[1:], flush=True)
if "fail" in sys.argv: sys.exit(7)
time.sleep(600)
`;

interface Kept {
  child: ChildProcess;
  pids: number[];
  line: string;
}

async function start(...words: string[]): Promise<Kept> {
  const folder = mkdtempSync(join(tmpdir(), "keep-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  writeFileSync(join(folder, "busy.py"), module);
  const child = spawn("python3", [keeper, "run", "-m", "busy", ...words], {
    env: { ...process.env, PYTHONPATH: folder, WHET_ENGINE_GRACE_S: "1" },
    stdio: ["pipe", "pipe", "inherit"],
    detached: true,
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  const [line] = (await once(createInterface({ input: child.stdout! }), "line")) as [string];
  const [, module_, deaf] = line.split(" ");
  return { child, line, pids: [child.pid!, Number(module_), Number(deaf)] };
}

const lives = (pid: number) => {
  try {
    return !["Z", "X"].includes(readFileSync(`/proc/${pid}/stat`, "utf8").replace(/.*\) /s, "").slice(0, 1));
  } catch {
    return false;
  }
};

async function untilGone(pids: readonly number[]): Promise<void> {
  while (pids.some(lives)) await sleep(50);
}

test("everything ends once standard input closes, what is deaf too", { timeout: 60_000 }, async () => {
  const { child, pids, line } = await start("--port", "0");
  expect(line).toMatch(/True \['--port', '0'\]$/);
  child.stdin!.end();
  await untilGone(pids);
});

test("a signal of the terminal ends nothing", async () => {
  const { child, pids } = await start();
  for (const name of ["SIGINT", "SIGHUP", "SIGTERM"] as const) process.kill(child.pid!, name);
  await sleep(0);
  expect(pids.every(lives)).toBe(true);
  process.kill(pids[2]!, "SIGKILL");
  child.stdin!.end();
  await untilGone(pids);
});

test("its module dies with it, even of kill -9", async () => {
  const { child, pids } = await start();
  process.kill(pids[2]!, "SIGKILL");
  child.kill("SIGKILL");
  await untilGone(pids);
});

test("the module's end is its end, with the same code", { timeout: 60_000 }, async () => {
  const { child, pids } = await start("fail");
  const [code] = (await once(child, "exit")) as [number];
  expect(code).toBe(7);
  await untilGone(pids);
});
