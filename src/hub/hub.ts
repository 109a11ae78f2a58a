// Reads model and data set repositories of the Hugging Face hub, or of a mirror that speaks its API: lists a repository's files at
// one commit and keeps what is asked for in a local cache, addressed by content. A download that breaks off continues where it
// stopped; what is in the cache is not asked for again; without a network the last known listing is used.
import { mkdir, readFile, stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { cacheFolder } from "../core/cache.ts";
import { bytesOf } from "../core/count.ts";
import { messageOf, WhetstoneError } from "../core/errors.ts";
import { writeFileAtomic } from "../core/files.ts";
import { downloadFile } from "./download.ts";
import { HubError } from "./errors.ts";
import { HttpStatusError, type RetryOptions, retrying, send } from "./http-retry.ts";

export interface HubRepository {
  type: "model" | "dataset";
  /** "owner/name". */
  id: string;
  /** Branch, tag or commit. Default "main". */
  revision?: string;
}

export interface HubFile {
  path: string;
  sizeBytes: number;
  /** SHA-256 of the content, or the git blob id (SHA-1) of a small file that git itself keeps. */
  hash: { algorithm: "sha256" | "git-sha1"; hex: string };
}

export interface HubSnapshot {
  repository: HubRepository;
  /** The commit that the revision stood for. */
  commit: string;
  files: HubFile[];
}

export interface HubProgress {
  path: string;
  receivedBytes: number;
  totalBytes: number;
}

export interface HubDownloadOptions {
  signal?: AbortSignal | undefined;
  onProgress?: ((progress: HubProgress) => void) | undefined;
}

export interface HubOptions {
  /** Default: HF_ENDPOINT, else https://huggingface.co. */
  endpoint?: string;
  /** Default: HF_TOKEN. Never logged, and sent to the endpoint alone, not to where it redirects. */
  token?: string;
  /** Default: `hub` in the cache folder. */
  cacheFolder?: string;
  /** Called with what is worth a line to the user: an old listing is used, a download continues. */
  onNotice?: ((message: string) => void) | undefined;
  /** Milliseconds before the first retry; doubles each time. Default 500. */
  retryDelayMs?: number;
  /** Nothing is asked of the network: what the cache does not have is an error. Default false. */
  offline?: boolean;
}

/** The hub that is asked, without a slash at its end: the given one, that of HF_ENDPOINT, or the public one. */
export const hubEndpoint = (given?: string): string =>
  (given ?? (process.env["HF_ENDPOINT"] || "https://huggingface.co")).replace(/\/+$/, "");

export class Hub {
  readonly endpoint: string;
  readonly cacheFolder: string;
  readonly #options: HubOptions;
  readonly #token: string | undefined;

  constructor(options: HubOptions = {}) {
    this.#options = options;
    this.endpoint = hubEndpoint(options.endpoint);
    this.#token = options.token ?? (process.env["HF_TOKEN"] || undefined);
    this.cacheFolder = options.cacheFolder ?? join(cacheFolder(), "hub");
  }

  /** The files of a repository at the commit that its revision stands for now; without a network, at the last known one. */
  async snapshot(repository: HubRepository, signal?: AbortSignal): Promise<HubSnapshot> {
    const cached = join(this.#folderOf(repository), "listings", `${encodeURIComponent(revisionOf(repository))}.json`);
    try {
      if (this.#options.offline) throw this.#notCached(repository);
      const snapshot = await this.#list(repository, signal);
      return await this.#explain(repository, signal, async () => {
        await mkdir(dirname(cached), { recursive: true });
        writeFileAtomic(cached, JSON.stringify(snapshot));
        return snapshot;
      });
    } catch (error) {
      if (!(error instanceof HubError) || error.code !== "hub/unreachable") throw error;
      const text = await readFile(cached, "utf8").catch(() => undefined);
      if (text === undefined) throw error;
      this.#options.onNotice?.(
        `${error.message.split(". ")[0]}; using the files of ${repository.id} that were downloaded before.`,
      );
      return JSON.parse(text) as HubSnapshot;
    }
  }

  /** The local path of a file, downloaded if the cache does not have it. */
  async download(
    snapshot: HubSnapshot,
    file: HubFile,
    { signal, onProgress }: HubDownloadOptions = {},
  ): Promise<string> {
    const { repository } = snapshot;
    const target = join(this.#folderOf(repository), "files", file.hash.hex, basename(file.path));
    const known = await stat(target).catch(() => undefined);
    if (known?.size === file.sizeBytes) return target;
    if (this.#options.offline) throw this.#notCached(repository);
    const prefix = repository.type === "dataset" ? "datasets/" : "";
    const path = file.path.split("/").map(encodeURIComponent).join("/");
    await this.#explain(repository, signal, async () => {
      await mkdir(dirname(target), { recursive: true });
      await downloadFile(`${this.endpoint}/${prefix}${repository.id}/resolve/${snapshot.commit}/${path}`, target, {
        sizeBytes: file.sizeBytes,
        hash: file.hash,
        headers: this.#headers(),
        ...this.#retry(signal),
        onResume: (bytes) =>
          this.#options.onNotice?.(`${file.path}: going on after ${bytesOf(bytes)} of ${bytesOf(file.sizeBytes)}.`),
        onProgress: (receivedBytes) => onProgress?.({ path: file.path, receivedBytes, totalBytes: file.sizeBytes }),
      });
    });
    return target;
  }

  /** A folder for links to the files of one commit, by their names in the repository. */
  folderOf({ repository, commit }: HubSnapshot): string {
    return join(this.#folderOf(repository), "snapshots", commit);
  }

  #notCached({ id }: HubRepository): HubError {
    return new HubError(
      "hub/unreachable",
      `The files of ${id} are not all in ${this.cacheFolder}, and nothing is downloaded here. Whatever trains or samples with it downloads them.`,
    );
  }

  async #list(repository: HubRepository, signal: AbortSignal | undefined): Promise<HubSnapshot> {
    const api = `${this.endpoint}/api/${repository.type}s/${repository.id}`;
    const revision = encodeURIComponent(revisionOf(repository));
    const info = (await this.#json(repository, `${api}/revision/${revision}`, signal)).body as { sha?: unknown };
    // It names a folder of the cache.
    if (typeof info.sha !== "string" || !/^[0-9a-f]{7,64}$/.test(info.sha))
      throw this.#badAnswer(repository, "names no commit");
    const files: HubFile[] = [];
    let next: string | undefined = `${api}/tree/${info.sha}?recursive=true`;
    while (next !== undefined) {
      const page: { body: unknown; next: string | undefined } = await this.#json(repository, next, signal);
      if (!Array.isArray(page.body)) throw this.#badAnswer(repository, "lists no files");
      for (const entry of page.body as TreeEntry[]) if (entry.type === "file") files.push(toFile(entry));
      next = page.next;
    }
    return { repository, commit: info.sha, files };
  }

  async #json(
    repository: HubRepository,
    url: string,
    signal: AbortSignal | undefined,
  ): Promise<{ body: unknown; next: string | undefined }> {
    return this.#explain(repository, signal, async () => {
      const init = { headers: this.#headers(), signal: signal ?? null };
      const response = await retrying(this.#retry(signal), () => send(url, init));
      const next = /<([^>]+)>\s*;\s*rel="next"/.exec(response.headers.get("link") ?? "")?.[1];
      // A page elsewhere would get the token.
      const sameOrigin = next !== undefined && new URL(next, url).origin === new URL(url).origin;
      return { body: await response.json(), next: sameOrigin ? new URL(next, url).href : undefined };
    });
  }

  /** Runs a request and turns its failure into what the user can do about it. */
  async #explain<T>(repository: HubRepository, signal: AbortSignal | undefined, request: () => Promise<T>): Promise<T> {
    try {
      return await request();
    } catch (error) {
      if (error instanceof WhetstoneError || signal?.aborted) throw error;
      const [code, message] = this.#reasonOf(error, repository);
      throw new HubError(code, message, { cause: error });
    }
  }

  #reasonOf(error: unknown, repository: HubRepository): [code: string, message: string] {
    const what = `the ${repository.type} ${repository.id} at ${this.endpoint}`;
    if (fileErrors.has((error as NodeJS.ErrnoException).code ?? ""))
      return [
        "hub/cache",
        `The cache ${this.cacheFolder} cannot be written: ${messageOf(error)}. Free some space, or set WHETSTONE_CACHE to another folder.`,
      ];
    if (!(error instanceof HttpStatusError))
      return [
        "hub/unreachable",
        `${this.endpoint} did not answer (${messageOf(error)}). Check the network, or set HF_ENDPOINT to a mirror.`,
      ];
    const { status, detail } = error;
    if (status === 401 || status === 403)
      return [
        "hub/unauthorized",
        `${capital(what)} needs permission (HTTP ${status}; ${this.#token ? "HF_TOKEN was sent" : "HF_TOKEN is not set"}). Set HF_TOKEN to a token that may read it, and accept its terms on its page if it has any.`,
      ];
    if (status === 404)
      return [
        "hub/not-found",
        `There is no revision ${JSON.stringify(revisionOf(repository))} of ${what} (HTTP 404). Check the name; a private one needs HF_TOKEN.`,
      ];
    return [
      status >= 500 || status === 429 ? "hub/unreachable" : "hub/bad-answer",
      `${capital(what)} could not be read: HTTP ${status}${detail ? ` (${detail})` : ""}. Try again later, or set HF_ENDPOINT to a mirror.`,
    ];
  }

  #badAnswer(repository: HubRepository, what: string): HubError {
    return new HubError(
      "hub/bad-answer",
      `The answer of ${this.endpoint} about the ${repository.type} ${repository.id} ${what}. Is HF_ENDPOINT a Hugging Face hub?`,
    );
  }

  #retry(signal: AbortSignal | undefined): RetryOptions {
    return { signal, retryDelayMs: this.#options.retryDelayMs };
  }

  #headers(): Record<string, string> {
    return { "user-agent": "whetstone", ...(this.#token ? { authorization: `Bearer ${this.#token}` } : {}) };
  }

  #folderOf({ type, id }: HubRepository): string {
    return join(this.cacheFolder, `${type}s--${id.replaceAll("/", "--")}`);
  }
}

