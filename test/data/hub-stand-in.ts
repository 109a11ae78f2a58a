// A local stand-in for the Hugging Face hub: the listing and resolve routes as the real one answers them, with large files behind a
// redirect to another origin (its CDN), ranges, pages, tokens, and faults on demand.
import { createHash } from "node:crypto";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export interface StandInRepository {
  /** "datasets/owner/name" or "models/owner/name". */
  name: string;
  /** Content by path. Files of 1 kB and more are kept as large files, as on the hub. */
  files: Record<string, Uint8Array | string>;
  /** The token without which it answers 401. */
  token?: string;
}

export interface Faults {
  /** Answers with 503 this many times. */
  unavailable?: number;
  /** The CDN closes the connection after this many bytes of a file, this many times. */
  cut?: { afterBytes: number; times: number };
  /** The CDN sends this many bytes of a file and then nothing more, once. */
  stallAfterBytes?: number;
  /** The CDN ignores ranges. */
  noRanges?: boolean;
  /** The CDN sends other bytes than the listing announces. */
  corrupt?: boolean;
}

export interface StandInHub {
  endpoint: string;
  faults: Faults;
  /** Requests seen, e.g. "GET /api/datasets/…" or "CDN GET …", with the range asked for. */
  requests: string[];
  /** Authorization headers that reached the CDN; must stay empty. */
  leakedTokens: string[];
  /** Bytes of file content sent. */
  sentBytes: number;
  /** Stops listening; the hub is unreachable from then on. */
  close(): Promise<void>;
}

const pageSize = 3;
const largeFileBytes = 1000;

