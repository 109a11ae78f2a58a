// From what a user writes (`starter`, `deepcoder`, a path, a hub id; several with commas) to files on this machine.
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { readdir, stat } from "node:fs/promises";
import { basename, dirname, extname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { hashFile } from "../core/files.ts";
import { type LanguageName, languagesNamed } from "../core/languages/languages.ts";
import { Limiter } from "../core/limiter.ts";
import { Hub, type HubFile, type HubSnapshot, isHubId } from "../hub/hub.ts";
import { DataError } from "./errors.ts";
import { extensions, isProblemFile } from "./formats.ts";

/** A part of a data set. */
export type Split = "train" | "test";

export interface ProblemFile {
  path: string;
  source: string;
  /** The split that the file belongs to by its name, or "". */
  split: string;
  /** Of its content. */
  hash: string;
  /** Languages of the answers, where the source was named with one. */
  languages?: readonly LanguageName[] | undefined;
}

export interface SourceOptions {
  hub?: Hub;
  signal?: AbortSignal;
  onDownload?: (progress: DownloadProgress) => void;
}

/** How far a download is. */
export interface DownloadProgress {
  /** Files to fetch in all. */
  files: number;
  /** Files that are complete. */
  filesDone: number;
  /** Bytes that are here, of all files. */
  receivedBytes: number;
  /** Bytes of all files. */
  totalBytes: number;
}

/** DeepCoder's name on the Hugging Face hub. */
export const deepcoderId = "agentica-org/DeepCoder-Preview-Dataset";

/** The parts of DeepCoder that each split is made of, in their order. */
export const deepcoderConfigs: Readonly<Record<Split, readonly string[]>> = {
  train: ["primeintellect", "taco", "lcbv5"],
  test: ["codeforces", "lcbv5"],
};

const starterFolder = fileURLToPath(new URL("../../data/starter/", import.meta.url));

/** Data sets that have a name of their own here; everything else is a path or a data set of the hub. */
const named: Readonly<Record<string, (split: Split, options: SourceOptions) => Promise<ProblemFile[]>>> = {
  starter: async (split) => [await localFile(join(starterFolder, `${split}.jsonl`))],
  deepcoder,
};

/** The files that `specification` names for a split, in their order; downloaded where they are not here. */
export async function findFiles(
  specification: string,
  split: Split,
  options: SourceOptions = {},
): Promise<ProblemFile[]> {
  const files: ProblemFile[] = [];
  for (const part of specification.split(",").map((text) => text.trim())) {
    if (part === "") continue;
    const { place, languages } = takenApart(part);
    const find = Object.hasOwn(named, place) ? named[place] : undefined;
    const found = await (find ? find(split, options) : fromPathOrHub(place, split, options));
    files.push(...(languages ? found.map((file) => ({ ...file, languages })) : found));
  }
  if (files.length > 0) return files;
  throw notFound(`No data was named (${JSON.stringify(specification)}).`);
}

/** A source and the languages of its answers: "mine.jsonl:javascript". */
function takenApart(part: string): { place: string; languages?: readonly LanguageName[] } {
  const [, place, name] = /^(.+):([^:/]+)$/.exec(part) ?? [];
  const languages = place === undefined || existsSync(part) ? undefined : languagesNamed(name!);
  return languages ? { place: place!, languages } : { place: part };
}

/** The same sources, named so that they are found from any folder. */
export function fromAnywhere(specification: string): string {
  const parts = specification.split(",").map((text) => text.trim());
  const isHere = (part: string) => {
    const { place } = takenApart(part);
    return place !== "" && !Object.hasOwn(named, place) && existsSync(place);
  };
  return parts.some(isHere) ? parts.map((part) => (isHere(part) ? resolve(part) : part)).join(",") : specification;
}

async function fromPathOrHub(part: string, split: Split, options: SourceOptions): Promise<ProblemFile[]> {
  const path = part.startsWith("~/") ? join(process.env["HOME"] ?? "~", part.slice(2)) : resolve(part);
  const entry = await stat(path).catch(() => undefined);
  if (entry?.isFile()) return [await localFile(path)];
  if (entry?.isDirectory()) return fromFolder(path, split);
  if (isHubId(part))
    return fromHub(part, options, ({ files }) => {
      const candidates = files.filter((file) => isProblemFile(file.path));
      return chooseSplit(candidates, split, (file) => file.path, `the data set ${part}`);
    });
  throw notFound(`There is no file or folder ${path}, and ${JSON.stringify(part)} is no name of a data set.`);
}

async function fromFolder(folder: string, split: Split): Promise<ProblemFile[]> {
  const names = (await readdir(folder, { recursive: true })).filter(isProblemFile).sort();
  const chosen = chooseSplit(names, split, (name) => name, folder);
  return Promise.all(chosen.map((name) => localFile(join(folder, name))));
}

function deepcoder(split: Split, options: SourceOptions): Promise<ProblemFile[]> {
  return fromHub(deepcoderId, options, ({ files, commit }, endpoint) =>
    deepcoderConfigs[split].flatMap((config) => {
      const pattern = new RegExp(`(?:^|/)${config}/${split}[-.][^/]*\\.parquet$`);
      const found = files.filter(({ path }) => pattern.test(path)).sort((a, b) => (a.path < b.path ? -1 : 1));
      if (found.length > 0) return found;
      throw notFound(`${deepcoderId} at ${endpoint} has no Parquet files of ${config}/${split} (commit ${commit}).`);
    }),
  );
}

/** Downloads files of a data set, a few at a time; they come back in the order in which `choose` gives them. */
async function fromHub(
  id: string,
  options: SourceOptions,
  choose: (snapshot: HubSnapshot, endpoint: string) => readonly HubFile[],
): Promise<ProblemFile[]> {
  const { hub = new Hub() } = options;
  const snapshot = await hub.snapshot({ type: "dataset", id }, options.signal);
  const files = choose(snapshot, hub.endpoint);
  const received = new Map<string, number>();
  const totalBytes = files.reduce((sum, file) => sum + file.sizeBytes, 0);
  let filesDone = 0;
  const report = () => {
    const receivedBytes = [...received.values()].reduce((sum, bytes) => sum + bytes, 0);
    options.onDownload?.({ files: files.length, filesDone, receivedBytes, totalBytes });
  };
  const failed = new AbortController();
  const signal = options.signal ? AbortSignal.any([options.signal, failed.signal]) : failed.signal;
  const fetchFile = async (file: HubFile): Promise<ProblemFile> => {
    const path = await hub.download(snapshot, file, {
      signal,
      onProgress: ({ receivedBytes }) => {
        received.set(file.path, receivedBytes);
        report();
      },
    });
    received.set(file.path, file.sizeBytes);
    filesDone++;
    report();
    return { path, source: sourceOf(file.path), split: splitOf(file.path) ?? "", hash: file.hash.hex };
  };
  const limiter = new Limiter(4);
  const downloads = files.map((file) => limiter.run(() => fetchFile(file), { signal }));
  try {
    return await Promise.all(downloads);
  } catch (error) {
    // The others stop, and keep what they have.
    failed.abort();
    await Promise.allSettled(downloads);
    throw error;
  }
}

async function localFile(path: string): Promise<ProblemFile> {
  if (!isProblemFile(path)) {
    throw new DataError("data/bad-file", `${path} has an unknown ending. Use ${extensions.join(", ")}.`);
  }
  const hash = createHash("sha256");
  try {
    await hashFile(path, hash);
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== "ENOENT") throw cause;
    throw notFound(`There is no file ${path}.`, cause);
  }
  return { path, source: sourceOf(path), split: splitOf(basename(path)) ?? "", hash: hash.digest("hex") };
}

