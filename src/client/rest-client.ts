// Runs, checkpoints, sessions and accounts: plain calls that need no session.
import {
  type AccessScope,
  type ArchiveResponse,
  type AuditResponse,
  archiveResponse,
  auditResponse,
  type BillingUsageResponse,
  billingUsageResponse,
  type CheckpointsResponse,
  checkpointsResponse,
  encodeText,
  jsonType,
  parseTinkerPath,
  routes,
  type SamplerResponse,
  type SessionResponse,
  samplerResponse,
  sessionProjectRequest,
  sessionResponse,
  sessionsResponse,
  type TinkerPath,
  type TrainingRun,
  type TrainingRunsResponse,
  traceExportResponse,
  trainingRun,
  trainingRunsResponse,
  ttlRequest,
  type WeightsInfoResponse,
  weightsInfoRequest,
  weightsInfoResponse,
} from "../protocol/index.ts";
import { badResponse, type Connection } from "./connection.ts";
import { claimsOf } from "./credentials.ts";
import { statusError, TinkerError } from "./errors.ts";
import { type HttpAnswer, textOf } from "./transport.ts";
import { sleep } from "./wait.ts";

export interface RestOptions {
  signal?: AbortSignal | undefined;
}

export interface ScopeOptions extends RestOptions {
  /** `owned` (default), or also what is `accessible` to you. */
  accessScope?: AccessScope | undefined;
}

export interface PageOptions extends RestOptions {
  limit?: number | undefined;
  offset?: number | undefined;
}

const archiveTries = 6;
const archiveLifetimeMs = 15 * 60_000;

export class RestClient {
  readonly #connection: Connection;

  /** Made by ServiceClient. */
  constructor(connection: Connection) {
    this.#connection = connection;
  }

  getTrainingRun(trainingRunId: string, options: ScopeOptions = {}): Promise<TrainingRun> {
    const query = { access_scope: options.accessScope ?? "owned" };
    return this.#connection.json(trainingRun, this.#get(`${routes.trainingRuns}/${trainingRunId}`, options, query));
  }

  async getTrainingRunByTinkerPath(path: string, options: ScopeOptions = {}): Promise<TrainingRun> {
    return this.getTrainingRun(parseTinkerPath(path).trainingRunId, options);
  }

  listTrainingRuns(options: PageOptions & ScopeOptions & { projectId?: string } = {}): Promise<TrainingRunsResponse> {
    const { limit = 20, offset = 0, accessScope = "owned", projectId } = options;
    const query = { limit, offset, access_scope: accessScope, project_id: projectId };
    return this.#connection.json(trainingRunsResponse, this.#get(routes.trainingRuns, options, query));
  }

  listCheckpoints(trainingRunId: string, options: RestOptions = {}): Promise<CheckpointsResponse> {
    const path = `${routes.trainingRuns}/${trainingRunId}/checkpoints`;
    return this.#connection.json(checkpointsResponse, this.#get(path, options));
  }

  /** All of your checkpoints, newest first. */
  listUserCheckpoints(options: PageOptions = {}): Promise<CheckpointsResponse> {
    const query = { limit: options.limit ?? 100, offset: options.offset ?? 0 };
    return this.#connection.json(checkpointsResponse, this.#get(routes.checkpoints, options, query));
  }

