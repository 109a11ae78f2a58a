import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { basename, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { Worker } from "node:worker_threads";
import { expect, test } from "vitest";
import { temporaryFolders } from "../../test/support/folders.ts";
import { takeLock } from "./lock-file.ts";
import { typescriptFlags } from "./workers.ts";

const newFolder = temporaryFolders();

/** What a process writes into its lock. */
function identityOf(pid: number | string): string {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  return `${pid} ${stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19]}`;
}

test("one holder at a time, and nothing is left behind", () => {
  const folder = newFolder();
  const file = join(folder, "lock");
  const first = takeLock(file);
  expect(takeLock(file)).toEqual({ holder: process.pid });
  if ("release" in first) first.release();
  expect(readdirSync(folder)).toEqual([]);
  expect(takeLock(file)).toHaveProperty("release");
});

test("one folder is one lock, whatever path leads to it", () => {
  const folder = newFolder();
  const link = join(newFolder(), "link");
  symlinkSync(folder, link);
  const first = takeLock(join(folder, "lock"));
  for (const path of [link, join(link, "."), `${folder}/../${basename(folder)}`, relative(process.cwd(), folder)])
    expect(takeLock(join(path, "lock")), path).toEqual({ holder: process.pid });
  if ("release" in first) first.release();
  const second = takeLock(join(link, "lock"));
  expect(takeLock(join(folder, "lock"))).toEqual({ holder: process.pid });
  if ("release" in second) second.release();
  expect(readdirSync(folder)).toEqual([]);
});

test("threads of one process hold against each other, and the end of a thread gives its lock back", async () => {
  const folder = newFolder();
  const file = join(folder, "lock");
  const program = `
    import { parentPort } from "node:worker_threads";
    import { takeLock } from ${JSON.stringify(new URL("./lock-file.ts", import.meta.url).href)};
    let lock;
    parentPort.on("message", (ask) => {
      if (ask === "take") parentPort.postMessage("release" in (lock = takeLock(${JSON.stringify(file)})) ? "mine" : "taken");
      else parentPort.postMessage(lock.release());
    });`;
  const threads = Array.from(
    { length: 2 },
    () =>
      new Worker(new URL(`data:text/javascript,${encodeURIComponent(program)}`), { execArgv: [...typescriptFlags] }),
  );
  const [first, second] = threads as [Worker, Worker];
  const ask = async (thread: Worker, what: "take" | "release") => {
    const answer = once(thread, "message");
    thread.postMessage(what);
    return ((await answer) as [unknown])[0];
  };
  try {
    expect(await ask(first, "take")).toBe("mine");
    expect(await ask(second, "take")).toBe("taken");
    expect(takeLock(file)).toEqual({ holder: process.pid });
    await ask(first, "release");
    expect(await ask(second, "take")).toBe("mine");
    await second.terminate();
    const own = takeLock(file);
    expect(await ask(first, "take")).toBe("taken");
    if ("release" in own) own.release();
    expect(readdirSync(folder)).toEqual([]);
  } finally {
    await Promise.all(threads.map((thread) => thread.terminate()));
  }
});

test("a live process keeps its lock", () => {
  const file = join(newFolder(), "lock");
  writeFileSync(file, `${identityOf(1)}\n`);
  expect(takeLock(file)).toEqual({ holder: 1 });
  expect(existsSync(file)).toBe(true);
});

test("the lock of a process that is gone, of an id used again, or without content is taken over", () => {
  const dead = execFileSync("sh", ["-c", "echo $$"], { encoding: "utf8" }).trim();
  for (const content of [`${dead} 12345`, "1 12345", `${identityOf(process.pid)}`, "", "rubbish"]) {
    const file = join(newFolder(), "lock");
    writeFileSync(file, content);
    expect(takeLock(file), content).toHaveProperty("release");
    expect(readFileSync(file, "utf8").split("\n")[0]).toBe(identityOf(process.pid));
  }
});

test("a lock that cannot be read or taken over is an error", () => {
  const file = join(newFolder(), "lock");
  mkdirSync(file);
  expect(() => takeLock(file)).toThrow("EISDIR");
});

test("a process that has ended and was not waited for does not hold", async () => {
  const file = join(newFolder(), "lock");
  // The shell goes on as `sleep`, which never waits for the child it got.
  const parent = spawn("sh", ["-c", "sleep 0.2 & echo $!; exec sleep 30"], { stdio: ["ignore", "pipe", "ignore"] });
  try {
    const [line] = (await once(parent.stdout, "data")) as [Buffer];
    const pid = line.toString().trim();
    writeFileSync(file, identityOf(pid));
    await expect.poll(() => readFileSync(`/proc/${pid}/stat`, "utf8"), { timeout: 20_000 }).toMatch(/\) Z /);
    expect(takeLock(file)).toHaveProperty("release");
  } finally {
    parent.kill("SIGKILL");
  }
});

test("of many processes that find a dead holder's lock, one gets it", async () => {
  const folder = newFolder();
  const file = join(folder, "lock");
  const program = `
    import { takeLock } from ${JSON.stringify(fileURLToPath(new URL("./lock-file.ts", import.meta.url)))};
    process.stdin.once("data", () => {
      console.log("release" in takeLock(${JSON.stringify(file)}) ? "mine" : "taken");
      process.stdin.once("data", () => process.exit());
    });
    console.log("ready");`;
  for (let round = 0; round < 3; round++) {
    writeFileSync(file, "1 12345");
    const children = Array.from({ length: 6 }, () =>
      spawn(process.execPath, [...typescriptFlags, "--input-type=module", "-e", program], {
        stdio: ["pipe", "pipe", "inherit"],
      }),
    );
    const next = async () =>
      Promise.all(children.map(async ({ stdout }) => ((await once(stdout, "data")) as [Buffer])[0].toString().trim()));
    expect(new Set(await next())).toEqual(new Set(["ready"]));
    const answers = next();
    for (const { stdin } of children) stdin.write("go\n");
    expect((await answers).filter((answer) => answer === "mine")).toHaveLength(1);
    const ended = Promise.all(children.map((child) => once(child, "exit")));
    for (const { stdin } of children) stdin.end("stop\n");
    await ended;
    expect(readdirSync(folder)).toEqual(["lock"]);
  }
});
