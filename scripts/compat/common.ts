// What the compatibility scripts share: Python environments that are kept between runs, processes, and a table at the end.
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { cacheFolder } from "../../src/core/cache.ts";

export const root = fileURLToPath(new URL("../../", import.meta.url));
export const whet = join(root, "whet");
export const say = (line: string) => console.log(`compat: ${line}`);

/** The interpreter of an environment with these packages, in ~/.cache/whetstone/compat. `fresh`: what is newest is looked for again. */
export function environment(
  name: string,
  packages: readonly string[],
  options: { python?: string; fresh?: boolean } = {},
) {
  const folder = join(cacheFolder(), "compat", name);
  const python = join(folder, "bin", "python");
  const stamp = join(folder, "packages");
  const wanted = packages.join("\n");
  if (!options.fresh && existsSync(stamp) && readFileSync(stamp, "utf8") === wanted) return python;
  say(`installing ${packages.join(" ")} (kept for the next time)`);
  mkdirSync(join(cacheFolder(), "compat"), { recursive: true });
  if (!existsSync(python)) execFileSync(options.python ?? "python3", ["-m", "venv", folder], { stdio: "inherit" });
  const pip = [
    "-m",
    "pip",
    "install",
    "--quiet",
    "--disable-pip-version-check",
    ...(options.fresh ? ["--upgrade"] : []),
  ];
  execFileSync(python, [...pip, ...packages], { stdio: "inherit" });
  writeFileSync(stamp, wanted);
  return python;
}

/** The environment that has PyTorch too: its versions are whatever is newest. */
export const cookbookPackages = ["tinker-cookbook[math-rl]", "tinker", "peft"] as const;

/** The version of an installed package. */
export const versionOf = (python: string, name: string): string =>
  execFileSync(python, ["-c", `import importlib.metadata as m; print(m.version("${name}"))`], {
    encoding: "utf8",
  }).trim();

/** An interpreter of at least 3.12, which some projects need. */
export function newerPython(): string {
  const home = process.env["HOME"] ?? "";
  for (const candidate of ["python3.12", "python3.13", `${home}/.pyenv/versions/3.12.1/bin/python3`, "python3"]) {
    try {
      const version = execFileSync(candidate, ["-c", "import sys; print(sys.version_info[:2] >= (3, 12))"], {
        encoding: "utf8",
        stdio: ["ignore", "pipe", "ignore"],
      });
      if (version.trim() === "True") return candidate;
    } catch {
      // Not here.
    }
  }
  throw new Error("This needs Python 3.12 or later. Install it.");
}

export interface Finished {
  code: number | null;
  output: string;
  seconds: number;
}

/** Runs a command to its end; its output is kept and, unless quiet, shown. `until`: kills it when a line matches. */
export async function run(
  program: string,
  args: readonly string[],
  options: { env?: Record<string, string>; quiet?: boolean; until?: RegExp; timeoutMs?: number; cwd?: string } = {},
): Promise<Finished> {
  const started = performance.now();
  const child = spawn(program, args, {
    cwd: options.cwd ?? root,
    env: { ...process.env, ...options.env },
    stdio: ["ignore", "pipe", "pipe"],
    timeout: options.timeoutMs ?? 1_800_000,
    detached: true,
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr])
    stream.on("data", (chunk: Buffer) => {
      output += chunk.toString();
      if (!options.quiet) process.stdout.write(chunk);
      // The whole group, as a machine that loses power would.
      if (options.until?.test(output) && child.exitCode === null && !child.killed) {
        process.kill(-child.pid!, "SIGKILL");
        child.kill("SIGKILL");
      }
    });
  const [code] = (await once(child, "close")) as [number | null];
  return { code, output, seconds: (performance.now() - started) / 1000 };
}

/** Prints a table and ends the process: 0 when every row passed. */
export function report(title: string, rows: readonly { what: string; passed: boolean; found: string }[]): never {
  console.log(`\n${title}\n`);
  for (const { what, passed, found } of rows)
    console.log(`${passed ? "ok     " : "FAILED "} ${what.padEnd(44)} ${found}`);
  process.exit(rows.length > 0 && rows.every(({ passed }) => passed) ? 0 : 1);
}
