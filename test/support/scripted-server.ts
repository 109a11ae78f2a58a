// A small Tinker server for the client's own tests: it answers every route plainly, records what it got, and misbehaves where a
// test says so. Answers queued with `script` go out before the plain ones, one per request of that route.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import {
  decodeForwardBackwardRequest,
  encodeForwardBackwardOutput,
  encodeSampleResponse,
  type ForwardBackwardRequest,
  protobufType,
  tensor,
} from "../../src/protocol/index.ts";

export interface Reply {
  status?: number;
  json?: unknown;
  text?: string;
  bytes?: Uint8Array;
  headers?: Record<string, string>;
  /** Sent without a Content-Length. */
  chunked?: boolean;
}

/** `reset`: the connection breaks before any answer. `half`: in the middle of one. `hang`: nothing comes. `lost`: handled, but the answer is lost. */
export type Fault = "reset" | "half" | "hang" | "lost";

export interface SeenRequest {
  method: string;
  route: string;
  url: string;
  headers: Record<string, string | string[] | undefined>;
  json: Record<string, unknown>;
  /** Of a protobuf body. */
  training: ForwardBackwardRequest | undefined;
}

/** Undefined: the plain answer. */
type Handler = (request: SeenRequest) => Reply | undefined;

export class ScriptedServer {
  readonly requests: SeenRequest[] = [];
  /** The answer to /client/config. */
  config: Record<string, unknown> = {};
  readonly #server: Server;
  readonly #scripts = new Map<string, (Reply | Fault | Handler)[]>();
  readonly #results = new Map<string, Reply>();
  /** Submits already answered, by what makes them the same request. */
  readonly #accepted = new Map<string, string>();
  #count = 0;
  readonly prefix: string;

