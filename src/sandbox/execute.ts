// One program run once as a plain script, with files in and out: what is asked, what comes back, and which paths may be named.
import { isInside } from "../core/files.ts";
import type { LanguageName } from "../core/languages/languages.ts";
import { type Limits, SandboxError } from "./sandbox.ts";

export interface ExecuteRequest {
  /** Default Python. */
  language?: LanguageName | undefined;
  /** Runs as a script in a fresh working directory. */
  code: string;
  stdin: Uint8Array | string;
  /** Placed below the working directory before the program starts. Relative paths without `..`; otherwise sandbox/bad-path. */
  files: ReadonlyMap<string, Uint8Array>;
  /** Read back afterwards, whatever the outcome; missing ones, folders and symbolic links are left out. */
  fetchFiles: readonly string[];
  limits: Limits;
  /** Bytes of fetched files, all together; a file that does not fit is left out and counted in `filesLeftOut`. Default 8 MiB. */
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
  /** It was not run: what the compiler said. */
  notCompiled?: string;
}

/** The result of a program of which nothing is known but how it ended. */
export function emptyResult(end: Partial<ExecuteResult>): ExecuteResult {
  return {
    status: "finished",
    exitCode: null,
    signal: null,
    stdout: new Uint8Array(),
    stderr: new Uint8Array(),
    stdoutTruncated: false,
    stderrTruncated: false,
    oom: false,
    wallMs: 0,
    cpuMs: 0,
    maxRssBytes: 0,
    files: new Map(),
    filesLeftOut: [],
    ...end,
  };
}

const pageBytes = 4096;
const maxFiles = 1000;

/** Throws sandbox/bad-path unless every path lies below the working directory and the files fit into the scratch space. */
export function checkFiles(request: ExecuteRequest): void {
  const { code, files, fetchFiles, limits } = request;
  const outside = [...files.keys(), ...fetchFiles].find((path) => !isInside(path));
  if (outside !== undefined)
    throw refused(
      `${JSON.stringify(outside)} is not a path below the working directory. Use a relative path without "..".`,
    );
  const folders = new Set<string>();
  for (const path of files.keys()) {
    const parts = path.split("/");
    for (let depth = 1; depth < parts.length; depth++) folders.add(parts.slice(0, depth).join("/"));
  }
  const both = [...files.keys()].find((path) => folders.has(path));
  if (both !== undefined) throw refused(`${JSON.stringify(both)} is both a file and a folder. Rename one of them.`);
  const count = files.size + folders.size;
  if (count > maxFiles) throw refused(`${count} files and folders are more than ${maxFiles}. Send an archive instead.`);
  const sizes = [Buffer.byteLength(code), ...[...files.values()].map((bytes) => bytes.length)];
  const size = sizes.reduce((sum, bytes) => sum + Math.ceil(bytes / pageBytes) * pageBytes, 0);
  if (size > limits.scratchBytes)
    throw refused(
      `The files hold ${size} bytes, the scratch space ${limits.scratchBytes}. Send less, or raise the limit.`,
    );
}

const refused = (message: string) => new SandboxError("sandbox/bad-path", message);
