// Whether a server reads training data as protobuf, or as JSON only (SkyRL 0.3). Most servers are never asked: only a refusal that one
// without protobuf would give leads to a question, with an empty body, which each kind refuses in its own way.
import { jsonType, protobufType, routes } from "../protocol/index.ts";
import { APIStatusError } from "./errors.ts";
import type { Notices } from "./notices.ts";
import { type HttpAnswer, type HttpRequest, textOf } from "./transport.ts";

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

  /** False: training data go as JSON. */
  get protobuf(): boolean {
    return this.#protobuf ?? true;
  }

  /** Whether this refusal of a protobuf body means that the server reads none. */
  async refusesProtobuf(answer: HttpAnswer): Promise<boolean> {
    if (this.#protobuf !== undefined || ![415, 422, 500, 501].includes(answer.status)) return false;
    this.#probe ??= this.#ask().finally(() => {
      this.#probe = undefined;
    });
    await this.#probe;
    return !this.protobuf;
  }

  /** Whether, after this refusal of a protobuf body, the same data are worth a try as JSON: some servers only say that they cannot parse. */
  mayReadJson(error: unknown): boolean {
    if (this.#protobuf !== undefined) return !this.#protobuf;
    return error instanceof APIStatusError && [400, 405, 406].includes(error.status);
  }

  /** Remembers how the server has read training data. */
  reads(encoding: "protobuf" | "json"): void {
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
      if (answer.status === 415 || saysBodyMissing(answer)) this.reads("json");
      else if (answer.status < 500) this.reads("protobuf");
      // One that breaks over an empty body too is down, or reads JSON: then it refuses an empty message without breaking.
      else if ([400, 422].includes((await ask("{}", jsonType)).status)) this.reads("json");
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
