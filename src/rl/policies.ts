// Policy versions as frozen samplers with names. Version v is the policy after v updates. A published version has a path that a later
// process can open, so that a batch under way when a run was killed is finished by the policy that began it.
import type { SamplingClient, ServiceClient, TrainingClient } from "../client/index.ts";
import { messageOf } from "../core/errors.ts";
import { sleep } from "../core/wait.ts";
import type { NewEvent } from "../runs/events.ts";
import type { Logger } from "../runs/log.ts";
import { isGone } from "./lost.ts";
import type { Recovered } from "./recovery.ts";

export interface Policy {
  readonly version: number;
  /** A sampler, and the version it really is: a newer one where this one is gone from the server. */
  open(): Promise<OpenPolicy>;
}

export interface OpenPolicy {
  sampler: SamplingClient;
  version: number;
}

/** A policy whose sampler is open already. */
export const policyOf = (sampler: SamplingClient, version = 0): Policy => ({
  version,
  open: () => Promise.resolve({ sampler, version }),
});

interface PoliciesOptions {
  service: ServiceClient;
  training: TrainingClient;
  /** The snapshots of earlier processes, and their models: of these there may be some that a killed one did not live to hear of. */
  recovered: Pick<Recovered, "policies" | "stored" | "models">;
  /** Whether anything will be sampled from a version. */
  needed(version: number): boolean;
  ttlSeconds: number;
  /** False: the newest policy alone is ever sampled, so no name is needed, and an earlier one is never opened again. */
  named: boolean;
  record(event: NewEvent): Promise<void>;
  logger: Logger;
  /** Aborted: waits for the server end. */
  signal: AbortSignal;
}

const namePrefix = "policy-";
/** How long deletions may hold up the end of a session; what is left then is deleted by the next one, or expires. */
const deletionGraceMs = 5000;

export class Policies {
  readonly #options: PoliciesOptions;
  readonly #paths: Map<number, string>;
  readonly #stored: Set<string>;
  #newest: { version: number; policy: Promise<Policy> } | undefined;
  #retiring: Promise<void> = Promise.resolve();
  readonly #end = new AbortController();

  constructor(options: PoliciesOptions) {
    this.#options = options;
    this.#paths = new Map(options.recovered.policies);
    this.#stored = new Set(options.recovered.stored);
    this.#retiring = this.#findUnheard();
  }

  /**
   * Makes the weights as they are now the policy of `version`. Without a change since the version before, that one's sampler serves.
   * Resolves when that has its place among the training requests, so that the next update may be submitted; the policy comes later.
   */
  async publish(
    version: number,
    changed: boolean,
    wanted = this.#options.needed(version),
  ): Promise<{ policy: Promise<Policy> }> {
    if (!wanted) return { policy: Promise.resolve(unused(version)) };
    const known = (await this.#reopen(version)) ?? (changed ? undefined : await this.#unchanged(version));
    const policy = known ? Promise.resolve(known) : this.#save(version);
    this.#newest = { version, policy };
    return { policy };
  }

  /** A version that an earlier process published; undefined where none did, or the server no longer has it. */
  async recall(version: number): Promise<Policy | undefined> {
    return this.#options.needed(version) ? this.#reopen(version) : unused(version);
  }

  /** Stands in for a version that cannot be opened. */
  instead(version: number, start: Promise<{ policy: Promise<Policy> }>): Policy {
    // Never published, as nothing was to be sampled from it: nothing is lost, so there is no warning.
    if (!this.#paths.has(version)) return { version, open: async () => (await (await start).policy).open() };
    const open = async () => {
      const opened = await (await (await start).policy).open();
      this.#options.logger.warn(
        `policy ${version} is gone from the server, so its remaining groups are sampled from version ${opened.version}: ` +
          "this run is no longer exactly the one it would have been",
      );
      return opened;
    };
    return { version, open };
  }

  /** Versions before `version` are not asked for again: deletes every snapshot that no other version has. */
  retire(version: number): void {
    for (const known of [...this.#paths.keys()]) if (known < version) this.#paths.delete(known);
    this.#retiring = this.#retiring.then(() => this.#deleteUnused());
  }

  /** Ends deletions under way, after a while. */
  async close(): Promise<void> {
    await Promise.race([this.#retiring, sleep(deletionGraceMs, this.#end.signal).catch(() => {})]);
    this.#end.abort(new Error("the session has ended"));
    await this.#retiring;
  }

  async #save(version: number): Promise<Policy> {
    const { service, training, ttlSeconds, named, signal } = this.#options;
    const start = Date.now();
    if (!named)
      return this.#published(version, undefined, await training.saveWeightsAndGetSamplingClient({ signal }), start);
    const name = `${namePrefix}${String(version).padStart(6, "0")}`;
    const { path } = await training
      .saveWeightsForSampler(name, { signal, ...(ttlSeconds > 0 ? { ttlSeconds } : {}) })
      .result();
    const sampler = await service.createSamplingClient({ modelPath: path, signal });
    return this.#published(version, path, sampler, start);
  }

  async #unchanged(version: number): Promise<Policy | undefined> {
    if (this.#newest?.version !== version - 1) return undefined;
    const { sampler } = await (await this.#newest.policy).open();
    return this.#published(version, this.#paths.get(version - 1), sampler, Date.now());
  }

  async #published(version: number, path: string | undefined, sampler: SamplingClient, start: number): Promise<Policy> {
    if (path !== undefined) {
      this.#paths.set(version, path);
      this.#stored.add(path);
    }
    const place = path === undefined ? {} : { path };
    await this.#options.record({ type: "policy-published", version, ...place, start, end: Date.now() });
    return policyOf(sampler, version);
  }

  async #reopen(version: number): Promise<Policy | undefined> {
    const path = this.#paths.get(version);
    if (path === undefined || !this.#options.named) return undefined;
    try {
      const { service, signal } = this.#options;
      const sampler = await service.createSamplingClient({ modelPath: path, signal });
      return policyOf(sampler, version);
    } catch (error) {
      if (!(await isGone(error, this.#options.service, this.#options.signal))) throw error;
      return undefined;
    }
  }

  async #findUnheard(): Promise<void> {
    const { service, recovered, logger } = this.#options;
    const { signal } = this.#end;
    for (const model of recovered.models)
      try {
        const { checkpoints } = await service.createRestClient().listCheckpoints(model, { signal });
        for (const { tinkerPath: path } of checkpoints)
          if (path.includes(`/sampler_weights/${namePrefix}`)) this.#stored.add(path);
      } catch (error) {
        logger.detail(`old policy snapshots of ${model} are not looked for: ${messageOf(error)}`);
      }
  }

  async #deleteUnused(): Promise<void> {
    const { service, record, logger } = this.#options;
    const { signal } = this.#end;
    const kept = new Set(this.#paths.values());
    for (const path of [...this.#stored]) {
      if (kept.has(path) || signal.aborted) continue;
      try {
        await service.createRestClient().deleteCheckpointFromTinkerPath(path, { signal });
      } catch (error) {
        if (!(await isGone(error, service, signal))) {
          // The others would fare no better; the next checkpoint tries again, and the server drops them when they expire.
          logger.detail(`old policy snapshots are not deleted: ${messageOf(error)}`);
          return;
        }
      }
      this.#stored.delete(path);
      await record({ type: "policy-deleted", path }).catch(() => {});
    }
  }
}

/** A version that nothing is sampled from. */
const unused = (version: number): Policy => ({
  version,
  open: () => Promise.reject(new Error(`policy ${version} was not published`)),
});
