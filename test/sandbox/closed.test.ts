// The embedded jail fails closed: it refuses to run anything where its isolation is missing or leaks, and falls back only to what proves itself.
import { execFile, execFileSync, spawnSync } from "node:child_process";
import { chmodSync, chownSync, existsSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, describe, expect, test } from "vitest";
import { openJail } from "../../src/sandbox/jail.ts";

const here = fileURLToPath(new URL(".", import.meta.url));
const loader = join(here, "../../src/core/ts-loader.mjs");
const asRoot = process.geteuid?.() === 0;

describe("failing closed", () => {
  const folder = mkdtempSync(join(tmpdir(), "whetstone-closed-"));
  chmodSync(folder, 0o755);
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  const script = (name: string, text: string) => {
    const path = join(folder, name);
    writeFileSync(path, text, { mode: 0o755 });
    return path;
  };

  test("no python3", async () => {
    const missing = openJail({ python: "/nowhere/python3" });
    await expect(missing).rejects.toMatchObject({ code: "sandbox/no-python" });
    await expect(missing).rejects.toThrow(/nowhere.*sandbox_python=/s);
  });

  test("no bubblewrap, and only the first level asked for", async () => {
    const opened = openJail({ levels: ["jail"], bwrap: "/nowhere/bwrap" });
    await expect(opened).rejects.toMatchObject({ code: "sandbox/unavailable" });
    await expect(opened).rejects.toThrow(/bubblewrap.*not installed.*To fix it/s);
  });

  test("no bubblewrap: the second level takes over and says so", async () => {
    const jail = await openJail({ bwrap: "/nowhere/bwrap", slots: 1 });
    expect(jail.description.kind).toBe("landlock");
    expect(jail.description.lacks.length).toBeGreaterThan(0);
    await jail.close();
  });

  test("a jail that shows host files is refused by its own self-test", async () => {
    const bwrap = execFileSync("sh", ["-c", "command -v bwrap"], { encoding: "utf8" }).trim();
    const leaky = script(
      "bwrap",
      `#!/bin/bash\nargs=()\nfor a in "$@"; do [ "$a" = "--remount-ro" ] && args+=(--ro-bind /etc/passwd /files/etc/passwd); args+=("$a"); done\nexec ${bwrap} "\${args[@]}"\n`,
    );
    const opened = openJail({ levels: ["jail"], bwrap: leaky });
    await expect(opened).rejects.toThrow(/self-test failed.*could read \/etc\/passwd/s);
  });

  test("a jail that leaves the disk writable is refused", async () => {
    const bwrap = execFileSync("sh", ["-c", "command -v bwrap"], { encoding: "utf8" }).trim();
    const leaky = script(
      "bwrap-writable",
      `#!/bin/bash\nargs=()\nfor a in "$@"; do [ "$a" = "--remount-ro" ] && args+=(--dir /files/etc/open --tmpfs /files/var/tmp); args+=("$a"); done\nexec ${bwrap} "\${args[@]}"\n`,
    );
    const opened = openJail({ levels: ["jail"], bwrap: leaky });
    await expect(opened).rejects.toThrow(/self-test failed.*could write to \/var\/tmp/s);
  });

  /** Runs a small script that opens a jail, in a process whose kernel refuses what `deny` names. */
  async function openUnder(
    ...deny: string[]
  ): Promise<{ kind?: string; lacks?: string[]; code?: string; message?: string }> {
    const args = [
      join(here, "deny.py"),
      deny.join(","),
      process.execPath,
      "--import",
      loader,
      join(here, "open-jail.ts"),
    ];
    const { stdout } = await promisify(execFile)("python3", args, { timeout: 60_000 });
    return JSON.parse(stdout) as { kind?: string };
  }

  test("namespaces refused: the second level runs programs", async () => {
    expect(await openUnder("namespaces")).toMatchObject({ kind: "landlock", answer: "42\n" });
  }, 60_000);

  test("namespaces and Landlock refused: nothing runs, and the message says why and what to do", async () => {
    const { code, message } = await openUnder("namespaces", "landlock");
    expect(code).toBe("sandbox/unavailable");
    expect(message).toMatch(/jail: .*landlock: .*Landlock is not available.*To fix it/s);
  }, 60_000);

  test.runIf(asRoot && existsSync("/usr/bin/python3"))(
    "works as an ordinary user too",
    () => {
      const closed = join(folder, "closed"); // as many home folders are
      mkdirSync(closed, { mode: 0o700 });
      chownSync(closed, 12_345, 12_345);
      for (const level of ["jail", "landlock"]) {
        const argv = ["--import", loader, join(here, "open-jail.ts"), level, "threads"];
        const { stdout, stderr } = spawnSync(process.execPath, argv, {
          uid: 12_345,
          gid: 12_345,
          env: { PATH: "/usr/bin:/bin", HOME: "/nowhere", TMPDIR: closed },
          encoding: "utf8",
        });
        // Process limits count a user's processes; where programs run as the calling user, their threads are counted instead.
        const wanted = { kind: level, answer: "42\n", threads: "runtime-error" };
        expect(JSON.parse(stdout || JSON.stringify({ stderr }))).toMatchObject(wanted);
      }
    },
    60_000,
  );
  test.runIf(asRoot)(
    "as root, folders closed to others are opened up inside, and only there",
    () => {
      const closed = join(folder, "roots-own");
      mkdirSync(closed, { mode: 0o700 });
      for (const level of ["jail", "landlock"]) {
        const { stdout, stderr } = spawnSync(
          process.execPath,
          ["--import", loader, join(here, "open-jail.ts"), level],
          { env: { ...process.env, TMPDIR: closed }, encoding: "utf8" },
        );
        expect(JSON.parse(stdout || JSON.stringify({ stderr }))).toMatchObject({ kind: level, answer: "42\n" });
      }
      expect(statSync(closed).mode & 0o777).toBe(0o700);
    },
    60_000,
  );
  if (!asRoot) console.warn("not root: this run itself is the ordinary user's case");
});
