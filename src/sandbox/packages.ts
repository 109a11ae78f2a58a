// A virtual environment with packages for programs to import: made once, on first use, and kept in the cache folder.
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { cacheFolder } from "../core/cache.ts";
import { messageOf } from "../core/errors.ts";
import { makeOnce } from "../core/files.ts";
import { findInterpreter, type Interpreter } from "./interpreter.ts";
import { SandboxError } from "./sandbox.ts";

const installTimeoutMs = 20 * 60_000;
/** A name, perhaps with extras and a version: what pip calls a requirement, without addresses, paths and options. */
const requirement =
  /^[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?(?:\[[A-Za-z0-9._,-]+\])?(?:(?:==|>=|<=|~=|!=|<|>)[A-Za-z0-9.*+!]+)?$/;

/** What packages are for, in messages. */
interface Use {
  /** Who imports them. */
  of: string;
  /** The key that names an interpreter. */
  python: string;
  /** Whether packages that have to be built are taken, which runs code of theirs. */
  sources: boolean;
}
const programs: Use = { of: "programs", python: "sandbox_python", sources: false };

/** The packages of a list separated by commas or spaces; throws sandbox/packages for what is no package name. */
export function packageList(text: string, key = "sandbox_packages"): string[] {
  const names = text.split(/[,\s]+/).filter((name) => name !== "");
  const wrong = names.find((name) => !requirement.test(name));
  if (wrong !== undefined)
    throw new SandboxError(
      "sandbox/packages",
      `${key} holds ${JSON.stringify(wrong)}, which is no package name. Write names as pip takes them, separated by commas: ${key}=numpy,sortedcontainers==2.4.0.`,
    );
  return [...new Set(names)].sort();
}

/** The interpreter that programs run with: `python`, or an environment over it that has the packages of a list too. */
export async function pythonWith(
  list: string,
  python: string | undefined,
  say?: (line: string) => void,
): Promise<string | undefined> {
  const packages = packageList(list);
  return packages.length > 0 ? environmentWith(packages, python, say) : python;
}

/** The folder of an environment over `python` with these packages; makes it where it is not there yet, and says so through `say`. */
export async function environmentWith(
  packages: readonly string[],
  python: string | undefined,
  say: (line: string) => void = () => {},
  { of, python: key, sources }: Use = programs,
): Promise<string> {
  const interpreter = await findInterpreter(python);
  const folder = join(cacheFolder(), "packages", nameOf(packages, interpreter));
  if (existsSync(folder)) return folder;
  say(`installing ${packages.join(", ")} for ${of} (first use): ${folder}`);
  try {
    await makeOnce(folder, async (draft) => {
      const python = join(draft, "bin", "python");
      await run(interpreter.executable, "-m", "venv", "--without-pip", draft);
      const pip = await pipFor(interpreter.executable, python);
      const quietly = ["--quiet", "--disable-pip-version-check", "--no-input"];
      if (!sources) quietly.push("--only-binary", ":all:");
      await run(...pip, "install", ...quietly, "--", ...packages);
    });
    return folder;
  } catch (error) {
    const reason = (error as { stderr?: string }).stderr?.trim() || messageOf(error);
    throw new SandboxError(
      "sandbox/packages",
      `${packages.join(", ")} could not be installed for ${of} (${reason.slice(-600)}). Check the names and the network, or name an environment that has them with ${key}=PATH.`,
      { cause: error },
    );
  }
}

/** The interpreter's own pip, which can install elsewhere since version 22.3; where there is none, one is put into the environment. */
export async function pipFor(interpreter: string, python: string): Promise<[program: string, ...args: string[]]> {
  const said = await run(interpreter, "-m", "pip", "--version").catch(() => "");
  const [, major, minor] = /^pip (\d+)\.(\d+)/.exec(said) ?? [];
  if (Number(major) * 100 + Number(minor) >= 2203) return [interpreter, "-m", "pip", "--python", python];
  await run(python, "-m", "ensurepip");
  return [python, "-m", "pip"];
}

/** Programs run as another user where we are root, and must be able to read what is installed. */
async function run(program: string, ...args: readonly string[]): Promise<string> {
  const shell = ["-c", 'umask 022; exec "$0" "$@"', program, ...args];
  const { stdout } = await promisify(execFile)("/bin/sh", shell, {
    timeout: installTimeoutMs,
    cwd: "/",
    maxBuffer: 1 << 24,
  });
  return stdout;
}

function nameOf(packages: readonly string[], { executable, version }: Interpreter): string {
  const hash = createHash("sha256")
    .update(JSON.stringify([executable, version, packages]))
    .digest("hex");
  return `${hash.slice(0, 16)}-python${version}`;
}
