// What lies where a run keeps its checkpoints: on a server, asked over the Tinker API, or in the folder of the run's own engine.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { APIStatusError, parseTinkerPath, type RestClient, ServiceClient } from "../../client/index.ts";
import { checkpointFolders, formatTinkerPath } from "../../protocol/index.ts";
import { type CheckpointRecord, CheckpointStore } from "../../server/checkpoints.ts";

/** A checkpoint that takes room somewhere. Times are milliseconds since the epoch. */
export interface StoredCheckpoint {
  path: string;
  /** `weights/000010`. */
  name: string;
  bytes: number | undefined;
  savedAt: number;
  /** Undefined: never. */
  expiresAt: number | undefined;
}

export interface Storage {
  /** One line for people. */
  description: string;
  list(): Promise<StoredCheckpoint[]>;
  /** Resolves to false where it was gone already. */
  delete(path: string): Promise<boolean>;
  close(): Promise<void>;
}

const pageSize = 100;

/** The checkpoints on a server: those of the training runs in `ids`, or all. */
export function serverStorage(
  options: { baseUrl?: string },
  ids: readonly string[] | undefined,
  signal: AbortSignal,
): Storage {
  const service = new ServiceClient(options);
  const rest = service.createRestClient();
  return {
    description: options.baseUrl ?? "hosted Tinker",
    list: () => (ids ? listOf(rest, ids, signal) : listAll(rest, signal)),
    async delete(path) {
      try {
        await rest.deleteCheckpointFromTinkerPath(path, { signal });
        return true;
      } catch (error) {
        if (isNotFound(error)) return false;
        throw error;
      }
    },
    close: () => service.close(),
  };
}

const isNotFound = (error: unknown) => error instanceof APIStatusError && error.status === 404;

async function listOf(rest: RestClient, ids: readonly string[], signal: AbortSignal): Promise<StoredCheckpoint[]> {
  const found: StoredCheckpoint[] = [];
  for (const id of ids) {
    try {
      const { checkpoints } = await rest.listCheckpoints(id, { signal });
      found.push(...checkpoints.map(stored));
    } catch (error) {
      // A server that has forgotten the run has none of its checkpoints.
      if (!isNotFound(error)) throw error;
    }
  }
  return found;
}

async function listAll(rest: RestClient, signal: AbortSignal): Promise<StoredCheckpoint[]> {
  const found: StoredCheckpoint[] = [];
  for (;;) {
    const { checkpoints } = await rest.listUserCheckpoints({ limit: pageSize, offset: found.length, signal });
    found.push(...checkpoints.map(stored));
    if (checkpoints.length < pageSize) return found;
  }
}

function stored(
  checkpoint: Awaited<ReturnType<RestClient["listCheckpoints"]>>["checkpoints"][number],
): StoredCheckpoint {
  const { tinkerPath, sizeBytes, time, expiresAt } = checkpoint;
  return {
    path: tinkerPath,
    name: parseTinkerPath(tinkerPath).checkpointId,
    bytes: sizeBytes,
    savedAt: time.getTime(),
    expiresAt: expiresAt?.getTime(),
  };
}

/** The checkpoints of a run's own engine. Listing only reads the folder, which does not disturb a live run; to delete, hold the run's lock. */
export function engineStorage(stateDir: string): Storage {
  let store: CheckpointStore | undefined;
  return {
    description: stateDir,
    list: async () => readFolder(stateDir),
    async delete(path) {
      store ??= new CheckpointStore(stateDir);
      const { trainingRunId, kind, name } = parseTinkerPath(path);
      const record = store.find(trainingRunId, kind, name);
      if (record) await store.delete(record);
      return record !== undefined;
    },
    close: async () => {},
  };
}

function readFolder(stateDir: string): StoredCheckpoint[] {
  const root = join(stateDir, "checkpoints");
  const inside = (folder: string) => (existsSync(folder) ? readdirSync(folder) : []);
  return inside(root).flatMap((run) =>
    Object.values(checkpointFolders).flatMap((folder) =>
      inside(join(root, run, folder)).flatMap((name) => {
        try {
          const text = readFileSync(join(root, run, folder, name, "checkpoint.json"), "utf8");
          const record = JSON.parse(text) as CheckpointRecord;
          return [
            {
              path: formatTinkerPath(record.runId, record.kind, record.name),
              name: `${folder}/${record.name}`,
              bytes: record.sizeBytes,
              savedAt: record.createdAt,
              expiresAt: record.expiresAt ?? undefined,
            },
          ];
        } catch {
          return []; // being written, or being deleted
        }
      }),
    ),
  );
}
