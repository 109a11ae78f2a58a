// Runs, checkpoints, sessions and accounts: plain calls that need no session.
import {
  type AccessScope,
  type ArchiveResponse,
  type AuditResponse,
  type BillingUsageResponse,
  type CheckpointsResponse,
  type CheckpointUsageResponse,
  type ExternalWeightsUrls,
  parseTinkerPath,
  type Route,
  routes,
  type SamplerResponse,
  type SearchSessionsRequest,
  type SearchSessionsResponse,
  type SessionResponse,
  type TrainingRun,
  type TrainingRunsResponse,
  type WeightsInfoResponse,
} from "../protocol/index.ts";
import { badResponse, type Connection, type Question, requestOf } from "./connection.ts";
import { claimsOf } from "./credentials.ts";
import { APIStatusError, TinkerError } from "./errors.ts";
import { protocolVersion } from "./options.ts";
import { Attempts } from "./retry.ts";
import type { HttpAnswer } from "./transport.ts";

/** Options of every call. */
export interface RestOptions {
  /** Ends the call. */
  signal?: AbortSignal | undefined;
}

/** Whose things to look at. */
export interface ScopeOptions extends RestOptions {
  /** `owned` (default), or also what is `accessible` to you. */
  accessScope?: AccessScope | undefined;
}

/** Which part of a list. */
export interface PageOptions extends RestOptions {
  /** At most this many items. */
  limit?: number | undefined;
  /** After this many items. */
  offset?: number | undefined;
}

const archiveLifetimeMs = 15 * 60_000;

/** Looks after what lies at the server: runs, checkpoints, sessions, samplers, usage. */
export class RestClient {
  readonly #connection: Connection;

  /** Made by ServiceClient. */
  constructor(connection: Connection) {
    this.#connection = connection;
  }

  /** One training run. */
  getTrainingRun(trainingRunId: string, options: ScopeOptions = {}): Promise<TrainingRun> {
    const question = { parameters: { run: trainingRunId }, query: scopeOf(options) };
    return this.#ask("get_training_run", routes.trainingRun, question, options);
  }

  /** The run that a checkpoint belongs to. */
  async getTrainingRunByTinkerPath(path: string, options: ScopeOptions = {}): Promise<TrainingRun> {
    return this.getTrainingRun(parseTinkerPath(path).trainingRunId, options);
  }

  /** Training runs, a part of the list at a time. */
  listTrainingRuns(options: PageOptions & ScopeOptions & { projectId?: string } = {}): Promise<TrainingRunsResponse> {
    const query = { ...pageOf(options, 20), ...scopeOf(options), project_id: options.projectId };
    return this.#ask("list_training_runs", routes.trainingRuns, { query }, options);
  }

  /** The checkpoints of one run. */
  listCheckpoints(trainingRunId: string, options: RestOptions = {}): Promise<CheckpointsResponse> {
    return this.#ask("list_checkpoints", routes.runCheckpoints, { parameters: { run: trainingRunId } }, options);
  }

  /** All of your checkpoints, newest first. */
  listUserCheckpoints(options: PageOptions = {}): Promise<CheckpointsResponse> {
    return this.#ask("list_user_checkpoints", routes.checkpoints, { query: pageOf(options, 100) }, options);
  }

  /** The base model and LoRA settings of a checkpoint; works for public ones of others too. */
  getWeightsInfoByTinkerPath(path: string, options: RestOptions = {}): Promise<WeightsInfoResponse> {
    const message = { tinkerPath: path };
    return this.#ask("get_weights_info_by_tinker_path", routes.weightsInfo, { message }, options);
  }

  /** `checkpointId` is `weights/NAME`, `sampler_weights/NAME` or `external_weights/NAME`. */
  async deleteCheckpoint(trainingRunId: string, checkpointId: string, options: RestOptions = {}): Promise<void> {
    const parameters = { run: trainingRunId, checkpoint: checkpointId };
    await this.#ask("delete_checkpoint", routes.deleteCheckpoint, { parameters }, options);
  }

  /** Removes the checkpoint for good. */
  async deleteCheckpointFromTinkerPath(path: string, options: RestOptions = {}): Promise<void> {
    await this.#ask("delete_checkpoint_from_tinker_path", routes.deleteCheckpoint, checkpointAt(path), options);
  }

  /** Lets everybody read the checkpoint. */
  async publishCheckpointFromTinkerPath(path: string, options: RestOptions = {}): Promise<void> {
    await this.#ask("publish_checkpoint_from_tinker_path", routes.publishCheckpoint, checkpointAt(path), options);
  }

