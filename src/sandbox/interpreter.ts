// Which Python runs the programs: the real interpreter behind a shim or a virtual environment, and the folders it needs.
import { execFile } from "node:child_process";
import { existsSync, statSync } from "node:fs";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { messageOf } from "../core/errors.ts";
import { SandboxError } from "./sandbox.ts";

export interface Interpreter {
  executable: string;
  /** Folders that must be readable for it to start: prefix, base prefix and whatever its libraries lie in. */
  folders: readonly string[];
  version: string;
}

const oldest = [3, 8] as const;

const question = `
import json, os, sys, sysconfig
base = getattr(sys, "_base_executable", None) or sys.executable
print(json.dumps({
  "executable": sys.executable,
  "folders": [sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix, os.path.dirname(os.path.realpath(base)),
              sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")],
  "version": list(sys.version_info[:3]),
}))
`;

/** Asks the interpreter about itself. Rejects with sandbox/no-python when there is none, or it is too old. */
export async function findInterpreter(python: string | undefined): Promise<Interpreter> {
  const command = python === undefined ? "python3" : binaryOf(python);
  const label = python === undefined ? "python3 (on PATH)" : python;
  let answer: { executable: string; folders: string[]; version: number[] };
  try {
    const { stdout } = await promisify(execFile)(command, ["-I", "-c", question], { timeout: 30_000, cwd: "/" });
    answer = JSON.parse(stdout) as typeof answer;
  } catch (error) {
    throw new SandboxError(
      "sandbox/no-python",
      `Python programs cannot run: ${label} did not start (${messageOf(error).split("\n")[0]}). Install Python 3.8 or later, or name one with sandbox_python=PATH.`,
      { cause: error },
    );
  }
  const [major = 0, minor = 0] = answer.version;
  if (major < oldest[0] || (major === oldest[0] && minor < oldest[1])) {
    throw new SandboxError(
      "sandbox/no-python",
      `${label} is Python ${answer.version.join(".")}; programs need ${oldest.join(".")} or later. Name another with sandbox_python=PATH.`,
    );
  }
  return { executable: answer.executable, folders: outermost(answer.folders), version: answer.version.join(".") };
}

/** A virtual environment may be named by its folder. */
function binaryOf(python: string): string {
  const path = python.includes("/") || existsSync(python) ? resolve(python) : python;
  return existsSync(path) && statSync(path).isDirectory() ? join(path, "bin", "python3") : path;
}

/** The folders without those that lie in another of them. */
export function outermost(folders: readonly string[]): string[] {
  const unique = [...new Set(folders.map((folder) => resolve(folder)))];
  return unique.filter((folder) => !unique.some((other) => other !== folder && folder.startsWith(`${other}/`)));
}