  private constructor(prefix: string) {
    this.prefix = prefix;
    this.#server = createServer((request, response) => {
      void this.#handle(request, response);
    });
  }

  static async start(prefix = ""): Promise<ScriptedServer> {
    const server = new ScriptedServer(prefix);
    await new Promise<void>((resolve) => server.#server.listen(0, "127.0.0.1", resolve));
    return server;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}${this.prefix}`;
  }

  /** Queues answers for a route, such as "/optim_step" or "GET /training_runs". */
  script(route: string, ...answers: (Reply | Fault | Handler)[]): void {
    this.#scripts.set(route, [...(this.#scripts.get(route) ?? []), ...answers]);
  }

  /** The requests to a route so far. */
  seen(route: string): SeenRequest[] {
    return this.requests.filter((request) => request.route === route);
  }

  /** Registers a result and returns its request id. */
  addResult(reply: Reply): string {
    const id = `req-${++this.#count}`;
    this.#results.set(id, reply);
    return id;
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async #handle(message: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of message) chunks.push(chunk as Buffer);
    const body = Buffer.concat(chunks);
    const url = message.url ?? "";
    const route = new URL(url, "http://x").pathname.slice(`${this.prefix}/api/v1`.length);
    const isProtobuf = message.headers["content-type"] === protobufType;
    const request: SeenRequest = {
      method: message.method ?? "",
      route,
      url,
      headers: message.headers,
      json: isProtobuf || body.length === 0 ? {} : (JSON.parse(body.toString()) as Record<string, unknown>),
      training: isProtobuf ? decodeForwardBackwardRequest(body) : undefined,
    };
    this.requests.push(request);
    const scripted = this.#scripts.get(route)?.shift();
    if (scripted === "hang") return;
    if (scripted === "reset") {
      message.socket.destroy();
      return;
    }
    if (typeof scripted === "object") {
      send(response, scripted);
      return;
    }
    const reply = (typeof scripted === "function" ? scripted(request) : undefined) ?? this.#plain(request);
    if (scripted === "lost") message.socket.destroy();
    else if (scripted === "half") {
      response.writeHead(200, { "content-type": "application/json", "content-length": "1000" });
      response.write('{"request_id":');
      setTimeout(() => message.socket.destroy(), 5);
    } else send(response, reply);
  }

  #plain(request: SeenRequest): Reply {
    const { route, json, training } = request;
    switch (route) {
      case "/client/config":
        return { json: this.config };
      case "/create_session":
        return { json: { session_id: "s1", type: "create_session" } };
      case "/session_heartbeat":
        return { json: { type: "session_heartbeat" } };
      case "/create_model":
        return this.#submit(`model ${json["model_seq_id"]}`, {
          json: { model_id: `s1:train:${json["model_seq_id"]}` },
        });
      case "/forward_backward": {
        const logprobs = training!.data.map(({ lossFnInputs }) => lossFnInputs["target_tokens"]!.data.length);
        const bytes = encodeForwardBackwardOutput({
          lossFnOutputType: "ArrayRecord",
          lossFnOutputs: logprobs.map((length) => ({ logprobs: tensor(new Float32Array(length).fill(-0.5)) })),
          metrics: { "loss:sum": training!.data.length, "first:mean": training!.seqId },
        });
        return this.#submit(`${training!.modelId} ${training!.seqId}`, { bytes });
      }
      case "/optim_step":
        return this.#submit(`${json["model_id"]} ${json["seq_id"]}`, { json: { metrics: { step: json["seq_id"] } } });
      case "/save_weights":
        return this.#submit(`${json["model_id"]} ${json["seq_id"]}`, {
          json: { path: `tinker://${json["model_id"]}/weights/${json["path"]}` },
        });
      case "/save_weights_for_sampler": {
        const named = json["path"] !== undefined;
        return this.#submit(`${json["model_id"]} ${json["seq_id"]}`, {
          json: named
            ? { path: `tinker://${json["model_id"]}/sampler_weights/${json["path"]}` }
            : { path: null, sampling_session_id: `s1:sample:${json["sampling_session_seq_id"]}` },
        });
      }
      case "/load_weights":
        return this.#submit(`load ${JSON.stringify(json)}`, { json: { path: json["path"] } });
      case "/create_sampling_session":
        return { json: { sampling_session_id: `s1:sample:${json["sampling_session_seq_id"]}` } };
      case "/asample": {
        const bytes = encodeSampleResponse({
          sequences: [
            { stopReason: "stop", tokens: Int32Array.of(json["seq_id"] as number), logprobs: Float32Array.of(-1) },
          ],
          ...(json["prompt_logprobs"] === true && { promptLogprobs: Float32Array.of(Number.NaN, -0.5, -0.25) }),
          promptCacheHitTokens: 0,
        });
        return this.#submit(`${json["sampling_session_id"]} ${json["seq_id"]}`, { bytes });
      }
      case "/weights_info":
        return { json: { base_model: "tiny", is_lora: true, lora_rank: 4, train_mlp: null, train_unembed: false } };
      case "/get_info":
        return { json: { model_id: json["model_id"], model_data: { model_name: "tiny", tokenizer_id: "org/tiny:x" } } };
      case "/retrieve_future":
        return this.#results.get(json["request_id"] as string) ?? { status: 404, json: { detail: "unknown request" } };
      default:
        return { status: 404, json: { detail: `no route ${route}` } };
    }
  }

  #submit(identity: string, result: Reply): Reply {
    const id = this.#accepted.get(identity) ?? this.addResult(result);
    this.#accepted.set(identity, id);
    return { json: { request_id: id } };
  }
}

function send(
  response: ServerResponse,
  { status = 200, json, text, bytes, headers = {}, chunked = false }: Reply,
): void {
  const body = bytes ?? Buffer.from(text ?? (json === undefined ? "" : JSON.stringify(json)));
  const type = bytes ? protobufType : text === undefined ? "application/json" : "text/plain";
  if (chunked) {
    response.writeHead(status, { "content-type": type, "transfer-encoding": "chunked", ...headers });
    response.end(body);
  } else {
    response.writeHead(status, { "content-type": type, "content-length": String(body.length), ...headers });
    response.end(body);
  }
}
