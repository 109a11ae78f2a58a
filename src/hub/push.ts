// Puts a folder into a model repository of the Hugging Face hub, as one commit. Large files go to its storage first, by their hashes, and
// the hub asks only for those that it does not have: the same command goes on where an earlier one was interrupted. Until the commit
// nothing is to be seen in the repository.
import { createHash } from "node:crypto";
import { createReadStream, existsSync, readFileSync } from "node:fs";
import { open, readdir, stat } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { messageOf } from "../core/errors.ts";
import { hashFile } from "../core/files.ts";
import { HubError } from "./errors.ts";
import { HttpStatusError, retrying, send } from "./http-retry.ts";
import { hubEndpoint } from "./hub.ts";

export interface PushOptions {
  /** Of a repository that is not there yet. */
  isPrivate: boolean;
  /** The commit's first line. */
  summary: string;
  signal: AbortSignal;
  onFile(path: string, done: number, files: number): void;
}

/** HF_TOKEN, else what `hf auth login` has written. */
function hubToken(): string | undefined {
  const { env: environment } = process;
  if (environment["HF_TOKEN"]) return environment["HF_TOKEN"];
  const home =
    environment["HF_HOME"] || join(environment["XDG_CACHE_HOME"] || join(homedir(), ".cache"), "huggingface");
  const file = environment["HF_TOKEN_PATH"] || join(home, "token");
  const token = existsSync(file) ? readFileSync(file, "utf8").trim() : "";
  return token === "" ? undefined : token;
}

export function requireToken(id: string): string {
  const token = hubToken();
  if (token !== undefined) return token;
  throw new HubError(
    "hub/unauthorized",
    `push=${id} needs a token that may write. Make one at https://huggingface.co/settings/tokens, then: export HF_TOKEN=…, or hf auth login. Nothing was sent.`,
  );
}

interface PushedFile {
  path: string;
  file: string;
  size: number;
}
interface LfsFile extends PushedFile {
  oid: string;
}
interface Action {
  href: string;
  header?: Record<string, string>;
}

/** Where the commit can be seen. */
export async function pushFolder(
  folder: string,
  id: string,
  options: PushOptions,
): Promise<{ url: string; commit: string }> {
  const push = new Push(id, options);
  const files = await filesIn(folder);
  await push.create();
  const { lfs, regular } = await push.sort(files);
  const stored: LfsFile[] = [];
  for (const file of lfs)
    stored.push({ ...file, oid: (await hashFile(file.file, createHash("sha256"), options.signal)).digest("hex") });
  await push.store(stored);
  return push.commit(regular, stored);
}

class Push {
  readonly #id: string;
  readonly #endpoint: string;
  readonly #token: string;
  readonly #options: PushOptions;

  constructor(id: string, options: PushOptions) {
    this.#id = id;
    this.#token = requireToken(id);
    this.#endpoint = hubEndpoint();
    this.#options = options;
  }

  /** The repository, new unless it is there already. */
  async create(): Promise<void> {
    const { name, orgs = [] } = (await this.#ask("GET", "/api/whoami-v2")) as {
      name?: string;
      orgs?: { name: string }[];
    };
    const [owner, repository] = this.#id.split("/");
    const isOwn = owner === name;
    if (!isOwn && !orgs.some((org) => org.name === owner))
      throw new HubError(
        "hub/unauthorized",
        `push=${this.#id}: the token belongs to ${name}, who is not in ${owner}. Write push=${name}/${repository}, or use a token of ${owner}. Nothing was sent.`,
      );
    const body = {
      type: "model",
      name: repository,
      private: this.#options.isPrivate,
      ...(!isOwn && { organization: owner }),
    };
    await this.#ask("POST", "/api/repos/create", body, [409]);
  }

  /** Which files the hub wants in its storage, and which in the commit itself. */
  async sort(files: readonly PushedFile[]): Promise<{ lfs: PushedFile[]; regular: PushedFile[] }> {
    const asked = await Promise.all(
      files.map(async ({ path, size, file }) => ({ path, size, sample: (await head(file)).toString("base64") })),
    );
    const answer = (await this.#ask("POST", `/api/models/${this.#id}/preupload/main`, { files: asked })) as {
      files?: { path: string; uploadMode: string }[];
    };
    const modes = new Map(answer.files?.map(({ path, uploadMode }) => [path, uploadMode]));
    const isLarge = ({ path }: PushedFile) => modes.get(path) === "lfs";
    return { lfs: files.filter(isLarge), regular: files.filter((file) => !isLarge(file)) };
  }

