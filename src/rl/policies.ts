// Policy versions as frozen samplers with names. Version v is the policy after v updates. A published version has a path that a later
// process can open, so that a batch under way when a run was killed is finished by the policy that began it.
import type { SamplingClient, ServiceClient, TrainingClient } from "../client/index.ts";
import { messageOf } from "../core/errors.ts";
import type { NewEvent } from "../runs/events.ts";
import type { Logger } from "../runs/log.ts";
import { isGone } from "./lost.ts";

export interface Policy {
  readonly version: number;
  /** A sampler, and the version it really is: a newer one where this one is gone from the server. */
  open(): Promise<OpenPolicy>;
}

export interface OpenPolicy {
  sampler: SamplingClient;
  version: number;
}

export interface PoliciesOptions {
  service: ServiceClient;
  training: TrainingClient;
  /** Paths that an earlier process published. */
  published: ReadonlyMap<number, string>;
  /** Whether anything will be sampled from a version. */
  needed(version: number): boolean;
  ttlSeconds: number;
  record(event: NewEvent): Promise<void>;
  logger: Logger;
  /** Aborted: waits for the server end. */
  signal: AbortSignal;
}

export class Policies {
  readonly #options: PoliciesOptions;
  readonly #paths: Map<number, string>;
  readonly #retired = new Set<string>();
  #newest: { version: number; policy: Promise<Policy> } | undefined;
  #retiring: Promise<void> = Promise.resolve();
  #cannotRetire = false;
  /** The version of the weights as they are. */
  #current = 0;

  constructor(options: PoliciesOptions) {
    this.#options = options;
    this.#paths = new Map(options.published);
  }

  /**
   * Makes the weights as they are now the policy of `version`. Without a change since the version before, that one's sampler serves.
   * Resolves when that has its place among the training requests, so that the next update may be submitted; the policy comes later.
   */
  async publish(version: number, changed: boolean): Promise<{ policy: Promise<Policy> }> {
    this.#current = version;
    if (!this.#options.needed(version)) {
      const open = () => Promise.reject(new Error(`policy ${version} was not published`));
      return { policy: Promise.resolve({ version, open }) };
    }
    const path = this.#paths.get(version);
    const known =
      (path === undefined ? undefined : await this.#reopen(version, path)) ??
      (changed ? undefined : await this.#unchanged(version));
    const policy = known ? Promise.resolve(known) : this.#save(version);
    this.#newest = { version, policy };
    return { policy };
  }

  /** A version before the newest, published by an earlier process; opened when first needed. */
  recall(version: number): Policy {
    let opened: Promise<OpenPolicy> | undefined;
    return { version, open: () => (opened ??= this.#recallNow(version)) };
  }

  /** Deletes the samplers of versions before `version` from the server; nobody will ask for them again. */
  retire(version: number): void {
    const kept = new Set([...this.#paths].filter(([known]) => known >= version).map(([, path]) => path));
    for (const [known, path] of this.#paths) {
      if (known >= version) continue;
      this.#paths.delete(known);
      if (kept.has(path) || this.#retired.has(path)) continue;
      this.#retired.add(path);
      this.#retiring = this.#retiring.then(() => this.#delete(path));
    }
  }

  /** Waits for deletions under way. */
  settled(): Promise<void> {
    return this.#retiring;
  }

  async #save(version: number): Promise<Policy> {
    const { service, training, record, ttlSeconds, signal } = this.#options;
    const start = Date.now();
    const name = `policy-${String(version).padStart(6, "0")}`;
    const { path } = await training
      .saveWeightsForSampler(name, { signal, ...(ttlSeconds > 0 ? { ttlSeconds } : {}) })
      .result();
    const sampler = await service.createSamplingClient({ modelPath: path, signal });
    return this.#published(version, path, sampler, start, record);
  }

  async #unchanged(version: number): Promise<Policy | undefined> {
    if (this.#newest?.version !== version - 1) return undefined;
    const { sampler } = await (await this.#newest.policy).open();
    const path = this.#paths.get(version - 1);
    if (path === undefined) return undefined;
    return this.#published(version, path, sampler, Date.now(), this.#options.record);
  }

  async #published(
    version: number,
    path: string,
    sampler: SamplingClient,
    start: number,
    record: PoliciesOptions["record"],
  ): Promise<Policy> {
    this.#paths.set(version, path);
    await record({ type: "policy-published", version, path, start, end: Date.now() });
    return { version, open: () => Promise.resolve({ sampler, version }) };
  }

  /** The policy that an earlier process published; undefined when the server no longer has it. */
  async #reopen(version: number, path: string): Promise<Policy | undefined> {
    try {
      const { service, signal } = this.#options;
      const sampler = await service.createSamplingClient({ modelPath: path, signal });
      return { version, open: () => Promise.resolve({ sampler, version }) };
    } catch (error) {
      if (!(await isGone(error, this.#options.service))) throw error;
      return undefined;
    }
  }

  async #recallNow(version: number): Promise<OpenPolicy> {
    const path = this.#paths.get(version);
    const policy = path === undefined ? undefined : await this.#reopen(version, path);
    if (policy) return policy.open();
    // Where nothing else is sampled from the weights as they are, they were not published yet; no update comes before this batch.
    this.#newest ??= { version: this.#current, policy: this.#save(this.#current) };
    const newest = await (await this.#newest.policy).open();
    this.#options.logger.warn(
      `policy ${version} is gone from the server, so its remaining groups are sampled from version ${newest.version}: ` +
        "this run is no longer exactly the one it would have been",
    );
    return newest;
  }

  async #delete(path: string): Promise<void> {
    if (this.#cannotRetire) return;
    try {
      await this.#options.service.createRestClient().deleteCheckpointFromTinkerPath(path);
    } catch (error) {
      // A server without this route keeps them until they expire.
      this.#cannotRetire = true;
      this.#options.logger.detail(`old policy snapshots are not deleted: ${messageOf(error)}`);
    }
  }
}
