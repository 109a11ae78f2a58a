// Copies of this checkout as a stranger has them: the files that git knows or would add, in a folder of their own.
import { execFileSync, spawn } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { outcomeOf, type WhetResult } from "../support/whet.ts";

export const root = fileURLToPath(new URL("../../", import.meta.url));

/** A clone without packages. */
export function freshClone(folder: string): string {
  const listed = execFileSync("git", ["ls-files", "-coz", "--exclude-standard"], { cwd: root, encoding: "utf8" });
  for (const name of listed.split("\0")) {
    if (name === "" || !existsSync(join(root, name))) continue;
    cpSync(join(root, name), join(folder, name));
  }
  return folder;
}

/** Gives a clone the packages of this checkout, as if somebody had installed them. */
export function addPackages(clone: string): void {
  mkdirSync(join(clone, "node_modules"));
  for (const name of readdirSync(join(root, "node_modules"))) {
    if (name.startsWith(".") && name !== ".bin") continue;
    symlinkSync(join(root, "node_modules", name), join(clone, "node_modules", name));
  }
}

/** A folder for the PATH with these programs of this machine, and scripts of one's own by their names. */
export function programFolder(
  folder: string,
  programs: readonly string[],
  scripts: Readonly<Record<string, string>> = {},
): string {
  mkdirSync(folder, { recursive: true });
  for (const name of programs) {
    const path = (process.env["PATH"] ?? "")
      .split(":")
      .map((place) => join(place, name))
      .find((candidate) => existsSync(candidate));
    if (path !== undefined && !(name in scripts)) symlinkSync(path, join(folder, name));
  }
  for (const [name, text] of Object.entries(scripts))
    writeFileSync(join(folder, name), `#!/bin/sh\n${text}\n`, { mode: 0o755 });
  return folder;
}

/** What the launcher and the programs behind it need, without bubblewrap and without any package manager of a system. */
export const basicPrograms = "sh env node npm git readlink dirname cmp cat uname tty stty python3 mount unshare".split(
  " ",
);

/** Runs a program to its end; standard input is empty unless given. */
export function run(
  command: readonly string[],
  options: { cwd?: string; env?: NodeJS.ProcessEnv; input?: string } = {},
): Promise<WhetResult> {
  const child = spawn(command[0]!, command.slice(1), {
    cwd: options.cwd ?? dirname(root),
    env: options.env ?? process.env,
  });
  child.stdin.on("error", () => {});
  child.stdin.end(options.input ?? "");
  return outcomeOf(child);
}

/** True where this command works, as a way to ask whether the machine can make a namespace, or act as another user. */
export async function works(command: readonly string[]): Promise<boolean> {
  return run(command).then(
    ({ code }) => code === 0,
    () => false,
  );
}
