// Downloads one file so that it can break off at any moment: the part that is there stays, the next try asks for the rest, and the
// file appears under its name only when its size and hash are right.
import { createHash } from "node:crypto";
import { open, rename, rm, stat } from "node:fs/promises";
import { dirname } from "node:path";
import { hashFile, syncFolder } from "../core/files.ts";
import { takeLock } from "../core/lock-file.ts";
import { HubError } from "./errors.ts";
import { ConnectionError, pauseOrThrow, type RetryOptions, send } from "./http-retry.ts";

export interface DownloadOptions extends RetryOptions {
  headers: Readonly<Record<string, string>>;
  sizeBytes: number;
  hash: { algorithm: "sha256" | "git-sha1"; hex: string };
  /** Bytes that are on disk so far. */
  onProgress(receivedBytes: number): void;
  /** Called with the bytes that a previous try left. */
  onResume(bytes: number): void;
}

/** A connection that sends nothing for this long is given up and tried again. */
const stallMs = 60_000;

/** Downloads `url` to `target`, whose folder exists. Two downloads of one file may run at once: the second uses a part of its own. */
export async function downloadFile(url: string, target: string, options: DownloadOptions): Promise<void> {
  const lock = takeLock(`${target}.lock`);
  const release = "release" in lock ? lock.release : undefined;
  const part = release ? `${target}.part` : `${target}.${process.pid}-${privateParts++}.part`;
  try {
    const left = await sizeOf(part);
    if (left > 0) options.onResume(left);
    // What an earlier try left may have been damaged by a power cut: then it is fetched once more, as a whole.
    for (const _ of left > 0 ? ["rest", "whole"] : ["whole"]) {
      await fetchAll(url, part, options);
      if (await isRight(part, options)) {
        await rename(part, target);
        syncFolder(dirname(target));
        return;
      }
      await rm(part, { force: true });
    }
    throw new HubError(
      "hub/corrupt",
      `The download of ${target} does not have the hash ${options.hash.hex} and was deleted. Try again; a proxy may be changing it.`,
    );
  } finally {
    if (!release) await rm(part, { force: true });
    release?.();
  }
}

let privateParts = 0;

/** Fetches until the part has its full size. A try that brought bytes starts the count of failures anew. */
async function fetchAll(url: string, part: string, options: DownloadOptions): Promise<void> {
  for (let failures = 0; ; ) {
    const before = await sizeOf(part);
    try {
      return await fetchRest(url, part, options);
    } catch (error) {
      failures = (await sizeOf(part)) > before ? 1 : failures + 1;
      await pauseOrThrow(error, failures, options);
    }
  }
}

async function fetchRest(url: string, part: string, options: DownloadOptions): Promise<void> {
  let start = await sizeOf(part);
  if (start > options.sizeBytes) {
    await rm(part, { force: true });
    start = 0;
  }
  if (start === options.sizeBytes && start > 0) return;
  const stall = new AbortController();
  let timer = setTimeout(() => stall.abort(), stallMs);
  const signal = options.signal ? AbortSignal.any([options.signal, stall.signal]) : stall.signal;
  // Opened before anything can arrive: a body that breaks off before it is read loses the bytes that had arrived.
  const file = await open(part, "a");
  try {
    const headers = { ...options.headers, ...(start > 0 ? { range: `bytes=${start}-` } : {}) };
    const response = await send(url, { headers, signal }, [416]);
    if (response.status === 416) {
      // The part is not a beginning of this file.
      await response.body?.cancel();
      await rm(part, { force: true });
      return await fetchRest(url, part, options);
    }
    // 200 to a request for a range: the server sends the whole file.
    if (response.status !== 206 && start > 0) {
      await file.truncate(0);
      start = 0;
    }
    let received = start;
    options.onProgress(received);
    for await (const chunk of response.body ?? []) {
      clearTimeout(timer);
      timer = setTimeout(() => stall.abort(), stallMs);
      received += chunk.byteLength;
      if (received > options.sizeBytes)
        throw new HubError(
          "hub/corrupt",
          `${new URL(url).origin} sends more than the ${options.sizeBytes} bytes it announced. Try again later.`,
        );
      await file.writeFile(chunk);
      options.onProgress(received);
    }
    await file.sync();
    if (received < options.sizeBytes)
      throw new ConnectionError(`the connection ended after ${received} of ${options.sizeBytes} bytes`);
  } catch (error) {
    if (stall.signal.aborted && !options.signal?.aborted)
      throw new ConnectionError(`nothing arrived for ${stallMs} ms`);
    throw error;
  } finally {
    clearTimeout(timer);
    await file.close();
  }
}

async function isRight(part: string, { sizeBytes, hash }: DownloadOptions): Promise<boolean> {
  const digest = hash.algorithm === "sha256" ? createHash("sha256") : createHash("sha1").update(`blob ${sizeBytes}\0`);
  return (await hashFile(part, digest)).digest("hex") === hash.hex;
}

async function sizeOf(path: string): Promise<number> {
  return (await stat(path).catch(() => undefined))?.size ?? 0;
}
