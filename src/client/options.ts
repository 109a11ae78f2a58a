// What a client can be told, and what it takes from the environment when it is not.
import type { QueueState } from "../protocol/index.ts";
import { CredentialError, InvalidInputError } from "./errors.ts";

/** The protocol level this client speaks, told to servers as `sdk_version`. */
export const protocolVersion = "0.25.0";
export const userAgent = "whetstone-tinker/0.1.0";
export const defaultBaseUrl = "https://tinker.thinkingmachines.dev/services/tinker-prod";

/** How the client waits. All in milliseconds; tests make them short. */
export interface Timings {
  connectTimeoutMs: number;
  requestTimeoutMs: number;
  /** A poll is asked again after this long without an answer. */
  pollTimeoutMs: number;
  heartbeatIntervalMs: number;
  /** Without a successful heartbeat for this long, a warning is given. */
  heartbeatWarningMs: number;
  /** Delays between retries: base · 2ⁿ, at most max, less up to a quarter at random. */
  retryBaseMs: number;
  retryMaxMs: number;
  /** Submits and REST calls are retried for this long, with pauses of at most `windowMaxMs` once `maxRetries` are used up. */
  retryWindowMs: number;
  windowMaxMs: number;
  /** A conflict (409) is retried for this long only: it is nearly always a name that is taken. */
  conflictWindowMs: number;
  /** The longest Retry-After that is obeyed. */
  retryAfterMaxMs: number;
  /** Pauses between polls after connection errors, 429s and repeated 5xx: base · 2ⁿ, at most max. */
  pollRetryBaseMs: number;
  pollRetryMaxMs: number;
  /** A pause while the account cannot be charged (402). */
  billingPauseMs: number;
  /** How long samples are held back after a 429: usually, and for large prompts. */
  backpressureMs: number;
  backpressureLargeMs: number;
  /** How long after a 429 submits stay throttled. */
  backpressureMemoryMs: number;
  /** Sampling fails when no sample has finished for this long. */
  stuckMs: number;
  /** Between attempts to get an archive that is being built, and a trace that is being exported. */
  archivePauseMs: number;
  tracePauseMs: number;
}

export const defaultTimings: Readonly<Timings> = {
  connectTimeoutMs: 5_000,
  requestTimeoutMs: 60_000,
  pollTimeoutMs: 45_000,
  heartbeatIntervalMs: 10_000,
  heartbeatWarningMs: 120_000,
  retryBaseMs: 500,
  retryMaxMs: 10_000,
  retryWindowMs: 300_000,
  windowMaxMs: 30_000,
  conflictWindowMs: 15_000,
  retryAfterMaxMs: 60_000,
  pollRetryBaseMs: 1_000,
  pollRetryMaxMs: 30_000,
  billingPauseMs: 5_000,
  backpressureMs: 1_000,
  backpressureLargeMs: 5_000,
  backpressureMemoryMs: 10_000,
  stuckMs: 7_200_000,
  archivePauseMs: 30_000,
  tracePauseMs: 5_000,
};

/** A queue at the server changed its state for one of this client's models or samplers. */
export interface QueueStateEvent {
  /** The model id or sampling session id. */
  id: string;
  state: QueueState;
  reason: string | undefined;
}

export interface ClientOptions {
  /** Starts with `tml-` (an API key) or `eyJ` (a JWT). Default: TINKER_API_KEY. */
  apiKey?: string | undefined;
  /** Default: TINKER_BASE_URL, else hosted Tinker. Its path is a prefix of every route. */
  baseUrl?: string | undefined;
  /** Default: TINKER_PROJECT_ID. */
  projectId?: string | undefined;
  /** Default: TINKER_TAGS, comma-separated. */
  tags?: readonly string[] | undefined;
  /** Kept with the session at the server. */
  userMetadata?: Readonly<Record<string, unknown>> | undefined;
  defaultHeaders?: Readonly<Record<string, string>> | undefined;
  /** Retries of one HTTP call; default 10. */
  maxRetries?: number | undefined;
  /** Connections for polls, each of which holds one while it waits; default 1000. Calls have up to 128 of their own. */
  maxConnections?: number | undefined;
  timings?: Partial<Timings> | undefined;
  /** Told when a queue pauses and goes on. Default: pauses are given to `onWarning`, at most once a minute. */
  onQueueState?: ((event: QueueStateEvent) => void) | undefined;
  /** Told what a user should know and no call can return. Default: console.warn. */
  onWarning?: ((message: string) => void) | undefined;
}