  /** Takes back what `publishCheckpointFromTinkerPath` gave. */
  async unpublishCheckpointFromTinkerPath(path: string, options: RestOptions = {}): Promise<void> {
    await this.#ask("unpublish_checkpoint_from_tinker_path", routes.unpublishCheckpoint, checkpointAt(path), options);
  }

  /** The checkpoint is deleted after `ttlSeconds`; null keeps it for good. */
  async setCheckpointTtlFromTinkerPath(
    path: string,
    ttlSeconds: number | null,
    options: RestOptions = {},
  ): Promise<void> {
    const question = { ...checkpointAt(path), message: { ttlSeconds } };
    await this.#ask("set_checkpoint_ttl_from_tinker_path", routes.checkpointTtl, question, options);
  }

  /** Copies a checkpoint into a project of yours; an access token lets you read one that another account has shared. */
  async copyWeights(
    sourcePath: string,
    options: RestOptions & {
      destinationProjectId: string;
      ttlSeconds?: number | undefined;
      weightsAccessToken?: string | undefined;
    },
  ): Promise<string> {
    const { destinationProjectId, ttlSeconds, weightsAccessToken: token } = options;
    const headers = token === undefined ? undefined : { "X-Tinker-Weights-Access-Token": token };
    const question = { message: { sourcePath, destinationProjectId, ttlSeconds }, headers };
    return (await this.#ask("copy_weights", routes.copyWeights, question, options)).tinkerPath;
  }

  /** Signed addresses of the files of a checkpoint made by `saveWeightsExternal`, by file name. */
  async getExternalWeightsUrls(path: string, options: RestOptions = {}): Promise<ExternalWeightsUrls> {
    return this.#ask("get_external_weights_urls", routes.externalWeightsUrls, checkpointAt(path), options);
  }

  /** A signed address of the checkpoint's files as a tar; waits while the server builds it. Hosted Tinker has it no more. */
  getCheckpointArchiveUrl(
    trainingRunId: string,
    checkpointId: string,
    options: RestOptions = {},
  ): Promise<ArchiveResponse> {
    return this.#archive({ run: trainingRunId, checkpoint: checkpointId }, options);
  }

  /** A signed address at which the checkpoint's files can be fetched. */
  async getCheckpointArchiveUrlFromTinkerPath(path: string, options: RestOptions = {}): Promise<ArchiveResponse> {
    const { parameters } = checkpointAt(path);
    try {
      return await this.#archive(parameters, options);
    } catch (error) {
      // SkyRL wants the bare name of a sampler checkpoint.
      const { kind, name } = parseTinkerPath(path);
      if (kind !== "sampler" || !(error instanceof APIStatusError && error.status === 405)) throw error;
      return this.#archive({ ...parameters, checkpoint: name }, options);
    }
  }

  /** What belongs to a session. */
  getSession(sessionId: string, options: ScopeOptions = {}): Promise<SessionResponse> {
    const question = { parameters: { session: sessionId }, query: scopeOf(options) };
    return this.#ask("get_session", routes.session, question, options);
  }

  /** Ids of sessions, a part of the list at a time. */
  async listSessions(options: PageOptions & ScopeOptions = {}): Promise<string[]> {
    const query = { ...pageOf(options, 20), ...scopeOf(options) };
    return (await this.#ask("list_sessions", routes.sessions, { query }, options)).sessions;
  }

  /** Sessions by name, metadata, project or how they ended; newest first. */
  searchSessions(
    search: Partial<SearchSessionsRequest> = {},
    options: RestOptions = {},
  ): Promise<SearchSessionsResponse> {
    const message = { userMetadata: {}, limit: 50, ...search };
    return this.#ask("search_sessions", routes.searchSessions, { message }, options);
  }

  /** Puts a session into a project. */
  async assignSessionProject(sessionId: string, projectId: string, options: RestOptions = {}): Promise<void> {
    const question = { parameters: { session: sessionId }, message: { projectId } };
    await this.#ask("assign_session_project", routes.sessionProject, question, options);
  }

  /** Exports a session's trace and returns its address; waits while the server writes it. */
  async exportSessionTrace(sessionId: string, options: RestOptions = {}): Promise<string> {
    const question = { parameters: { session: sessionId } };
    const context = this.#connection.retryContext(`The trace of ${sessionId}`, options.signal);
    const attempts = new Attempts(context, this.#connection.policies.report);
    for (;;) {
      const { status, url, error } = await this.#ask("export_session_trace", routes.traceExport, question, options);
      if (status === "ready" && url !== undefined) return url;
      if (status === "failed")
        throw new TinkerError(
          "client/trace-export",
          `The server could not export the trace of ${sessionId}: ${error ?? "no reason given"}. Try again later.`,
        );
      await attempts.notYet(0, { pauseMs: context.timings.retryMaxMs });
    }
  }

  /** What a sampler samples from. */
  getSampler(samplerId: string, options: RestOptions = {}): Promise<SamplerResponse> {
    return this.#ask("get_sampler", routes.sampler, { parameters: { sampler: samplerId } }, options);
  }

  /** Who the credential belongs to, as its token says; needs a server (or a credential) that uses JWTs. */
  async whoami(): Promise<{ userUrn: string; email: string | undefined; orgId: string | undefined }> {
    const { pjwtAuthEnabled } = await this.#connection.config();
    const { sub, email, iss, org_id: orgId } = claimsOf(this.#connection.credentials.token);
    const trusted = pjwtAuthEnabled || (typeof iss === "string" && iss.startsWith("passport-"));
    if (!trusted || typeof sub !== "string")
      throw new TinkerError(
        "client/no-identity",
        "This server does not say who a key belongs to. Use a credential that is exchanged for a JWT, as hosted Tinker does.",
      );
    const text = (value: unknown) => (typeof value === "string" ? value : undefined);
    return { userUrn: sub, email: text(email), orgId: text(orgId) };
  }

  /** What happened in the organisation; `day` is an ISO date in UTC. Needs the admin role. */
  getAuditLog(
    options: RestOptions & {
      eventType?: "all" | "checkpoints" | "projects" | "teams" | "organizations";
      day?: string;
    } = {},
  ): Promise<AuditResponse> {
    const query = { event_type: options.eventType ?? "all", day: options.day };
    return this.#ask("get_audit_log", routes.audit, { query }, options);
  }

  /** Usage between two whole UTC hours, at most 14 days apart. */
  getBillingUsage(startingOn: Date, endingBefore: Date, options: RestOptions = {}): Promise<BillingUsageResponse> {
    const query = { starting_on: startingOn.toISOString(), ending_before: endingBefore.toISOString() };
    return this.#ask("get_billing_usage", routes.billingUsage, { query }, options);
  }

  /** How many checkpoints there are now, and what they take. */
  getCheckpointUsage(options: RestOptions & { projectId?: string } = {}): Promise<CheckpointUsageResponse> {
    const query = { project_id: options.projectId };
    return this.#ask("get_checkpoint_usage", routes.checkpointUsage, { query }, options);
  }

  #ask<R extends Route>(method: string, route: R, question: Question<R>, { signal }: RestOptions) {
    const headers = { ...question.headers, "x-sdk-version": protocolVersion, "x-sdk-method": method };
    return this.#connection.ask(route, { ...question, headers, signal });
  }

  async #archive(parameters: Record<string, string>, { signal }: RestOptions): Promise<ArchiveResponse> {
    const request = requestOf(routes.archive, { parameters, signal });
    const options = { what: "archive", policy: this.#connection.policies.archive, follow: false };
    return this.#readArchive(await this.#connection.call(request, options));
  }

  #readArchive(answer: HttpAnswer): ArchiveResponse {
    if (answer.status < 300) return this.#connection.read(routes.archive.response, answer, "archive");
    const { location, expires } = answer.headers;
    if (typeof location !== "string") throw badResponse("archive", new Error("its redirect names no location."));
    const time = typeof expires === "string" ? Date.parse(expires) : Number.NaN;
    return {
      url: new URL(location, this.#connection.options.baseUrl).href,
      expires: new Date(Number.isNaN(time) ? Date.now() + archiveLifetimeMs : time),
    };
  }
}

/** The parameters of a route that is about the checkpoint at this address. */
function checkpointAt(path: string) {
  const { trainingRunId, checkpointId } = parseTinkerPath(path);
  return { parameters: { run: trainingRunId, checkpoint: checkpointId } };
}

const scopeOf = ({ accessScope = "owned" }: ScopeOptions) => ({ access_scope: accessScope });

const pageOf = ({ limit, offset = 0 }: PageOptions, usual: number) => ({ limit: limit ?? usual, offset });
