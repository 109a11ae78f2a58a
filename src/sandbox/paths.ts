// Which files may be placed in a program's working directory and fetched from it.
import { isInside } from "../core/files.ts";
import type { ExecuteRequest } from "./jail.ts";
import { type Limits, SandboxError } from "./sandbox.ts";

const pageBytes = 4096;
const mostFiles = 1000;

/** Throws sandbox/bad-path unless every path lies below the working directory and the files fit into the scratch space. */
export function checkFiles(request: ExecuteRequest, limits: Limits): void {
  for (const path of [...request.files.keys(), ...request.fetchFiles]) checkPath(path);
  const folders = new Set<string>();
  for (const path of request.files.keys()) {
    const parts = path.split("/");
    for (let depth = 1; depth < parts.length; depth++) folders.add(parts.slice(0, depth).join("/"));
  }
  for (const path of request.files.keys()) {
    if (folders.has(path)) throw refused(`${JSON.stringify(path)} is both a file and a folder. Rename one of them.`);
  }
  if (request.files.size + folders.size > mostFiles) {
    throw refused(
      `${request.files.size + folders.size} files and folders are more than ${mostFiles}. Send an archive instead.`,
    );
  }
  let size = pages(Buffer.byteLength(request.code));
  for (const bytes of request.files.values()) size += pages(bytes.length);
  if (size > limits.scratchBytes) {
    throw refused(
      `The files hold ${size} bytes, the scratch space ${limits.scratchBytes}. Send less, or raise the limit.`,
    );
  }
}

function checkPath(path: string): void {
  if (!isInside(path)) {
    throw refused(
      `${JSON.stringify(path)} is not a path below the working directory. Use a relative path without "..".`,
    );
  }
}

function pages(bytes: number): number {
  return Math.ceil(bytes / pageBytes) * pageBytes;
}

function refused(message: string): SandboxError {
  return new SandboxError("sandbox/bad-path", message);
}