/** Files of the split by their names; all files where names tell no splits. */
function chooseSplit<T>(files: readonly T[], split: Split, nameOf: (file: T) => string, where: string): T[] {
  const marked = files.filter((file) => splitOf(nameOf(file)) !== undefined);
  const chosen = marked.length === 0 ? files : marked.filter((file) => splitOf(nameOf(file)) === split);
  if (chosen.length > 0) return chosen.toSorted((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1));
  throw notFound(
    files.length === 0
      ? `There are no ${extensions.join(", ")} files in ${where}.`
      : `There are no files of the ${split} split in ${where}, only ${files.slice(0, 5).map(nameOf).join(", ")}.`,
  );
}

/** The split in a file's name ("train-00000-of-00004.parquet") or in a folder above it ("test/part1.jsonl"). */
export function splitOf(path: string): string | undefined {
  const parts = path.split("/").reverse();
  for (const part of parts) {
    const match = /^(train|test|validation|dev)(?:[^a-z]|$)/i.exec(part);
    if (match) return match[1]!.toLowerCase();
  }
  return undefined;
}

/** What a problem of this file is said to come from: the file's name without split and part, else its folder's. */
export function sourceOf(path: string): string {
  const stem = basename(path, extname(path));
  const name = stem.replace(/-\d+-of-\d+$/, "").replace(/^(train|test|validation|dev)(?=[^a-z]|$)[-_.]?/i, "");
  return name || basename(dirname(path)) || stem;
}

function notFound(what: string, cause?: unknown): DataError {
  const message = `${what} Use ${Object.keys(named).join(", ")}, a path to ${extensions.join(", ")} files, or a data set of the Hugging Face hub.`;
  return new DataError("data/not-found", message, { cause });
}