export async function startHub(repositories: readonly StandInRepository[]): Promise<StandInHub> {
  const hub: StandInHub = { endpoint: "", faults: {}, requests: [], leakedTokens: [], sentBytes: 0, close };
  const cdn = createServer((request, response) => serveContent(request, response));
  const server = createServer((request, response) => serve(request, response));
  const cdnOrigin = await listen(cdn);
  hub.endpoint = await listen(server);
  return hub;

  async function close() {
    await Promise.all([server, cdn].map(stop));
  }

  function serve(request: IncomingMessage, response: ServerResponse): void {
    hub.requests.push(`${request.method} ${request.url}`);
    const url = new URL(request.url!, hub.endpoint);
    if ((hub.faults.unavailable ?? 0) > 0) {
      hub.faults.unavailable!--;
      response.writeHead(503).end("busy");
      return;
    }
    const route =
      /^(?:\/api\/(datasets|models)|(?:\/(datasets))?)\/([^/]+\/[^/]+)\/(revision|tree|resolve)\/([^/]+)(?:\/(.*))?$/.exec(
        url.pathname,
      );
    const repository = repositories.find(
      ({ name }) => name === `${route?.[1] ?? route?.[2] ?? "models"}/${route?.[3]}`,
    );
    if (!route || !repository) {
      response.writeHead(404, { "x-error-message": "Repository not found" }).end();
      return;
    }
    if (repository.token && request.headers.authorization !== `Bearer ${repository.token}`) {
      response.writeHead(401, { "x-error-message": "Invalid credentials" }).end();
      return;
    }
    const commit = commitOf(repository);
    if (route[5] !== "main" && route[5] !== commit) {
      response.writeHead(404, { "x-error-message": "Revision not found" }).end();
      return;
    }
    if (route[4] === "revision") sendJson(response, { id: route[3], sha: commit });
    else if (route[4] === "tree") sendTree(response, url, repository);
    else resolveFile(request, response, repository, decodeURIComponent(route[6] ?? ""), commit);
  }

  function sendTree(response: ServerResponse, url: URL, repository: StandInRepository): void {
    const folders = new Set<string>();
    for (const path of Object.keys(repository.files))
      if (path.includes("/")) folders.add(path.slice(0, path.lastIndexOf("/")));
    const entries = [
      ...[...folders].map((path) => ({ type: "directory", oid: "0".repeat(40), size: 0, path })),
      ...Object.entries(repository.files).map(([path, content]) => fileEntry(path, bytesOf(content))),
    ];
    const start = Number(url.searchParams.get("cursor") ?? 0);
    if (start + pageSize < entries.length) {
      url.searchParams.set("cursor", String(start + pageSize));
      response.setHeader("link", `<${url.href}>; rel="next"`);
    }
    sendJson(response, entries.slice(start, start + pageSize));
  }

  function resolveFile(
    request: IncomingMessage,
    response: ServerResponse,
    repository: StandInRepository,
    path: string,
    commit: string,
  ): void {
    const content = repository.files[path];
    if (content === undefined) {
      response.writeHead(404, { "x-error-message": "Entry not found" }).end();
      return;
    }
    const bytes = bytesOf(content);
    const entry = fileEntry(path, bytes);
    response.setHeader("x-repo-commit", commit);
    if (!entry.lfs) {
      response.setHeader("etag", `"${entry.oid}"`);
      sendRange(request, response, bytes);
      return;
    }
    response.writeHead(302, {
      location: `${cdnOrigin}/${encodeURIComponent(repository.name)}/${encodeURIComponent(path)}?signature=x`,
      "x-linked-etag": `"${entry.lfs.oid}"`,
      "x-linked-size": String(bytes.length),
    });
    response.end();
  }

  function serveContent(request: IncomingMessage, response: ServerResponse): void {
    hub.requests.push(`CDN ${request.method} ${request.headers.range ?? "whole"}`);
    if (request.headers.authorization) hub.leakedTokens.push(request.headers.authorization);
    const [, name, path] = new URL(request.url!, cdnOrigin).pathname.split("/").map(decodeURIComponent);
    const bytes = Buffer.from(bytesOf(repositories.find((repository) => repository.name === name)!.files[path!]!));
    if (hub.faults.corrupt) bytes[0]! ^= 1;
    sendRange(request, response, bytes);
  }

  function sendRange(request: IncomingMessage, response: ServerResponse, bytes: Uint8Array): void {
    const range = hub.faults.noRanges ? undefined : /^bytes=(\d+)-$/.exec(request.headers.range ?? "");
    const start = range ? Number(range[1]) : 0;
    if (range && start >= bytes.length) {
      response.writeHead(416, { "content-range": `bytes */${bytes.length}` }).end();
      return;
    }
    const body = bytes.subarray(start);
    response.writeHead(range ? 206 : 200, {
      "content-length": String(body.length),
      "accept-ranges": "bytes",
      ...(range ? { "content-range": `bytes ${start}-${bytes.length - 1}/${bytes.length}` } : {}),
    });
    const { cut, stallAfterBytes } = hub.faults;
    const limit = cut && cut.times > 0 ? cut.afterBytes : stallAfterBytes;
    if (limit === undefined || limit >= body.length) {
      hub.sentBytes += body.length;
      response.end(body);
      return;
    }
    hub.sentBytes += limit;
    if (cut && cut.times > 0) {
      cut.times--;
      response.write(body.subarray(0, limit), () => response.destroy());
    } else {
      delete hub.faults.stallAfterBytes;
      response.write(body.subarray(0, limit));
    }
  }
}

function fileEntry(path: string, bytes: Uint8Array) {
  const size = bytes.length;
  const oid = createHash("sha1").update(`blob ${size}\0`).update(bytes).digest("hex");
  if (size < largeFileBytes) return { type: "file", oid, size, path };
  return {
    type: "file",
    oid,
    size,
    path,
    lfs: { oid: createHash("sha256").update(bytes).digest("hex"), size, pointerSize: 134 },
  };
}

function commitOf(repository: StandInRepository): string {
  const hash = createHash("sha1");
  for (const [path, content] of Object.entries(repository.files)) hash.update(path).update(content);
  return hash.digest("hex");
}

const bytesOf = (content: Uint8Array | string) => (typeof content === "string" ? Buffer.from(content) : content);

function sendJson(response: ServerResponse, value: unknown): void {
  response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(value));
}

/** On a free port of this machine; gives its address. */
export function listen(server: Server): Promise<string> {
  return new Promise((resolve) => {
    server.listen(0, "127.0.0.1", () => resolve(`http://127.0.0.1:${(server.address() as AddressInfo).port}`));
  });
}

export function stop(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}
