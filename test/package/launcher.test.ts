// The launcher in clones as strangers have them: no network, odd places, other users, nothing installed. Each runs the real script;
// what a machine does not allow (network or mount namespaces, another user) is skipped there.
import { chmodSync, chownSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { temporaryFolders } from "../support/folders.ts";
import { cleanEnvironment } from "../support/whet.ts";
import { addPackages, basicPrograms, freshClone, programFolder, run, works } from "./clone.ts";

const folder = temporaryFolders();
const root = process.getuid?.() === 0;
const noNetwork = root ? ["unshare", "-n"] : ["unshare", "-rn"];
const asNobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];
const canCutNetwork = await works([...noNetwork, "true"]);
const canMount = root && (await works(["unshare", "-m", "true"]));
const canBeNobody = root && (await works([...asNobody, "node", "--version"]));

describe.concurrent("a fresh clone", () => {
  test.skipIf(!canCutNetwork)(
    "without a network it says so within a minute",
    { timeout: 60_000 },
    async ({ expect }) => {
      const clone = freshClone(folder());
      const env = cleanEnvironment({ npm_config_cache: folder() });
      const { code, stdout, stderr } = await run([...noNetwork, "./whet", "train"], { cwd: clone, env });
      expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
      expect(stderr).toMatch(/^whetstone: installing \d+ npm packages/);
      expect(stderr).toMatch(/The npm registry https?:\S+ cannot be reached \(E[A-Z_]+\).*connect to a network/s);
      expect(existsSync(join(clone, "node_modules"))).toBe(false);
    },
  );

  test("a registry that never answers is not waited for", { timeout: 60_000 }, async ({ expect }) => {
    const silent = createServer(() => {}).listen(0, "127.0.0.1");
    await new Promise((resolve) => silent.once("listening", resolve));
    const registry = `http://127.0.0.1:${(silent.address() as { port: number }).port}/`;
    try {
      const env = cleanEnvironment({ npm_config_cache: folder(), npm_config_registry: registry });
      const { code, stderr } = await run(["./whet", "train"], { cwd: freshClone(folder()), env });
      expect(code).toBe(1);
      expect(stderr).toContain(`The npm registry ${registry} cannot be reached`);
    } finally {
      silent.close();
    }
  });

  test.skipIf(!canCutNetwork)("without a network, packages that are already there are used", async ({ expect }) => {
    const clone = freshClone(folder());
    addPackages(clone);
    const { code, stdout, stderr } = await run([...noNetwork, "./whet", "help"], {
      cwd: clone,
      env: cleanEnvironment(),
    });
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toContain("Usage: ./whet COMMAND");
    expect(readFileSync(join(clone, "node_modules/.whet-lock"), "utf8")).toBe(
      readFileSync(join(clone, "package-lock.json"), "utf8"),
    );
  });

  test("a path with spaces, letters of any language and characters that mean something in an address", async ({
    expect,
  }) => {
    const clone = freshClone(join(folder(), "a b #1 ?q=ü%20 %zz '日本\"", "$HOME & co"));
    addPackages(clone);
    const problem = { response: "```python\nprint(int(input()) + 1)\n```", tests: [{ input: "1", output: "2" }] };
    const env = cleanEnvironment();
    const graded = await run(["./whet", "grade", "-"], { cwd: clone, env, input: JSON.stringify(problem) });
    expect(JSON.parse(graded.stdout || "{}"), graded.stderr).toMatchObject({ verdict: "pass" });
    // Worker threads and a child process.
    const keys = ["max_steps=1", "eval_every=0", "prompts_per_step=2", "completions_per_prompt=4", "log_path=run"];
    const trained = await run(["./whet", "train", ...keys], { cwd: clone, env });
    expect(trained.code, trained.stderr).toBe(0);
    expect(readdirSync(join(clone, "run"))).toContain("checkpoints.jsonl");
    // Messages name the command as it was called, ready to be pasted.
    const elsewhere = folder();
    const usage = async (cwd: string, ...command: string[]) =>
      /^Usage: (.*) runs \[FOLDER\]/.exec((await run([...command, "help", "runs"], { cwd, env })).stdout)?.[1] ?? "";
    expect(await usage(clone, "./whet")).toBe("./whet");
    expect(await usage(clone, "sh", "whet")).toBe("sh whet");
    const pasted = await usage(elsewhere, join(clone, "whet"));
    expect((await run(["bash", "-c", `${pasted} --version`], { cwd: elsewhere, env })).stdout).toMatch(/^whetstone \d/);
    // The one thing that cannot work there says so.
    const tested = await run(["./whet", "test", "src/core/jsonl"], { cwd: clone, env });
    expect(tested.stderr).toContain("[cli/test-path]");
  });
});

describe("Node's version is checked on every start", () => {
  const versions: [string, boolean][] = [
    ["v16.20.2", false],
    ["v18.20.8", false],
    ["v20.9.0", false],
    ["v20.18.3", false],
    ["v20.19.0", true],
    ["v20.20.2", true],
    ["v21.7.3", true],
    ["v22.1.0", true],
    ["v26.10.0", true],
    ["v100.0.0", true],
  ];
  const clone = freshClone(folder());
  addPackages(clone);
  test.each(versions)("%s", async (version, fits) => {
    const node = `[ "$1" = --version ] && echo ${version} || echo started`;
    const programs = programFolder(folder(), [...basicPrograms, "bwrap"], { node });
    const { code, stdout, stderr } = await run(["./whet", "help"], { cwd: clone, env: { PATH: programs } });
    expect({ code, ran: stdout.includes("started") }).toEqual({ code: fits ? 0 : 1, ran: fits });
    if (!fits)
      expect(stderr).toBe(
        `whetstone: Node ${version} is too old. Install Node.js 20.19 or newer, then run this again.\n`,
      );
  });

  test("no Node at all", async () => {
    const programs = programFolder(
      folder(),
      basicPrograms.filter((name) => name !== "node"),
    );
    const { code, stderr } = await run(["./whet", "help"], { cwd: clone, env: { PATH: programs } });
    expect(code).toBe(1);
    expect(stderr).toContain("node is not installed. Install Node.js 20.19 or newer");
  });
});

