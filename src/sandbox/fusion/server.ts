// Sandbox Fusion's /run_code and /v1/ping over the embedded jail. Fields, defaults, null conventions and status rules are the original's. The
// deviations (bounded everything, honest output and memory limits, no paths outside the work folder, only the languages that this machine has)
// are listed in docs/grading.md.
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { messageOf } from "../../core/errors.ts";
import { languageOf, toolsOf } from "../../core/languages/languages.ts";
import { Limiter } from "../../core/limiter.ts";
import { isJson, isLoopback, refusalOf } from "../../core/loopback.ts";
import { isSecret, listen, readBody, sendJson } from "../../core/own-server.ts";
import { type ExecuteResult, emptyResult } from "../execute.ts";
import type { Jail } from "../jail.ts";
import { defaultLimits, SandboxError } from "../sandbox.ts";
import type { CommandRunResult, RunCodeResponse } from "./api.ts";
import { type ParsedRequest, parseRunCode, type RequestProblem } from "./parse.ts";

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
  /** Kept of stdout and of stderr; a program that writes more is ended. */
  outputBytes?: number;
  /** All fetched files of one answer. */
  fetchBytes?: number;
  /** The limit of requests that name none (memory_limit_MB <= 0), and the most that one can name. */
  memoryBytes?: number;
}

const defaults = {
  host: "127.0.0.1",
  queue: 256,
  maxBodyBytes: 32 * 1024 ** 2,
  outputBytes: 1024 ** 2,
  fetchBytes: 32 * 1024 ** 2,
  memoryBytes: defaultLimits.memoryBytes,
};

export interface FusionServer {
  url: string;
  port: number;
  close(): Promise<void>;
}

/** Starts the server; resolves when it listens. */
export async function startFusionServer(options: FusionServerOptions): Promise<FusionServer> {
  const settings = { ...defaults, ...options };
  const { host } = settings;
  if (!options.token && !options.open && !isLoopback(host))
    throw new SandboxError(
      "sandbox/token",
      `host=${host} lets everyone who reaches this machine run programs on it. Set token=… or SANDBOX_TOKEN (clients send it as a bearer token), keep to host=127.0.0.1, or say token=none if the network is closed to others.`,
    );
  const handler = new Handler(settings);
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
  readonly #settings: FusionServerOptions & typeof defaults;
  readonly #limiter: Limiter;
  readonly #stopping = new AbortController();

  constructor(settings: FusionServerOptions & typeof defaults) {
    this.#settings = settings;
    this.#limiter = new Limiter(settings.concurrency);
  }

  stop(): void {
    this.#stopping.abort();
  }

  async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      await this.#route(request, response);
    } catch (error) {
      if (!response.headersSent) sendJson(response, 500, { detail: messageOf(error), traceback: [] });
      else response.destroy();
    }
  }

  async #route(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { host, queue, maxBodyBytes, memoryBytes } = this.#settings;
    const refusal = refusalOf(request.headers, host);
    if (refusal !== undefined) return sendJson(response, 403, { detail: refusal }, { connection: "close" });
    const path = new URL(request.url ?? "/", "http://localhost").pathname.replace(/(.)\/$/, "$1");
    if (path === "/v1/ping") {
      if (request.method === "GET") return sendJson(response, 200, "pong");
      return sendJson(response, 405, { detail: "Method Not Allowed" }, { allow: "GET" });
    }
    if (path !== "/run_code") return sendJson(response, 404, { detail: "Not Found" });
    if (request.method !== "POST") return sendJson(response, 405, { detail: "Method Not Allowed" }, { allow: "POST" });
    if (!this.#isAllowed(request)) return sendJson(response, 401, { detail: "Send the token of this server." });
    if (!isJson(request.headers))
      return sendJson(
        response,
        415,
        { detail: "Send the request as JSON, with Content-Type: application/json." },
        { connection: "close" },
      );
    // Before the body is read: a server that is full does not take megabytes in.
    if (this.#limiter.waiting >= queue)
      return sendJson(response, 429, { detail: `${queue} requests are waiting already` }, { "retry-after": "1" });
    const tooLarge = new RangeError(`The body is larger than ${maxBodyBytes} bytes.`);
    const body = await readBody(request, maxBodyBytes, () => tooLarge).catch((error: unknown) => {
      if (error !== tooLarge) throw error;
    });
    if (!body) return sendJson(response, 413, { detail: tooLarge.message }, { connection: "close" });
    const parsed = parseRunCode(body, memoryBytes);
    if ("problems" in parsed) return sendJson(response, statusOf(parsed.problems), { detail: parsed.problems });
    const missing = await missingLanguage(parsed);
    if (missing) return sendJson(response, 422, { detail: [missing] });
    sendJson(response, 200, await this.#run(parsed, response));
  }

  #isAllowed(request: IncomingMessage): boolean {
    const { token } = this.#settings;
    if (token === undefined) return true;
    const given = /^Bearer (.+)$/.exec(request.headers.authorization ?? "")?.[1] ?? "";
    return isSecret(given, token);
  }

  async #run(parsed: ParsedRequest, response: ServerResponse): Promise<RunCodeResponse> {
    const { jail, fetchBytes, outputBytes } = this.#settings;
    const { runTimeoutS, memoryBytes, ...asked } = parsed;
    if (runTimeoutS <= 0) return answerOf(emptyResult({ status: "time-limit" }), fetchBytes);
    const gone = new AbortController();
    response.once("close", () => gone.abort());
    const signal = AbortSignal.any([gone.signal, this.#stopping.signal]);
    const limits = {
      ...defaultLimits,
      wallMs: Math.ceil(runTimeoutS * 1000),
      cpuMs: (Math.ceil(runTimeoutS) + 1) * 1000,
      memoryBytes,
      outputBytes,
      // A program that runs others, as graders' launchers do, has its own processes beside theirs.
      processes: defaultLimits.processes + 8,
    };
    try {
      const execute = () => jail.execute({ ...asked, fetchBytes, limits }, { signal });
      return answerOf(await this.#limiter.run(execute, { signal }), fetchBytes);
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

const encoded = (bytes: Uint8Array, encoding: "utf8" | "base64") =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString(encoding);

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
    stdout: encoded(result.stdout, "utf8"),
    stderr: encoded(result.stderr, "utf8"),
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
    files: Object.fromEntries([...result.files].map(([path, bytes]) => [path, encoded(bytes, "base64")])),
    ...(Object.keys(limits).length > 0 ? { limits } : {}),
    ...(result.oom ? { oom: true as const } : {}),
  };
}
