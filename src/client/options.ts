// The options of a client, and what it takes from the environment without them.
import { readFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { describeOutage, type OutageNews } from "../core/outage.ts";
import type { QueueState } from "../protocol/index.ts";
import { CredentialError, InvalidInputError } from "./errors.ts";

/** The protocol level this client speaks, sent to servers as `sdk_version`. */
export const protocolVersion = "0.36.0";
export const userAgent = "whetstone-tinker/0.1.0";
/** Whether an address is the hosted service's. */
export const isHosted = (baseUrl: string): boolean =>
  URL.canParse(baseUrl) && /(^|\.)thinkingmachines\.dev$/.test(new URL(baseUrl).hostname);
export const defaultBaseUrl = "https://tinker.thinkingmachines.dev/services/tinker-prod";

/** How the client waits. All in milliseconds; tests make them short. */
export interface Timings {
  /** One HTTP exchange. */
  requestTimeoutMs: number;
  /** A poll is asked again after this long without an answer. */
  pollTimeoutMs: number;
  /** Between two signs of life. */
  heartbeatIntervalMs: number;
  /**
   * Delays before a further try: base · 2ⁿ, at most max, less up to a quarter at random. After a 429, samples are held back for twice the
   * base (ten times for a large prompt).
   */
  retryBaseMs: number;
  /**
   * Longest pause between two tries, and the pause between questions to a server that needs time: an account that cannot be charged (402),
   * a trace; three times that for an archive.
   */
  retryMaxMs: number;
  /** Submits and REST calls are retried for this long; a conflict (409) for a twentieth of it. */
  retryWindowMs: number;
  /** A server that gives no answer to anything for this long is given up: all that waits for it fails. */
  outageMs: number;
  /** What fails for this long is mentioned to the user, with the reason; what takes 12 times as long too, once a minute. */
  noticeMs: number;
  /** Sampling fails when no sample has finished for this long. */
  stuckMs: number;
}

/** The time limits that hold unless others are given. */
export const defaultTimings: Readonly<Timings> = {
  requestTimeoutMs: 60_000,
  pollTimeoutMs: 45_000,
  heartbeatIntervalMs: 10_000,
  retryBaseMs: 500,
  retryMaxMs: 10_000,
  retryWindowMs: 300_000,
  outageMs: 1_800_000,
  noticeMs: 5_000,
  stuckMs: 7_200_000,
};

/** A queue at the server changed its state for one of this client's models or samplers. */
export interface QueueStateEvent {
  /** The model id or sampling session id. */
  id: string;
  /** What holds work up, or that nothing does any more. */
  state: QueueState;
  /** In the server's words. */
  reason: string | undefined;
}

/** How to reach a server, and how patiently. */
export interface ClientOptions {
  /**
   * Starts with `tml-` (an API key) or `eyJ` (a JWT). Default: TINKER_API_KEY, TINKER_CREDENTIAL_CMD, then the default key of
   * ~/.tinker/credentials.json, which `tinker auth login` writes.
   */
  apiKey?: string | undefined;
  /** Default: TINKER_BASE_URL, else hosted Tinker. Its path is a prefix of every route. */
  baseUrl?: string | undefined;
  /** Default: TINKER_PROJECT_ID. */
  projectId?: string | undefined;
  /** Default: TINKER_TAGS, comma-separated. */
  tags?: readonly string[] | undefined;
  /** What listings call the session. */
  displayName?: string | undefined;
  /** Kept with the session at the server. */
  userMetadata?: Readonly<Record<string, unknown>> | undefined;
  /** Sent with every request. */
  defaultHeaders?: Readonly<Record<string, string>> | undefined;
  /** Retries of one HTTP call; default 10. */
  maxRetries?: number | undefined;
  /** Connections for polls, each of which holds one while it waits; default 1000. Calls have up to 128 of their own. */
  maxConnections?: number | undefined;
  /** Time limits that differ from `defaultTimings`. */
  timings?: Partial<Timings> | undefined;
  /** Called when a queue pauses and goes on. Default: pauses are given to `onWarning`, at most once a minute. */
  onQueueState?: ((event: QueueStateEvent) => void) | undefined;
  /** Called with what a user should know and no call can return. Default: console.warn. */
  onWarning?: ((message: string) => void) | undefined;
  /** Called with how an outage of the server stands, with every try that fails, and when it is over. Default: what is due is given to `onWarning`. */
  onOutage?: ((news: OutageNews) => void) | undefined;
}

/** The options with everything filled in. */
export interface ResolvedOptions {
  credential: string;
  credentialCommand: string | undefined;
  baseUrl: URL;
  projectId: string | undefined;
  displayName: string | undefined;
  tags: readonly string[];
  userMetadata: Readonly<Record<string, unknown>>;
  headers: Readonly<Record<string, string>>;
  maxRetries: number;
  maxConnections: number;
  timings: Readonly<Timings>;
  onQueueState: ((event: QueueStateEvent) => void) | undefined;
  onWarning: (message: string) => void;
  onOutage: (news: OutageNews) => void;
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
  for (const [name, value] of Object.entries({ ...options, ...options.timings }))
    if (Number.isNaN(value)) throw new InvalidInputError(`${name} is NaN. Pass a number, or leave it out.`);
  const headers: Record<string, string> = {};
  const onWarning = options.onWarning ?? ((message: string) => console.warn(`whetstone/tinker: ${message}`));
  for (const [name, value] of Object.entries({ ...access, ...options.defaultHeaders }))
    if (value !== undefined) headers[name] = value;
  return {
    credential: checkCredential(
      options.apiKey ??
        given("TINKER_API_KEY") ??
        (credentialCommand === undefined ? storedKey(environment) : undefined),
      credentialCommand,
    ),
    credentialCommand,
    baseUrl: parseBaseUrl(options.baseUrl || given("TINKER_BASE_URL") || defaultBaseUrl),
    projectId: options.projectId ?? given("TINKER_PROJECT_ID"),
    displayName: options.displayName,
    tags: [...new Set(tags)].filter((tag) => tag !== ""),
    userMetadata: options.userMetadata ?? {},
    headers,
    maxRetries: options.maxRetries ?? 10,
    maxConnections: options.maxConnections ?? 1000,
    timings: { ...defaultTimings, ...options.timings },
    onQueueState: options.onQueueState,
    onWarning,
    onOutage: options.onOutage ?? ((news) => news.due && onWarning(describeOutage(news))),
  };
}

/** The key that `tinker auth login` has stored for this user, if any. */
function storedKey(environment: NodeJS.ProcessEnv): string | undefined {
  try {
    const path = join(environment["HOME"] ?? homedir(), ".tinker", "credentials.json");
    const stored = JSON.parse(readFileSync(path, "utf8")) as {
      default?: string;
      keys?: Record<string, { key?: string }>;
    };
    return stored.keys?.[stored.default ?? ""]?.key;
  } catch {
    // Nobody has logged in here.
    return undefined;
  }
}

/** A credential command may stand in for a key; the server decides whether it is used. */
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
