// Python virtual environments for tests that need a real package from PyPI. They are made on first use and kept between runs.
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const cache = fileURLToPath(new URL("../../node_modules/.cache/whetstone/venvs/", import.meta.url));

export type Venv = { python: string } | { missing: string };

/**
 * The interpreter of an environment with these packages, or why it cannot be had (no Python, no registry). A half-made environment
 * is never used: it is built under another name and moved into place.
 */
export function venvWith(packages: readonly string[]): Venv {
  const folder = join(cache, packages.join("+").replaceAll(/[^\w.+=-]/g, "_"));
  const python = join(folder, "bin", "python");
  if (existsSync(join(folder, "complete"))) return { python };
  mkdirSync(cache, { recursive: true });
  const building = `${folder}.${process.pid}`;
  rmSync(building, { recursive: true, force: true });
  const steps: [string, string[]][] = [
    ["python3", ["-m", "venv", building]],
    [join(building, "bin", "python"), ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", ...packages]],
  ];
  for (const [program, args] of steps) {
    const result = spawnSync(program, args, { encoding: "utf8", timeout: 300_000 });
    if (result.status !== 0) {
      rmSync(building, { recursive: true, force: true });
      return {
        missing: `${packages.join(" ")} cannot be installed here: ${(result.stderr || String(result.error)).trim().slice(-300)}`,
      };
    }
  }
  writeFileSync(join(building, "complete"), "");
  try {
    renameSync(building, folder);
  } catch {
    // Another test process was faster; its environment is the same.
    rmSync(building, { recursive: true, force: true });
  }
  return { python };
}
