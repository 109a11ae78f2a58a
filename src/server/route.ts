// What a route is, and what its handler gets to see of a request.
import type { z } from "zod";
import type { App } from "./app.ts";
import { ServerError } from "./errors.ts";
import type { Answer } from "./http.ts";
import { parseBody, readMessage } from "./json.ts";

export interface Route {
  /** The last fixed part of the path: what fault scripts and logs call it. */
  name: string;
  method: "GET" | "POST" | "PUT" | "DELETE";
  /** Matched against the decoded path after the prefix; named groups are parameters. */
  path: RegExp;
  handle(app: App, call: Call): Answer | Promise<Answer>;
  /** True: needs no API key. */
  open?: boolean;
  /** Body limit other than that of plain JSON routes. */
  maxBody?: (app: App) => number;
}

/** Plain JSON bodies are read on the main thread; the largest are prompts. */
export const plainBodyLimit = 4 << 20;

/** One request, its body read. */
export class Call {
  readonly parameters: Readonly<Record<string, string>>;
  readonly query: URLSearchParams;
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly contentType: string;
  readonly accept: string;
  /** Where this server is reached, for links. */
  readonly origin: string;
  /** Fires when the client is gone. */
  readonly signal: AbortSignal;

  constructor(fields: {
    parameters: Readonly<Record<string, string>>;
    query: URLSearchParams;
    bytes: Uint8Array<ArrayBuffer>;
    contentType: string;
    accept: string;
    origin: string;
    signal: AbortSignal;
  }) {
    this.parameters = fields.parameters;
    this.query = fields.query;
    this.bytes = fields.bytes;
    this.contentType = fields.contentType;
    this.accept = fields.accept;
    this.origin = fields.origin;
    this.signal = fields.signal;
  }

  /** The JSON body as this message. */
  read<T extends z.ZodType>(schema: T): z.output<T> {
    return readMessage(schema, this.json());
  }

  json(): Record<string, unknown> {
    this.requireJson();
    return parseBody(this.bytes);
  }

  requireJson(): void {
    if (!/^(|application\/([\w.-]+\+)?json)\s*(;|$)/i.test(this.contentType))
      throw new ServerError(
        415,
        "server/content-type",
        `This route does not read "${this.contentType.slice(0, 60)}". Send application/json.`,
      );
  }

  parameter(name: string): string {
    return this.parameters[name]!;
  }

  /** A whole number in the query. */
  integer(name: string, fallback: number, max: number): number {
    const text = this.query.get(name);
    if (text === null || text === "") return fallback;
    const value = Number(text);
    if (/^\d{1,15}$/.test(text) && value <= max) return value;
    throw new ServerError(
      400,
      "server/query",
      `${name}=${text.slice(0, 40)} is not a number from 0 to ${max}. Correct it.`,
    );
  }
}