  /** Sends what the storage does not have. */
  async store(files: readonly LfsFile[]): Promise<void> {
    if (files.length === 0) return;
    const answer = (await this.#ask(
      "POST",
      `/${this.#id}.git/info/lfs/objects/batch`,
      {
        operation: "upload",
        transfers: ["basic", "multipart"],
        hash_algo: "sha256",
        ref: { name: "main" },
        objects: files.map(({ oid, size }) => ({ oid, size })),
      },
      [],
      "application/vnd.git-lfs+json",
    )) as { objects?: { oid: string; error?: { message: string }; actions?: { upload?: Action; verify?: Action } }[] };
    for (const [index, file] of files.entries()) {
      const { error, actions } = answer.objects?.find(({ oid }) => oid === file.oid) ?? {};
      if (error) throw this.#bad(`refuses ${file.path}: ${error.message}`);
      this.#options.onFile(file.path, index, files.length);
      if (!actions?.upload) continue; // it has these bytes
      if (actions.upload.header?.["chunk_size"] === undefined) await this.#put(actions.upload, file, 0, file.size);
      else await this.#putParts(actions.upload, file);
      if (actions.verify) await this.#ask("POST", actions.verify.href, { oid: file.oid, size: file.size });
    }
  }

  async commit(regular: readonly PushedFile[], lfs: readonly LfsFile[]): Promise<{ url: string; commit: string }> {
    const lines: object[] = [
      { key: "header", value: { summary: this.#options.summary, description: "" } },
      ...regular.map(({ path, file }) => ({
        key: "file",
        value: { path, encoding: "base64", content: readFileSync(file).toString("base64") },
      })),
      ...lfs.map(({ path, oid, size }) => ({ key: "lfsFile", value: { path, algo: "sha256", oid, size } })),
    ];
    const body = lines.map((line) => JSON.stringify(line)).join("\n");
    const path = `/api/models/${this.#id}/commit/main`;
    const answer = (await this.#ask("POST", path, body, [], "application/x-ndjson")) as { commitOid?: string };
    return { url: `${this.#endpoint}/${this.#id}`, commit: String(answer.commitOid ?? "") };
  }

  /** A large file in the pieces that the storage asks for, each with its own address. */
  async #putParts({ href, header = {} }: Action, file: LfsFile): Promise<void> {
    const size = Number(header["chunk_size"]);
    const addresses = Object.entries(header)
      .filter(([name]) => /^\d+$/.test(name))
      .sort(([a], [b]) => Number(a) - Number(b));
    const parts: { partNumber: number; etag: string }[] = [];
    for (const [name, address] of addresses) {
      const start = (Number(name) - 1) * size;
      const response = await this.#put({ href: address }, file, start, Math.min(file.size, start + size));
      parts.push({ partNumber: Number(name), etag: response.headers.get("etag") ?? "" });
    }
    await this.#ask("POST", href, { oid: file.oid, parts }, [], "application/vnd.git-lfs+json");
  }

  /** Bytes to the storage, which is somebody else's server: it gets no token. */
  #put({ href, header = {} }: Action, { file, path }: LfsFile, start: number, end: number): Promise<Response> {
    return this.#retrying(`send ${path}`, async () => {
      const length = { "content-length": String(end - start) };
      const body = end > start ? Readable.toWeb(createReadStream(file, { start, end: end - 1 })) : null;
      const init = {
        method: "PUT",
        headers: { ...header, ...length },
        body,
        duplex: "half",
        signal: this.#options.signal,
      };
      return send(href, init as RequestInit);
    });
  }

  async #ask(
    method: string,
    path: string,
    body?: object | string,
    expected: readonly number[] = [],
    type = "application/json",
  ): Promise<unknown> {
    const url = path.startsWith("http") ? path : `${this.#endpoint}${path}`;
    // Only the hub itself is to see it.
    const isHub = new URL(url).origin === new URL(this.#endpoint).origin;
    const headers = {
      "user-agent": "whetstone",
      ...(isHub && { authorization: `Bearer ${this.#token}` }),
      ...(body !== undefined && {
        "content-type": type,
        accept: type === "application/x-ndjson" ? "application/json" : type,
      }),
    };
    const text = typeof body === "object" ? JSON.stringify(body) : body;
    return this.#retrying(`answer ${method} ${new URL(url).pathname}`, async () => {
      const init = { method, headers, body: text ?? null, signal: this.#options.signal };
      const response = await send(url, init, expected);
      return (await response.json().catch(() => ({}))) as unknown;
    });
  }

  async #retrying<T>(what: string, attempt: () => Promise<T>): Promise<T> {
    const { signal } = this.#options;
    try {
      return await retrying({ signal }, attempt);
    } catch (error) {
      if (signal.aborted || error instanceof HubError) throw error;
      throw this.#explained(error, what);
    }
  }

  #explained(error: unknown, what: string): HubError {
    const status = error instanceof HttpStatusError ? error.status : undefined;
    const detail = error instanceof HttpStatusError ? error.detail : "";
    if (status === 401 || status === 403)
      return new HubError(
        "hub/unauthorized",
        `${this.#endpoint} refuses push=${this.#id} (HTTP ${status}${detail ? `: ${detail}` : ""}). Use a token that may write there: export HF_TOKEN=…. Nothing was committed.`,
      );
    if (status !== undefined && status < 500 && status !== 429)
      return this.#bad(`does not ${what} (HTTP ${status}${detail ? `: ${detail}` : ""})`);
    return new HubError(
      "hub/unreachable",
      `${this.#endpoint} did not ${what} (${messageOf(error)}). Nothing was committed; the same command goes on with what is missing.`,
      { cause: error },
    );
  }

  #bad(what: string): HubError {
    return new HubError(
      "hub/bad-answer",
      `${this.#endpoint} ${what}. Nothing was committed to ${this.#id}; try again later.`,
    );
  }
}

async function filesIn(folder: string): Promise<PushedFile[]> {
  const names = (await readdir(folder)).sort();
  return Promise.all(
    names.map(async (path) => ({ path, file: join(folder, path), size: (await stat(join(folder, path))).size })),
  );
}

async function head(file: string): Promise<Buffer> {
  const handle = await open(file);
  try {
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(512), 0, 512, 0);
    return buffer.subarray(0, bytesRead);
  } finally {
    await handle.close();
  }
}
