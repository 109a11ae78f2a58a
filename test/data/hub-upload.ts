// A local stand-in for the part of the Hugging Face hub that takes uploads: who asks, new repositories, which files are large, the storage
// for those at another origin, and commits; with faults on demand.
import { createHash } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { buffer } from "node:stream/consumers";
import { listen, stop } from "./hub-stand-in.ts";

export interface UploadHub {
  endpoint: string;
  /** By repository: the files of its last commit. */
  repositories: Map<string, { private: boolean; files: Map<string, Buffer>; commits: number }>;
  /** Large files by their hash. */
  storage: Map<string, Buffer>;
  requests: string[];
  /** Authorization headers that reached the storage; must stay empty. */
  leakedTokens: string[];
  faults: {
    /** Answers with 503 this many times. */
    unavailable?: number;
    /** The storage closes the connection in the middle, this many times. */
    cut?: number;
    /** Every request to the storage waits for this. */
    hold?: Promise<void>;
  };
  close(): Promise<void>;
}

const partBytes = 40_000;

/** `token` belongs to `me`, who is in the organisation `team`. Files of 1 kB and more are large; of 100 kB and more they go in parts. */
export async function startUploadHub(token: string): Promise<UploadHub> {
  const repositories: UploadHub["repositories"] = new Map();
  const hub: UploadHub = {
    endpoint: "",
    repositories,
    storage: new Map(),
    requests: [],
    leakedTokens: [],
    faults: {},
    close,
  };
  const parts = new Map<string, Buffer>();
  const storage = createServer((request, response) => void store(request, response).catch(() => response.destroy()));
  const server = createServer((request, response) => void serve(request, response).catch(() => response.destroy()));
  const storageOrigin = await listen(storage);
  hub.endpoint = await listen(server);
  return hub;

  async function close() {
    await Promise.all([server, storage].map(stop));
  }

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = request.url!.split("?")[0]!;
    hub.requests.push(`${request.method} ${path}`);
    const body = await buffer(request);
    const send = (status: number, value: object) =>
      void response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(value));
    if ((hub.faults.unavailable ?? 0) > 0) {
      hub.faults.unavailable!--;
      return void response.writeHead(503).end("busy");
    }
    if (request.headers.authorization !== `Bearer ${token}`)
      return void response.writeHead(401, { "x-error-message": "Invalid credentials" }).end();
    if (path === "/api/whoami-v2") return send(200, { type: "user", name: "me", orgs: [{ name: "team" }] });
    if (path === "/api/repos/create") {
      const { name, organization = "me", private: isPrivate } = JSON.parse(body.toString());
      const id = `${organization}/${name}`;
      if (repositories.has(id)) return send(409, { error: "You already created this model repo", url: id });
      repositories.set(id, { private: isPrivate, files: new Map(), commits: 0 });
      return send(200, { url: `${hub.endpoint}/${id}` });
    }
    const [, id, route] =
      /^\/api\/models\/([^/]+\/[^/]+)\/(preupload|commit)\/main$/.exec(path) ??
      /^\/([^/]+\/[^/]+)\.git\/info\/lfs\/objects\/(batch)$/.exec(path) ??
      [];
    const repository = repositories.get(id ?? "");
    if (path.startsWith("/verify/")) {
      const { oid, size } = JSON.parse(body.toString());
      return send(hub.storage.get(oid)?.length === size ? 200 : 404, {});
    }
    if (!repository) return send(404, { error: "Repository not found" });
    if (route === "preupload") {
      const { files } = JSON.parse(body.toString()) as { files: { path: string; size: number; sample: string }[] };
      if (files.some(({ sample }) => typeof sample !== "string")) return send(400, { error: "no sample" });
      return send(200, {
        files: files.map(({ path, size }) => ({
          path,
          uploadMode: size >= 1000 ? "lfs" : "regular",
          shouldIgnore: false,
        })),
      });
    }
    if (route === "batch") return send(200, { transfer: "basic", objects: batch(JSON.parse(body.toString()).objects) });
    const lines = body
      .toString()
      .split("\n")
      .map((line) => JSON.parse(line));
    if (lines[0]?.key !== "header" || !lines[0].value.summary) return send(400, { error: "no summary" });
    for (const { key, value } of lines.slice(1)) {
      const content = key === "lfsFile" ? hub.storage.get(value.oid) : Buffer.from(value.content, "base64");
      if (!content) return send(400, { error: `no object ${value.oid}` });
      repository.files.set(value.path, content);
    }
    repository.commits++;
    const commitOid = createHash("sha1").update(body).digest("hex");
    return send(200, { success: true, commitOid, commitUrl: `${hub.endpoint}/${id}/commit/${commitOid}` });
  }

  function batch(objects: { oid: string; size: number }[]) {
    return objects.map(({ oid, size }) => {
      if (hub.storage.has(oid)) return { oid, size };
      const verify = { href: `${hub.endpoint}/verify/${oid}` };
      if (size < 100_000) return { oid, size, actions: { upload: { href: `${storageOrigin}/${oid}` }, verify } };
      const count = Math.ceil(size / partBytes);
      const addresses = Array.from({ length: count }, (_, at) => [
        String(at + 1).padStart(5, "0"),
        `${storageOrigin}/${oid}/${at + 1}`,
      ]);
      const header = { chunk_size: String(partBytes), ...Object.fromEntries(addresses) };
      return { oid, size, actions: { upload: { href: `${storageOrigin}/${oid}/complete`, header }, verify } };
    });
  }

  async function store(request: IncomingMessage, response: ServerResponse): Promise<void> {
    hub.requests.push(`STORAGE ${request.method} ${request.url!.split("/").length > 2 ? "part" : "whole"}`);
    if (request.headers.authorization) hub.leakedTokens.push(request.headers.authorization);
    await hub.faults.hold;
    if ((hub.faults.cut ?? 0) > 0) {
      hub.faults.cut!--;
      request.once("data", () => request.socket.destroy());
      return;
    }
    const body = await buffer(request);
    const [, oid = "", part] = request.url!.split("/");
    if (part === undefined) keep(oid, body);
    else if (part !== "complete") parts.set(`${oid}/${part}`, body);
    else {
      const told = JSON.parse(body.toString()) as { oid: string; parts: { partNumber: number; etag: string }[] };
      if (told.parts.some(({ partNumber, etag }) => etag !== `"${partNumber}"`))
        return void response.writeHead(400).end();
      keep(oid, Buffer.concat(told.parts.map(({ partNumber }) => parts.get(`${oid}/${partNumber}`)!)));
    }
    response.writeHead(200, { etag: `"${part}"` }).end();
  }

  function keep(oid: string, bytes: Buffer): void {
    if (createHash("sha256").update(bytes).digest("hex") !== oid) throw new Error("other bytes than announced");
    hub.storage.set(oid, bytes);
  }
}