/** The options with everything filled in. */
export interface ResolvedOptions {
  credential: string;
  credentialCommand: string | undefined;
  baseUrl: URL;
  projectId: string | undefined;
  tags: readonly string[];
  userMetadata: Readonly<Record<string, unknown>>;
  headers: Readonly<Record<string, string>>;
  maxRetries: number;
  maxConnections: number;
  timings: Readonly<Timings>;
  onQueueState: ((event: QueueStateEvent) => void) | undefined;
  onWarning: (message: string) => void;
}

export function resolveOptions(
  options: ClientOptions = {},
  environment: Readonly<Record<string, string | undefined>> = process.env,
): ResolvedOptions {
  const given = (name: string) => environment[name] || undefined;
  const credentialCommand = given("TINKER_CREDENTIAL_CMD");
  const tags = options.tags ?? (given("TINKER_TAGS") ?? "").split(",").map((tag) => tag.trim());
  const access = {
    "CF-Access-Client-Id": given("CLOUDFLARE_ACCESS_CLIENT_ID"),
    "CF-Access-Client-Secret": given("CLOUDFLARE_ACCESS_CLIENT_SECRET"),
  };
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries({ ...access, ...options.defaultHeaders }))
    if (value !== undefined) headers[name] = value;
  return {
    credential: checkCredential(options.apiKey ?? given("TINKER_API_KEY"), credentialCommand),
    credentialCommand,
    baseUrl: parseBaseUrl(options.baseUrl || given("TINKER_BASE_URL") || defaultBaseUrl),
    projectId: options.projectId ?? given("TINKER_PROJECT_ID"),
    tags: [...new Set(tags)].filter((tag) => tag !== ""),
    userMetadata: options.userMetadata ?? {},
    headers,
    maxRetries: options.maxRetries ?? 10,
    maxConnections: options.maxConnections ?? 1000,
    timings: { ...defaultTimings, ...options.timings },
    onQueueState: options.onQueueState,
    onWarning: options.onWarning ?? ((message) => console.warn(`whetstone/tinker: ${message}`)),
  };
}

/** A credential command may stand in for a key; whether it is used is the server's to say. */
function checkCredential(credential: string | undefined, command: string | undefined): string {
  if (credential === undefined) {
    if (command !== undefined) return "";
    throw new CredentialError(
      "client/no-api-key",
      'No API key was given. Pass apiKey, or set TINKER_API_KEY; a local server takes any key that starts with "tml-", such as tml-local, unless it was started with another.',
    );
  }
  if (!/^(tml-|eyJ)/.test(credential))
    throw new CredentialError(
      "client/bad-api-key",
      `The API key starts with "${credential.slice(0, 4)}…" but must start with "tml-" (a key) or "eyJ" (a JWT). Check apiKey or TINKER_API_KEY.`,
    );
  return credential;
}

function parseBaseUrl(text: string): URL {
  let url: URL | undefined;
  try {
    url = new URL(text);
  } catch {
    // Reported below.
  }
  if (!url || (url.protocol !== "http:" && url.protocol !== "https:"))
    throw new InvalidInputError(
      `baseUrl "${text}" is not an http:// or https:// URL. Check baseUrl or TINKER_BASE_URL, e.g. http://127.0.0.1:8000.`,
    );
  return url;
}
