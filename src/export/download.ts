// Fetches an adapter from a Tinker server. Servers have had two ways: an archive of a checkpoint, which older ones and our own still offer,
// and external weights, links to each file of a copy made for the purpose, which is the only one that hosted Tinker has kept. Of what
// comes only the adapter's two files are taken.

import { createWriteStream, openSync, rmSync } from "node:fs";
import { basename, join } from "node:path";
import { pipeline } from "node:stream/promises";
import { APIStatusError, type ServiceClient } from "../client/index.ts";
import { messageOf } from "../core/errors.ts";
import { freeBytes } from "../core/files.ts";
import { extractTar } from "../core/tar.ts";
import { type RetryOptions, retrying, send } from "../hub/http-retry.ts";
import { adapterFiles } from "./adapter.ts";
import { ExportError } from "./errors.ts";

interface RemoteCheckpoint {
  /** For messages. */
  name: string;
  /** tinker:// paths: weights to sample from, and to train on from. */
  sampler: string | undefined;
  state: string | undefined;
}

export interface DownloadOptions {
  signal: AbortSignal;
  say(line: string): void;
  /** Default 500. */
  retryDelayMs?: number;
}

/** Life of the copy that external weights are, should it not be deleted afterwards. */
const copySeconds = 3600;
const maxConfigBytes = 1 << 20;
const wanted: ReadonlySet<string> = new Set(Object.values(adapterFiles));

/** Puts the adapter's files into `dir`. */
export async function downloadAdapter(
  service: ServiceClient,
  checkpoint: RemoteCheckpoint,
  dir: string,
  options: DownloadOptions,
): Promise<void> {
  const { sampler, state } = checkpoint;
  const refusals: unknown[] = [];
  const ways: (() => Promise<void>)[] = [
    ...[sampler, state].flatMap((path) => (path === undefined ? [] : [() => fromArchive(service, path, dir, options)])),
    ...(state === undefined ? [] : [() => fromExternalWeights(service, state, dir, options)]),
  ];
  for (const way of ways) {
    try {
      await way();
      return;
    } catch (error) {
      options.signal.throwIfAborted();
      for (const name of wanted) rmSync(join(dir, name), { force: true });
      // A server without this way, or without this checkpoint: the next one tells.
      if (!(error instanceof APIStatusError && [400, 404, 405, 410, 422, 501].includes(error.status))) throw error;
      refusals.push(error);
    }
  }
  const gone = refusals.every((error) => error instanceof APIStatusError && [404, 405, 410].includes(error.status));
  throw new ExportError(
    gone ? "export/checkpoint-gone" : "export/download",
    `The server gives no files of checkpoint ${checkpoint.name} (${messageOf(refusals.at(-1))}). ` +
      "It may have expired or been deleted, or this is not the server and account that trained it. Choose another checkpoint, or set base_url=.",
    { cause: refusals.at(-1) },
  );
}

async function fromArchive(service: ServiceClient, path: string, dir: string, options: DownloadOptions): Promise<void> {
  const rest = service.createRestClient();
  await retried(options, dir, async () => {
    const { url } = await rest.getCheckpointArchiveUrlFromTinkerPath(path, { signal: options.signal });
    const body = await bodyOf(url, options.signal);
    const taken = new Set<string>();
    await extractTar(body, dir, { maxBytes: freeBytes(dir) }, (file) => {
      const name = basename(file);
      if (!wanted.has(name) || taken.has(name)) return undefined;
      taken.add(name);
      return name;
    });
    complete(taken, path);
  });
}

/** A copy of the training checkpoint's weights as files, fetched one by one; the copy is deleted afterwards. */
async function fromExternalWeights(
  service: ServiceClient,
  state: string,
  dir: string,
  options: DownloadOptions,
): Promise<void> {
  const { signal } = options;
  options.say("this server keeps no archives: asking it for a copy of the weights as files");
  const training = await service.createTrainingClientFromState(state, {
    userMetadata: { created_by: "whetstone export" },
    signal,
  });
  const { path } = await training.saveWeightsExternal("export", { ttlSeconds: copySeconds, signal }).result();
  const rest = service.createRestClient();
  try {
    await retried(options, dir, async () => {
      const { urls } = await rest.getExternalWeightsUrls(path, { signal });
      const taken = new Set<string>();
      for (const [file, url] of Object.entries(urls)) {
        const name = basename(file);
        if (!wanted.has(name) || taken.has(name)) continue;
        taken.add(name);
        const body = limited(await bodyOf(url, signal), name, dir);
        // Opened at once: a stream that opens by itself can make the file after a failed try was cleaned up.
        const target = createWriteStream("", { fd: openSync(join(dir, name), "wx") });
        await pipeline(body, target, { signal });
      }
      complete(taken, path);
    });
  } finally {
    await rest.deleteCheckpointFromTinkerPath(path).catch((error: unknown) => {
      options.say(`the copy ${path} could not be deleted (${messageOf(error)}); it expires in an hour`);
    });
  }
}

function complete(taken: ReadonlySet<string>, path: string): void {
  const missing = [...wanted].filter((name) => !taken.has(name));
  if (missing.length === 0) return;
  throw new ExportError(
    "export/download",
    `What the server sends for ${path} holds no ${missing.join(" and no ")}: it is no LoRA adapter in PEFT's layout. Choose another checkpoint.`,
  );
}

/** Breaks off what is larger than the disk, or than a config may be. */
async function* limited(bytes: AsyncIterable<Uint8Array>, name: string, dir: string): AsyncGenerator<Uint8Array> {
  let left = name === adapterFiles.config ? maxConfigBytes : freeBytes(dir);
  for await (const part of bytes) {
    left -= part.byteLength;
    if (left < 0)
      throw new ExportError(
        "export/download",
        `The server sends too much for ${name}. Free some space, or use another server.`,
      );
    yield part;
  }
}

/** From the start each time: the links of a failed try may have expired. */
function retried(options: DownloadOptions, dir: string, attempt: () => Promise<void>): Promise<void> {
  const policy: RetryOptions = { signal: options.signal, tries: 4, retryDelayMs: options.retryDelayMs ?? 500 };
  return retrying(policy, async () => {
    for (const name of wanted) rmSync(join(dir, name), { force: true });
    await attempt();
  });
}

/** The body behind a signed link. The link is its own permission, so no key goes along. */
async function bodyOf(url: string, signal: AbortSignal): Promise<AsyncIterable<Uint8Array>> {
  if (!/^https?:$/.test(new URL(url).protocol))
    throw new ExportError(
      "export/download",
      `The server names ${url.slice(0, 80)} as a link, which is no web address.`,
    );
  return (await send(url, { signal })).body ?? emptyBody();
}

async function* emptyBody(): AsyncGenerator<Uint8Array> {}
