// Python virtual environments for tests that need a real package from PyPI. They are made on first use and kept between runs.
import { execFile, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const cache = fileURLToPath(new URL("../../node_modules/.cache/whetstone/venvs/", import.meta.url));
/**
 * The interpreter of an environment with these packages, or why it cannot be had (no Python, no registry). A half-made environment
 * is never used: it is built under another name and moved into place.
 */
export function venvWith(packages) {
  const { folder, building, steps, ready } = plan(packages);
  if (ready()) return { python: join(folder, "bin", "python") };
  for (const [program, args] of steps) {
    const result = spawnSync(program, args, { encoding: "utf8", timeout: timeoutMs });
    if (result.status !== 0) return unavailable(packages, building, result.stderr || String(result.error));
  }
  return finish(folder, building);
}
/** The same without blocking the event loop: an installation takes minutes, in which a test worker has to answer its runner. */
export async function openVenv(packages) {
  const { folder, building, steps, ready } = plan(packages);
  if (ready()) return { python: join(folder, "bin", "python") };
  for (const [program, args] of steps) {
    try {
      await promisify(execFile)(program, args, { timeout: timeoutMs });
    } catch (error) {
      return unavailable(packages, building, error.stderr || String(error));
    }
  }
  return finish(folder, building);
}
const timeoutMs = 300_000;
function plan(packages) {
  const folder = join(cache, packages.join("+").replaceAll(/[^\w.+=-]/g, "_"));
  const building = `${folder}.${process.pid}`;
  const ready = () => {
    if (existsSync(join(folder, "complete"))) return true;
    mkdirSync(cache, { recursive: true });
    rmSync(building, { recursive: true, force: true });
    return false;
  };
  const steps = [
    ["python3", ["-m", "venv", building]],
    [join(building, "bin", "python"), ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", ...packages]],
  ];
  return { folder, building, steps, ready };
}
function unavailable(packages, building, reason) {
  rmSync(building, { recursive: true, force: true });
  return { missing: `${packages.join(" ")} cannot be installed here: ${reason.trim().slice(-300)}` };
}
function finish(folder, building) {
  writeFileSync(join(building, "complete"), "");
  try {
    renameSync(building, folder);
  } catch {
    // Another test process was faster; its environment is the same.
    rmSync(building, { recursive: true, force: true });
  }
  return { python: join(folder, "bin", "python") };
}