describe("a clone that cannot be written to", () => {
  const readOnly = 'mount --bind "$PWD" "$PWD" && mount -o remount,ro,bind "$PWD" && cd "$PWD" && exec ./whet help';

  test.skipIf(!canMount)("says that it is read-only", async () => {
    const cwd = freshClone(folder());
    const { code, stderr } = await run(["unshare", "-m", "sh", "-c", readOnly], { cwd, env: cleanEnvironment() });
    expect(code).toBe(1);
    expect(stderr).toMatch(
      /^whetstone: \S+ is on a read-only file system, and its npm packages are not installed\. .*copy the clone/,
    );
  });

  test.skipIf(!canMount)("works where its packages are installed", async () => {
    const cwd = freshClone(folder());
    addPackages(cwd);
    const env = cleanEnvironment({ PATH: programFolder(folder(), basicPrograms) });
    const { code, stdout } = await run(["unshare", "-m", "sh", "-c", readOnly], { cwd, env });
    expect({ code, usage: stdout.includes("Usage: ./whet") }).toEqual({ code: 0, usage: true });
  });

  test.skipIf(!canBeNobody)("says so when it belongs to somebody else", async () => {
    const cwd = freshClone(folder());
    chmodSync(cwd, 0o755);
    const env = cleanEnvironment({ HOME: folder() });
    const { code, stderr } = await run([...asNobody, "./whet", "help"], { cwd, env });
    expect(code).toBe(1);
    expect(stderr).toMatch(/is read-only for this user \(EACCES\)/);
  });
});

describe("bubblewrap", () => {
  const log = 'echo "$0 $*" | sed "s|.*/||" >>"$LOG"';
  let clone: string | undefined;
  async function start(env: Record<string, string>, as: readonly string[] = [], programs: Record<string, string> = {}) {
    // One clone for all; what the launcher remembers of it is forgotten.
    if (clone === undefined) {
      clone = freshClone(folder());
      addPackages(clone);
    }
    for (const name of readdirSync(join(clone, "node_modules")))
      if (name.startsWith(".whet-")) rmSync(join(clone, "node_modules", name));
    const place = programFolder(join(folder(), "bin"), [...basicPrograms, "sed", "setpriv"], programs);
    const scratch = folder();
    mkdirSync(join(scratch, "home"));
    for (const path of [scratch, join(scratch, "home"), clone, join(clone, "node_modules")]) {
      chmodSync(path, 0o755);
      if (as.length > 0) chownSync(path, 65534, 65534);
    }
    chmodSync(join(place, ".."), 0o755);
    const all = { ...cleanEnvironment(), PATH: place, LOG: join(scratch, "log"), HOME: join(scratch, "home"), ...env };
    const first = await run([...as, "./whet", "help"], { cwd: clone, env: all });
    const second = await run([...as, "./whet", "help"], { cwd: clone, env: all });
    const calls = existsSync(all.LOG) ? readFileSync(all.LOG, "utf8").trim().split("\n") : [];
    return { first, second, calls };
  }

  test.skipIf(!root)("the command is shown before it runs, and is not tried again after it failed", async () => {
    const { first, second, calls } = await start({}, [], { "apt-get": `${log}; exit 100` });
    expect(first.code, first.stderr).toBe(0);
    expect(calls.map((line) => line.split(" ").slice(0, 2).join(" "))).toEqual([
      "apt-get install",
      "apt-get update",
      "apt-get install",
    ]);
    for (const call of calls) expect(first.stderr).toContain(`running: ${call}   (WHET_NO_INSTALL=1 forbids this)`);
    expect(first.stderr).toContain("the sandbox uses its second level (Landlock)");
    expect(second).toMatchObject({ code: 0, stderr: "" });
  });

  test("WHET_NO_INSTALL=1 forbids it", async () => {
    const { first, calls } = await start({ WHET_NO_INSTALL: "1" }, [], { "apt-get": log, sudo: log });
    expect({ code: first.code, calls }).toEqual({ code: 0, calls: [] });
    expect(first.stderr).toMatch(/WHET_NO_INSTALL=1: .*To install it: apt-get install bubblewrap$/m);
  });

  test.skipIf(!canBeNobody)("an ordinary user without sudo is told what to ask for", async () => {
    const { first, calls } = await start({}, asNobody, { "apt-get": log });
    expect({ code: first.code, calls }, first.stderr).toEqual({ code: 0, calls: [] });
    expect(first.stderr).toMatch(/this user may not install it: .*To install it: apt-get install/);
  });

  test.skipIf(!canBeNobody)("an ordinary user with sudo installs through it", async () => {
    const { first, calls } = await start({}, asNobody, { "apt-get": "exit 1", sudo: log });
    expect(first.code, first.stderr).toBe(0);
    expect(calls[0]).toBe("sudo -n true");
    expect(calls[1]).toMatch(/^sudo -n apt-get install -y/);
    expect(first.stderr).toMatch(/running: sudo -n apt-get install/);
  });
});
