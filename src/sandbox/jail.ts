// The embedded jail: runs Python programs on this machine behind the strongest isolation that proves itself at start.
// `run` is the judge's side (many tests, one program); `execute` runs one program once, as a plain script with files.
import { type Limits, type Sandbox, SandboxError } from "./sandbox.ts";

/** Isolation levels, strongest first. */
export type JailLevel = "jail" | "landlock";

export interface JailOptions {
  /** Interpreter or virtual environment (its folder or its bin/python). Default: the first `python3` on PATH. */
  python?: string;
  /** Programs that run at the same moment. Default: one per core. */
  slots?: number;
  /** Levels to try, strongest first. Default: both. */
  levels?: readonly JailLevel[];
  /** Path of bubblewrap. Default: `bwrap` on PATH. */
  bwrap?: string;
}

export interface ExecuteRequest {
  /** Python source; runs as a script in a fresh working directory. */
  code: string;
  stdin: Uint8Array | string;
  /** Placed below the working directory before the program starts. Relative paths without `..`; otherwise sandbox/bad-path. */
  files: ReadonlyMap<string, Uint8Array>;
  /** Read back afterwards, whatever the outcome; missing ones, folders and symbolic links are left out. */
  fetchFiles: readonly string[];
  limits: Limits;
  /** What the program sees after its own name in sys.argv. */
  argv?: readonly string[];
  /** Most bytes of fetched files, all together; a file that does not fit is left out and counted in `filesLeftOut`. Default 8 MiB. */
  fetchBytes?: number;
}

export interface ExecuteResult {
  /** "finished" says only that the program ended by itself: look at exitCode and signal. */
  status: "finished" | "time-limit" | "memory-limit" | "output-limit";
  exitCode: number | null;
  signal: number | null;
  /** At most limits.outputBytes each, from the start of the stream. */
  stdout: Uint8Array;
  stderr: Uint8Array;
  stdoutTruncated: boolean;
  stderrTruncated: boolean;
  /** The program was killed for its memory, or ended with an uncaught MemoryError. */
  oom: boolean;
  wallMs: number;
  cpuMs: number;
  maxRssBytes: number;
  /** Keys are exactly the requested paths. */
  files: Map<string, Uint8Array>;
  filesLeftOut: string[];
}

export interface Jail extends Sandbox {
  /** Runs one program once. Rejects with SandboxError when the jail failed or a path is refused, never because of the program. */
  execute(request: ExecuteRequest, options?: { signal?: AbortSignal }): Promise<ExecuteResult>;
}

/** Starts the strongest level that passes its self-test; rejects with sandbox/unavailable when none does. */
export function openJail(_options: JailOptions = {}): Promise<Jail> {
  return Promise.reject(new SandboxError("sandbox/unavailable", "The embedded jail is not there yet."));
}
