// Sandbox Fusion's /run_code and /v1/ping over the embedded jail. Fields, defaults, null conventions and status rules are the
// original's; the deviations (bounded everything, honest output and memory limits, no paths outside the work folder, python only)
// are listed in docs/grading.md.
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { messageOf } from "../../core/errors.ts";
import { languageOf, toolsOf } from "../../core/languages/languages.ts";
import { Limiter } from "../../core/limiter.ts";
import { isJson, isLoopback, refusalOf } from "../../core/loopback.ts";
import { isSecret, listen, readBody } from "../../core/own-server.ts";
import { type ExecuteResult, emptyResult } from "../execute.ts";
import type { Jail } from "../jail.ts";
import { defaultLimits, SandboxError } from "../sandbox.ts";
import type { CommandRunResult, RunCodeResponse } from "./api.ts";
import { type ParsedRequest, type ParseRules, parseRunCode, type RequestProblem } from "./parse.ts";

export interface FusionServerOptions {
  jail: Jail;
  /** 0 takes any free port. */
  port: number;
  host?: string;
  /** Programs at the same moment. */
  concurrency: number;
  /** Requests that may wait; more get 429. */
  queue?: number;
  /** Wanted in `Authorization: Bearer …` when set. On other addresses than loopback there must be one, unless `open`. */
  token?: string | undefined;
  open?: boolean;
  maxBodyBytes?: number;
  maxCodeBytes?: number;
  /** Kept of stdout and of stderr; a program that writes more is ended. */
  outputBytes?: number;
  /** All fetched files of one answer. */
  fetchBytes?: number;
  /** The limit of requests that name none (memory_limit_MB <= 0), and the most that one can name. */
  memoryBytes?: number;
  maxRunTimeoutS?: number;
}

export interface FusionServer {
  url: string;
  port: number;
  close(): Promise<void>;
}

/** Starts the server; resolves when it listens. */
export async function startFusionServer(options: FusionServerOptions): Promise<FusionServer> {
  const host = options.host ?? "127.0.0.1";
  if (!options.token && !options.open && !isLoopback(host))
    throw new SandboxError(
      "sandbox/token",
      `host=${host} lets everyone who reaches this machine run programs on it. Set token=… or SANDBOX_TOKEN (clients send it as a bearer token), keep to host=127.0.0.1, or say token=none if the network is closed to others.`,
    );
  const handler = new Handler(options);
  const server = createServer((request, response) => void handler.handle(request, response));
  // Requests take as long as their programs; slow senders are cut off by the body's own timeout.
  server.requestTimeout = 120_000;
  const port = await listen(server, options.port, host).catch((error: NodeJS.ErrnoException) => {
    throw new SandboxError(
      "sandbox/port",
      `Cannot listen on ${host}:${options.port} (${error.code ?? error.message}). Choose another with port=…, or port=0 for any free one.`,
    );
  });
  return {
    port,
    url: `http://${host.includes(":") ? `[${host}]` : host}:${port}`,
    async close() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeIdleConnections();
      handler.stop();
      server.closeAllConnections();
      await closed;
    },
  };
}

class Handler {
  readonly #options: FusionServerOptions;
  readonly #limiter: Limiter;
  readonly #queue: number;
  readonly #maxBodyBytes: number;
  readonly #rules: ParseRules;
  readonly #stopping = new AbortController();

