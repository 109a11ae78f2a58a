// Checkpoints on disk: STATE/checkpoints/RUN/weights|sampler_weights/NAME/ holds what the engine wrote, under UID/, and the
// metadata that names it, checkpoint.json. A checkpoint appears, and is replaced, in one rename after everything in it is on disk;
// what a crash leaves unfinished is removed by the next start.
import { randomUUID } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { mkdir, open, readdir, rename, rm, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { syncFolder, writeFileAtomic } from "../core/files.ts";
import type { LoraSpec } from "../engine/engine.ts";
import {
  type CheckpointKind,
  checkpointFolders,
  checkpointIdOf,
  checkpointKinds,
  formatTinkerPath,
  type TinkerPath,
} from "../protocol/index.ts";
import { badRequest, explainDisk, ServerError } from "./errors.ts";

export interface CheckpointRecord {
  /** Tells this checkpoint from one saved later under the same name. */
  uid: string;
  runId: string;
  kind: CheckpointKind;
  name: string;
  baseModel: string;
  lora: LoraSpec;
  createdAt: number;
  sizeBytes: number;
  public: boolean;
  expiresAt: number | null;
  userMetadata?: Readonly<Record<string, string>> | undefined;
}

const metadataFile = "checkpoint.json";

/** Names are file names too: letters, digits, dots, dashes and underscores, not starting with a dot or dash. */
export function checkName(name = ""): string {
  if (/^[A-Za-z0-9_][A-Za-z0-9._-]{0,199}$/.test(name)) return name;
  throw badRequest(
    "server/checkpoint-name",
    `"${name.slice(0, 80)}" cannot name a checkpoint. Use 1 to 200 letters, digits, dots, dashes and underscores.`,
  );
}

export class CheckpointStore {
  readonly #root: string;
  readonly #incoming: string;
  readonly #records = new Map<string, CheckpointRecord>();
  readonly #now: () => number;

  constructor(stateDir: string, now: () => number = Date.now) {
    this.#now = now;
    this.#root = join(stateDir, "checkpoints");
    this.#incoming = join(stateDir, "incoming");
    mkdirSync(this.#root, { recursive: true });
    rmSync(this.#incoming, { recursive: true, force: true });
    mkdirSync(this.#incoming, { recursive: true });
    this.#readAll();
  }

  /** Where the engine's files of a checkpoint are. */
  filesDir(record: CheckpointRecord): string {
    return join(this.#dir(record), record.uid);
  }

  /** Writes a checkpoint: `write` fills an empty folder, which then appears under its name in one step. */
  async save(
    fields: Pick<CheckpointRecord, "runId" | "kind" | "name" | "baseModel" | "lora" | "userMetadata">,
    options: { overwrite: boolean; ttlSeconds?: number | undefined },
    write: (dir: string) => Promise<void>,
  ): Promise<CheckpointRecord> {
    if (!options.overwrite) this.#refuseDuplicate(fields);
    const uid = randomUUID();
    const temporary = join(this.#incoming, uid);
    const files = join(temporary, uid);
    await mkdir(files, { recursive: true });
    try {
      await write(files);
      const sizeBytes = await syncTree(files);
      const at = this.#now();
      const record: CheckpointRecord = {
        ...fields,
        uid,
        createdAt: at,
        sizeBytes,
        public: false,
        expiresAt: options.ttlSeconds === undefined ? null : at + options.ttlSeconds * 1000,
      };
      await this.#moveIntoPlace(temporary, record);
      this.#records.set(keyOf(record), record);
      return record;
    } catch (error) {
      throw explainDisk(error, `Checkpoint ${fields.name}`);
    } finally {
      await rm(temporary, { recursive: true, force: true });
    }
  }

  /** The checkpoint at an address, or undefined when there is none (any more). */
  find(runId: string, kind: CheckpointKind, name: string): CheckpointRecord | undefined {
    const record = this.#records.get(keyOf({ runId, kind, name }));
    return record && !this.#expired(record) ? record : undefined;
  }

  get(path: Pick<TinkerPath, "trainingRunId" | "kind" | "name">): CheckpointRecord {
    const record = this.find(path.trainingRunId, path.kind, path.name);
    if (record) return record;
    const address = formatTinkerPath(path.trainingRunId, path.kind, path.name);
    throw new ServerError(
      404,
      "server/checkpoint-not-found",
      `There is no checkpoint ${address.slice(0, 300)}: it was never saved here, was deleted, or has expired. List the run's checkpoints.`,
    );
  }

  /** The checkpoint of a run by what a route calls it: weights/NAME, or the bare name where it is the only one so called. */
  named(runId: string, checkpointId: string, kind?: CheckpointKind): CheckpointRecord {
    const [first, rest] = checkpointId.split("/", 2) as [string, string | undefined];
    const stated = checkpointKinds.find((candidate) => checkpointFolders[candidate] === first);
    if (rest !== undefined && stated) return this.get({ trainingRunId: runId, kind: stated, name: rest });
    const kinds = (kind ? [kind] : checkpointKinds).filter((candidate) => this.find(runId, candidate, checkpointId));
    if (kinds.length > 1)
      throw badRequest(
        "server/checkpoint-ambiguous",
        `"${checkpointId.slice(0, 80)}" names several checkpoints of ${runId}: ${kinds.map((candidate) => checkpointIdOf(candidate, checkpointId)).join(", ")}. Write one of those.`,
      );
    return this.get({ trainingRunId: runId, kind: kinds[0] ?? kind ?? "training", name: checkpointId });
  }

  /** Newest first; of one run, or of all. */
  list(runId?: string): CheckpointRecord[] {
    return [...this.#records.values()]
      .filter((record) => (runId === undefined || record.runId === runId) && !this.#expired(record))
      .sort((a, b) => b.createdAt - a.createdAt || (a.name < b.name ? 1 : -1));
  }

  async delete(record: CheckpointRecord): Promise<void> {
    this.#records.delete(keyOf(record));
    const removed = join(this.#incoming, randomUUID());
    // Gone in one step; the files follow.
    await rename(this.#dir(record), removed);
    await rm(removed, { recursive: true, force: true });
  }

  setPublic(record: CheckpointRecord, value: boolean): void {
    this.#update(record, { public: value });
  }

  /** null: it stays until it is deleted. */
  setTtl(record: CheckpointRecord, ttlSeconds: number | null): void {
    this.#update(record, { expiresAt: ttlSeconds === null ? null : this.#now() + ttlSeconds * 1000 });
  }

  /** Deletes what has expired. */
  async sweep(): Promise<void> {
    for (const record of [...this.#records.values()]) if (this.#expired(record)) await this.delete(record);
  }

  #update(record: CheckpointRecord, change: Partial<CheckpointRecord>): void {
    Object.assign(record, change);
    writeFileAtomic(join(this.#dir(record), metadataFile), JSON.stringify(record));
  }

  #expired(record: CheckpointRecord): boolean {
    return record.expiresAt !== null && record.expiresAt <= this.#now();
  }

  #dir({ runId, kind, name }: Pick<CheckpointRecord, "runId" | "kind" | "name">): string {
    return join(this.#root, encodeURIComponent(runId), checkpointFolders[kind], name);
  }

  #refuseDuplicate(fields: Pick<CheckpointRecord, "runId" | "kind" | "name">): void {
    if (!this.find(fields.runId, fields.kind, fields.name)) return;
    throw new ServerError(
      409,
      "server/checkpoint-exists",
      `Checkpoint ${formatTinkerPath(fields.runId, fields.kind, fields.name)} exists. Choose another name, delete it first` +
        `${fields.kind === "training" ? ", or save with overwrite" : ""}.`,
    );
  }

  async #moveIntoPlace(temporary: string, record: CheckpointRecord): Promise<void> {
    const target = this.#dir(record);
    const replaced = this.#records.get(keyOf(record));
    if (replaced) {
      await rename(join(temporary, record.uid), join(target, record.uid));
      syncFolder(target);
      writeFileAtomic(join(target, metadataFile), JSON.stringify(record));
      await rm(join(target, replaced.uid), { recursive: true, force: true });
      return;
    }
    writeFileAtomic(join(temporary, metadataFile), JSON.stringify(record));
    await mkdir(dirname(target), { recursive: true });
    await rename(temporary, target);
    syncFolder(dirname(target));
  }

  #readAll(): void {
    for (const run of readdirSync(this.#root))
      for (const folder of Object.values(checkpointFolders)) {
        let names: string[];
        try {
          names = readdirSync(join(this.#root, run, folder));
        } catch {
          continue;
        }
        for (const name of names) {
          const dir = join(this.#root, run, folder, name);
          let record: CheckpointRecord;
          try {
            record = JSON.parse(readFileSync(join(dir, metadataFile), "utf8")) as CheckpointRecord;
          } catch {
            // Not a checkpoint of ours; it is left alone and stays invisible.
            continue;
          }
          this.#records.set(keyOf(record), record);
          for (const entry of readdirSync(dir))
            if (entry !== metadataFile && entry !== record.uid)
              rmSync(join(dir, entry), { recursive: true, force: true });
        }
      }
  }
}

const keyOf = ({ runId, kind, name }: Pick<CheckpointRecord, "runId" | "kind" | "name">) => `${runId}/${kind}/${name}`;

/** Flushes every file and folder below `dir`; returns the bytes of its files. */
async function syncTree(dir: string): Promise<number> {
  let bytes = 0;
  for (const entry of await readdir(dir, { withFileTypes: true })) {
    const path = join(dir, entry.name);
    if (entry.isDirectory()) {
      bytes += await syncTree(path);
      continue;
    }
    const file = await open(path, "r");
    try {
      await file.sync();
    } finally {
      await file.close();
    }
    bytes += (await stat(path)).size;
  }
  syncFolder(dir);
  return bytes;
}