  /** The base model and LoRA settings of a checkpoint; works for public ones of others too. */
  getWeightsInfoByTinkerPath(path: string, options: RestOptions = {}): Promise<WeightsInfoResponse> {
    const body = encodeText(weightsInfoRequest, { tinkerPath: path });
    return this.#connection.json(weightsInfoResponse, {
      method: "POST",
      path: routes.weightsInfo,
      body,
      signal: options.signal,
    });
  }

  /** `checkpointId` is `weights/NAME` or `sampler_weights/NAME`. */
  async deleteCheckpoint(trainingRunId: string, checkpointId: string, options: RestOptions = {}): Promise<void> {
    await this.#change("DELETE", checkpointRoute(trainingRunId, checkpointId), options);
  }

  async deleteCheckpointFromTinkerPath(path: string, options: RestOptions = {}): Promise<void> {
    await this.#change("DELETE", routeOf(parseTinkerPath(path)), options);
  }

  /** Lets everybody read the checkpoint. */
  async publishCheckpointFromTinkerPath(path: string, options: RestOptions = {}): Promise<void> {
    await this.#change("POST", `${routeOf(parseTinkerPath(path))}/publish`, options);
  }

  async unpublishCheckpointFromTinkerPath(path: string, options: RestOptions = {}): Promise<void> {
    await this.#change("DELETE", `${routeOf(parseTinkerPath(path))}/publish`, options);
  }

  /** The checkpoint is deleted after `ttlSeconds`; null keeps it for good. */
  async setCheckpointTtlFromTinkerPath(
    path: string,
    ttlSeconds: number | null,
    options: RestOptions = {},
  ): Promise<void> {
    await this.#change("PUT", `${routeOf(parseTinkerPath(path))}/ttl`, options, encodeText(ttlRequest, { ttlSeconds }));
  }

  /** A signed address of the checkpoint's files as a tar; waits while the server builds it. */
  getCheckpointArchiveUrl(
    trainingRunId: string,
    checkpointId: string,
    options: RestOptions = {},
  ): Promise<ArchiveResponse> {
    return this.#archive(checkpointRoute(trainingRunId, checkpointId), options);
  }

  async getCheckpointArchiveUrlFromTinkerPath(path: string, options: RestOptions = {}): Promise<ArchiveResponse> {
    const parsed = parseTinkerPath(path);
    try {
      return await this.#archive(routeOf(parsed), options);
    } catch (error) {
      // SkyRL wants the bare name of a sampler checkpoint.
      if (parsed.kind !== "sampler" || !(error instanceof TinkerError && "status" in error && error.status === 405))
        throw error;
      return this.#archive(checkpointRoute(parsed.trainingRunId, parsed.name), options);
    }
  }

  getSession(sessionId: string, options: ScopeOptions = {}): Promise<SessionResponse> {
    const query = { access_scope: options.accessScope ?? "owned" };
    return this.#connection.json(sessionResponse, this.#get(`${routes.sessions}/${sessionId}`, options, query));
  }

  async listSessions(options: PageOptions & ScopeOptions = {}): Promise<string[]> {
    const { limit = 20, offset = 0, accessScope = "owned" } = options;
    const query = { limit, offset, access_scope: accessScope };
    return (await this.#connection.json(sessionsResponse, this.#get(routes.sessions, options, query))).sessions;
  }

  async assignSessionProject(sessionId: string, projectId: string, options: RestOptions = {}): Promise<void> {
    const body = encodeText(sessionProjectRequest, { projectId });
    await this.#change("PUT", `${routes.sessions}/${sessionId}/project`, options, body);
  }

  /** Exports a session's trace and returns its address; waits while the server writes it. */
  async exportSessionTrace(sessionId: string, options: RestOptions = {}): Promise<string> {
    const request = this.#get(`${routes.sessions}/${sessionId}/trace_export`, options);
    for (;;) {
      const { status, url, error } = await this.#connection.json(traceExportResponse, request);
      if (status === "ready" && url !== undefined) return url;
      if (status === "failed")
        throw new TinkerError(
          "client/trace-export",
          `The server could not export the trace of ${sessionId}: ${error ?? "no reason given"}. Try again later.`,
        );
      await sleep(this.#connection.options.timings.tracePauseMs, options.signal, this.#connection.closing);
    }
  }

  getSampler(samplerId: string, options: RestOptions = {}): Promise<SamplerResponse> {
    return this.#connection.json(samplerResponse, this.#get(`${routes.samplers}/${samplerId}`, options));
  }

  /** Who the credential belongs to, as its token says; needs a server (or a credential) that uses JWTs. */
  async whoami(): Promise<{ userUrn: string; email: string | undefined }> {
    const { pjwtAuthEnabled } = await this.#connection.config();
    const { sub, email, iss } = claimsOf(this.#connection.credentials.token);
    const trusted = pjwtAuthEnabled || (typeof iss === "string" && iss.startsWith("passport-"));
    if (!trusted || typeof sub !== "string")
      throw new TinkerError(
        "client/no-identity",
        "This server does not say who a key belongs to. Use a credential that is exchanged for a JWT, as hosted Tinker does.",
      );
    return { userUrn: sub, email: typeof email === "string" ? email : undefined };
  }

  /** What happened in the organisation; `day` is an ISO date in UTC. Needs the admin role. */
  getAuditLog(options: RestOptions & { eventType?: "all" | "checkpoints"; day?: string } = {}): Promise<AuditResponse> {
    const query = { event_type: options.eventType ?? "all", day: options.day };
    return this.#connection.json(auditResponse, this.#get(routes.audit, options, query));
  }

  /** Usage between two whole UTC hours, at most 14 days apart. */
  getBillingUsage(startingOn: Date, endingBefore: Date, options: RestOptions = {}): Promise<BillingUsageResponse> {
    const query = { starting_on: startingOn.toISOString(), ending_before: endingBefore.toISOString() };
    return this.#connection.json(billingUsageResponse, this.#get(routes.billingUsage, options, query));
  }

  #get(path: string, { signal }: RestOptions, query: Record<string, string | number | undefined> = {}) {
    const parameters = new URLSearchParams();
    for (const [name, value] of Object.entries(query)) if (value !== undefined) parameters.set(name, String(value));
    const text = parameters.toString();
    return { method: "GET" as const, path: text ? `${path}?${text}` : path, signal };
  }

  async #change(
    method: "POST" | "PUT" | "DELETE",
    path: string,
    { signal }: RestOptions,
    body?: string,
  ): Promise<void> {
    await this.#connection.call({ method, path, body, contentType: jsonType, signal });
  }

  async #archive(route: string, { signal }: RestOptions): Promise<ArchiveResponse> {
    const { timings } = this.#connection.options;
    for (let attempt = 1; ; attempt++) {
      // 503 means "being built", which takes longer than the usual retries wait.
      const answer = await this.#connection.sendOnce({ method: "GET", path: `${route}/archive`, signal });
      if (answer.status < 400) return this.#readArchive(answer);
      if (answer.status !== 503 || attempt >= archiveTries) throw statusError("archive", answer.status, textOf(answer));
      await sleep(timings.archivePauseMs, signal, this.#connection.closing);
    }
  }

  #readArchive(answer: HttpAnswer): ArchiveResponse {
    if (answer.status < 300) return this.#connection.read(archiveResponse, answer, "archive");
    const { location, expires } = answer.headers;
    if (typeof location !== "string") throw badResponse("archive", new Error("its redirect names no location."));
    const time = typeof expires === "string" ? Date.parse(expires) : Number.NaN;
    return {
      url: new URL(location, this.#connection.options.baseUrl).href,
      expires: new Date(Number.isNaN(time) ? Date.now() + archiveLifetimeMs : time),
    };
  }
}

const checkpointRoute = (trainingRunId: string, checkpointId: string) =>
  `${routes.trainingRuns}/${trainingRunId}/checkpoints/${checkpointId}`;

const routeOf = (path: TinkerPath) => checkpointRoute(path.trainingRunId, path.checkpointId);
