// Our server inside the test's own process, and plain HTTP calls to it.
import { Agent, fetch, type Headers } from "undici";
import { afterEach } from "vitest";
import { SimulatedEngine, type SimulatedEngineOptions, simulatedModelName } from "../../src/engine/simulated/engine.ts";
import { type ServerOptions, startServer, type TinkerServer } from "../../src/server/index.ts";
import { temporaryFolders } from "./folders.ts";

export const key = "tml-test";
export const newFolder = temporaryFolders();
const servers: TinkerServer[] = [];
afterEach(async () => {
  await Promise.all(servers.splice(0).map((server) => server.close()));
});

export async function start(options: Partial<ServerOptions> = {}, engine: SimulatedEngineOptions = {}) {
  const server = await startServer({
    stateDir: newFolder(),
    createEngine: async () => new SimulatedEngine(engine),
    apiKey: key,
    drainMs: 0,
    ...options,
  });
  servers.push(server);
  return server;
}

/** A connection per call: one kept from before a server's restart would fail the first call after it. */
const freshConnections = new Agent({ pipelining: 0 });

export interface Reply {
  status: number;
  headers: Headers;
  // biome-ignore lint/suspicious/noExplicitAny: bodies are whatever the test looks at.
  body: any;
}

export async function call(
  server: TinkerServer,
  path: string,
  body?: unknown,
  options: { method?: string; headers?: Record<string, string>; raw?: Uint8Array<ArrayBuffer> | string } = {},
): Promise<Reply> {
  const response = await fetch(`${server.url}/api/v1${path}`, {
    method: options.method ?? (body === undefined && options.raw === undefined ? "GET" : "POST"),
    headers: { "X-API-Key": key, "Content-Type": "application/json", ...options.headers },
    redirect: "manual",
    dispatcher: freshConnections,
    ...((body !== undefined || options.raw !== undefined) && { body: options.raw ?? JSON.stringify(body) }),
  });
  const bytes = new Uint8Array(await response.arrayBuffer());
  const json = response.headers.get("content-type")?.includes("json");
  return {
    status: response.status,
    headers: response.headers,
    body: json ? JSON.parse(Buffer.from(bytes).toString("utf8")) : bytes,
  };
}

/** Asks for a result once: it may be told to try again. */
export const pollOnce = (server: TinkerServer, reply: Reply, headers: Record<string, string> = {}) =>
  call(server, "/retrieve_future", { request_id: reply.body.request_id }, { headers });

/** Asks for a result until it is there. */
export async function poll(server: TinkerServer, reply: Reply, headers: Record<string, string> = {}): Promise<Reply> {
  for (;;) {
    const answer = await pollOnce(server, reply, headers);
    if (answer.status !== 408) return answer;
  }
}

export async function newModel(server: TinkerServer, modelSeqId = 0) {
  const { body } = await call(server, "/create_session", { sdk_version: "test" });
  const sessionId = body.session_id as string;
  const created = await poll(
    server,
    await call(server, "/create_model", {
      session_id: sessionId,
      model_seq_id: modelSeqId,
      base_model: simulatedModelName,
    }),
  );
  return { sessionId, modelId: created.body.model_id as string };
}

export const numbers = (data: readonly number[], dtype: string) => ({ data, dtype, shape: [data.length] });
export const datum = {
  model_input: { chunks: [{ type: "encoded_text", tokens: [5, 6, 7] }] },
  loss_fn_inputs: { target_tokens: numbers([6, 7, 8], "int64"), weights: numbers([0, 1, 1], "float32") },
};
export const trainBody = (modelId: string, seqId: number, change: object = {}) => ({
  model_id: modelId,
  seq_id: seqId,
  forward_backward_input: { data: [datum], loss_fn: "cross_entropy", ...change },
});
export const stepBody = (modelId: string, seqId: number, adam: object = {}) => ({
  model_id: modelId,
  seq_id: seqId,
  adam_params: { learning_rate: 0.1, ...adam },
});