  constructor(options: FusionServerOptions) {
    this.#options = options;
    this.#limiter = new Limiter(options.concurrency);
    this.#queue = options.queue ?? 256;
    this.#maxBodyBytes = options.maxBodyBytes ?? 32 * 1024 ** 2;
    this.#rules = {
      maxCodeBytes: options.maxCodeBytes ?? 1024 ** 2,
      maxRunTimeoutS: options.maxRunTimeoutS ?? 7_200,
      memoryBytes: options.memoryBytes ?? defaultLimits.memoryBytes,
    };
  }

  stop(): void {
    this.#stopping.abort();
  }

  async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      await this.#route(request, response);
    } catch (error) {
      if (!response.headersSent) reply(response, 500, { detail: messageOf(error), traceback: [] });
      else response.destroy();
    }
  }

  async #route(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const refusal = refusalOf(request.headers, this.#options.host ?? "127.0.0.1");
    if (refusal !== undefined) return reply(response, 403, { detail: refusal }, { connection: "close" });
    const path = new URL(request.url ?? "/", "http://localhost").pathname.replace(/(.)\/$/, "$1");
    if (path === "/v1/ping") {
      if (request.method === "GET") return reply(response, 200, "pong");
      return reply(response, 405, { detail: "Method Not Allowed" }, { allow: "GET" });
    }
    if (path !== "/run_code") return reply(response, 404, { detail: "Not Found" });
    if (request.method !== "POST") return reply(response, 405, { detail: "Method Not Allowed" }, { allow: "POST" });
    if (!this.#isAllowed(request)) return reply(response, 401, { detail: "Send the token of this server." });
    if (!isJson(request.headers))
      return reply(
        response,
        415,
        { detail: "Send the request as JSON, with Content-Type: application/json." },
        { connection: "close" },
      );
    // Before the body is read: a server that is full does not take megabytes in.
    if (this.#limiter.waiting >= this.#queue)
      return reply(response, 429, { detail: `${this.#queue} requests are waiting already` }, { "retry-after": "1" });
    const tooLarge = new RangeError(`The body is larger than ${this.#maxBodyBytes} bytes.`);
    const body = await readBody(request, this.#maxBodyBytes, () => tooLarge).catch((error: unknown) => {
      if (error !== tooLarge) throw error;
    });
    if (!body) return reply(response, 413, { detail: tooLarge.message }, { connection: "close" });
    const parsed = parseRunCode(body, this.#rules);
    if ("problems" in parsed) return reply(response, statusOf(parsed.problems), { detail: parsed.problems });
    const missing = await missingLanguage(parsed);
    if (missing) return reply(response, 422, { detail: [missing] });
    reply(response, 200, await this.#run(parsed, response));
  }

  #isAllowed(request: IncomingMessage): boolean {
    if (this.#options.token === undefined) return true;
    const given = /^Bearer (.+)$/.exec(request.headers.authorization ?? "")?.[1] ?? "";
    return isSecret(given, this.#options.token);
  }

  async #run(request: ParsedRequest, response: ServerResponse): Promise<RunCodeResponse> {
    if (request.runTimeoutS <= 0) return answerOf(emptyResult({ status: "time-limit" }), 0);
    const gone = new AbortController();
    response.once("close", () => gone.abort());
    const signal = AbortSignal.any([gone.signal, this.#stopping.signal]);
    try {
      const result = await this.#limiter.run(
        () =>
          this.#options.jail.execute(
            {
              language: request.language,
              code: request.code,
              stdin: request.stdin,
              files: request.files,
              fetchFiles: request.fetchFiles,
              fetchBytes: this.#options.fetchBytes ?? 32 * 1024 ** 2,
              limits: {
                ...defaultLimits,
                wallMs: Math.ceil(request.runTimeoutS * 1000),
                cpuMs: (Math.ceil(request.runTimeoutS) + 1) * 1000,
                memoryBytes: request.memoryBytes,
                outputBytes: this.#options.outputBytes ?? 1024 ** 2,
                // A program that runs others, as graders' launchers do, has its own processes beside theirs.
                processes: defaultLimits.processes + 8,
              },
            },
            { signal },
          ),
        { signal },
      );
      return answerOf(result, this.#options.fetchBytes ?? 32 * 1024 ** 2);
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof SandboxError)) throw error;
      return { ...emptyAnswer(), status: "SandboxError", message: error.message };
    }
  }
}

/** Path and size problems are the sender's, like wrong fields; only a text that is too long has a status of its own. */
const statusOf = (problems: readonly RequestProblem[]) =>
  problems.some(({ type }) => type === "too_long") ? 413 : 422;

const emptyAnswer = (): RunCodeResponse => ({
  status: "Success",
  message: "",
  compile_result: null,
  run_result: null,
  executor_pod_name: process.env["MY_POD_NAME"] ?? null,
  files: {},
});

const text = (bytes: Uint8Array) => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("utf8");

/** A language of ours whose tools this machine does not have. */
async function missingLanguage({ language }: ParsedRequest): Promise<RequestProblem | undefined> {
  const { runtime, fusion, title } = languageOf(language);
  const tools = runtime ? await toolsOf(language) : undefined;
  if (typeof tools !== "string") return undefined;
  const msg = `There is no ${tools} here, which ${title} needs`;
  return { type: "unsupported_language", loc: ["body", "language"], msg, input: fusion };
}

const notCompiled = (stderr: string): RunCodeResponse => ({
  ...emptyAnswer(),
  status: "Failed",
  compile_result: { status: "Finished", execution_time: 0, return_code: 1, stdout: "", stderr },
});

function answerOf(result: ExecuteResult, fetchBytes: number): RunCodeResponse {
  if (result.notCompiled !== undefined) return notCompiled(result.notCompiled);
  const timedOut = result.status === "time-limit";
  const ended = result.status === "output-limit" || result.status === "memory-limit";
  const code = timedOut
    ? null
    : (result.exitCode ?? (result.signal === null ? null : -result.signal) ?? (ended ? -9 : null));
  const run: CommandRunResult = {
    status: timedOut ? "TimeLimitExceeded" : "Finished",
    execution_time: result.wallMs / 1000,
    return_code: result.status === "output-limit" ? -9 : code,
    stdout: text(result.stdout),
    stderr: text(result.stderr),
  };
  const notes: string[] = [];
  if (result.status === "output-limit") notes.push("The program wrote more than the output limit and was ended.");
  if (result.filesLeftOut.length > 0)
    notes.push(`Fetched files are more than ${fetchBytes} bytes; left out: ${result.filesLeftOut.join(", ")}.`);
  const limits = {
    ...(result.stdoutTruncated ? { stdout: true as const } : {}),
    ...(result.stderrTruncated ? { stderr: true as const } : {}),
  };
  return {
    ...emptyAnswer(),
    status: run.status === "Finished" && run.return_code === 0 ? "Success" : "Failed",
    message: notes.join(" "),
    run_result: run,
    files: Object.fromEntries(
      [...result.files].map(([path, bytes]) => [
        path,
        Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("base64"),
      ]),
    ),
    ...(Object.keys(limits).length > 0 ? { limits } : {}),
    ...(result.oom ? { oom: true as const } : {}),
  };
}

function reply(response: ServerResponse, status: number, body: unknown, headers: Record<string, string> = {}): void {
  const bytes = Buffer.from(JSON.stringify(body));
  response.writeHead(status, { "content-type": "application/json", "content-length": bytes.length, ...headers });
  response.end(bytes);
}
