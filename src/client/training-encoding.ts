// Whether a server reads training data as protobuf, or as JSON only (SkyRL 0.3). Most servers are never asked: only a refusal that one
// without protobuf would give leads to a question, with an empty body, which each kind refuses in its own way.
import {
  decodeForwardBackwardRequest,
  encodeForwardBackwardJson,
  jsonType,
  protobufType,
  routes,
} from "../protocol/index.ts";
import { APIStatusError } from "./errors.ts";
import type { Notices } from "./notices.ts";
import { type HttpAnswer, type HttpRequest, textOf } from "./transport.ts";

/** Called when the server certainly did not take a request. */
export type Refused = ((error: unknown) => void) | undefined;
/** Sends one request until it is accepted; `isFinal` tells answers that no further try would change. */
type Post<T> = (
  request: HttpRequest,
  refused: Refused,
  isFinal?: (answer: HttpAnswer) => Promise<boolean>,
) => Promise<T>;

export class TrainingEncoding {
  readonly #send: (request: HttpRequest) => Promise<HttpAnswer>;
  readonly #notices: Notices;
  /** Undefined: not known yet. */
  #protobuf: boolean | undefined;
  #probe: Promise<void> | undefined;

  constructor(send: (request: HttpRequest) => Promise<HttpAnswer>, notices: Notices) {
    this.#send = send;
    this.#notices = notices;
  }

  /** Has `post` send a batch as protobuf, or as JSON to a server that reads nothing else. */
  async submit<T>(body: Uint8Array, refused: Refused, post: Post<T>): Promise<T> {
    const { path } = routes.forwardBackward;
    let refusal: unknown;
    if (this.#protobuf ?? true) {
      const request: HttpRequest = { method: "POST", path, body, contentType: protobufType };
      try {
        const accepted = await post(
          request,
          (error) => !this.#mayReadJson(error) && refused?.(error),
          (answer) => this.#readsNone(answer),
        );
        this.#reads("protobuf");
        return accepted;
      } catch (error) {
        if (!this.#mayReadJson(error)) throw error;
        refusal = this.#protobuf === undefined ? error : undefined;
      }
    }
    const message = decodeForwardBackwardRequest(body);
    const json = JSON.stringify(encodeForwardBackwardJson(message));
    try {
      const accepted = await post(
        { method: "POST", path: message.forwardOnly ? routes.forward.path : path, body: json },
        refused,
      );
      this.#reads("json");
      return accepted;
    } catch (error) {
      throw refusal ?? error;
    }
  }

  /** Whether a refusal of protobuf means that the server reads none. */
  async #readsNone(answer: HttpAnswer): Promise<boolean> {
    if (this.#protobuf !== undefined || ![415, 422, 500, 501].includes(answer.status)) return false;
    this.#probe ??= this.#ask().finally(() => {
      this.#probe = undefined;
    });
    await this.#probe;
    return this.#protobuf === false;
  }

  /** Whether, after this refusal of protobuf, the same data are worth a try as JSON: some servers only say that they cannot parse. */
  #mayReadJson(error: unknown): boolean {
    if (this.#protobuf !== undefined) return !this.#protobuf;
    return error instanceof APIStatusError && [400, 405, 406].includes(error.status);
  }

  #reads(encoding: "protobuf" | "json"): void {
    this.#protobuf = encoding === "protobuf";
    if (!this.#protobuf)
      this.#notices.once("This server reads no protobuf; training data are sent as JSON, which is slower.");
  }

  async #ask(): Promise<void> {
    const { path } = routes.forwardBackward;
    const ask = (body: string | Uint8Array, contentType: string) =>
      this.#send({ method: "POST", path, body, contentType });
    try {
      const answer = await ask(new Uint8Array(), protobufType);
      if (answer.status === 415 || saysBodyMissing(answer)) this.#reads("json");
      else if (answer.status < 500) this.#reads("protobuf");
      // One that breaks over an empty body too is down, or reads JSON: then it refuses an empty message without breaking.
      else if ([400, 422].includes((await ask("{}", jsonType)).status)) this.#reads("json");
    } catch {
      // The call that led here is tried again, and leads here again.
    }
  }
}

/** What a server says that took the bytes for no body at all. */
function saysBodyMissing(answer: HttpAnswer): boolean {
  try {
    const { detail } = JSON.parse(textOf(answer)) as { detail?: { type?: unknown; loc?: unknown[] }[] };
    return answer.status === 422 && detail!.some(({ type, loc }) => type === "missing" && loc?.join() === "body");
  } catch {
    return false;
  }
}