/** True for a name that can only be a repository of the hub. */
export function isHubId(name: string): boolean {
  return /^[A-Za-z0-9][\w.-]*\/[A-Za-z0-9][\w.-]*$/.test(name) && !name.includes("..");
}

interface TreeEntry {
  type: string;
  path: string;
  size: number;
  oid: string;
  lfs?: { oid: string; size: number };
}

function toFile(entry: TreeEntry): HubFile {
  const { path, lfs } = entry;
  // The content's hash names a folder of the cache, so nothing but a hash may come through.
  const hex = /^[0-9a-f]{40,64}$/.exec(lfs?.oid ?? entry.oid)?.[0];
  if (hex === undefined)
    throw new HubError(
      "hub/bad-answer",
      `The hub lists ${path} without a usable hash. Is HF_ENDPOINT a Hugging Face hub?`,
    );
  return { path, sizeBytes: lfs?.size ?? entry.size, hash: { algorithm: lfs ? "sha256" : "git-sha1", hex } };
}

const revisionOf = (repository: HubRepository) => repository.revision ?? "main";
const capital = (text: string) => text[0]!.toUpperCase() + text.slice(1);
const fileErrors = new Set("ENOSPC EDQUOT EACCES EPERM EROFS ENOTDIR EISDIR EMFILE EFBIG EIO".split(" "));
