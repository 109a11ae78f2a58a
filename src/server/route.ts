// What a handler is, and what it gets to see of a request. Messages are read and written by the route's own schemas; a handler
// takes one and gives the other.
import type { z } from "zod";
import { decode, type Route } from "../protocol/index.ts";
import type { App } from "./app.ts";
import { badRequest, type NumberedRequest, ServerError } from "./errors.ts";
import type { Answer } from "./http.ts";
import { parseBody, sequenceIn } from "./json.ts";

/** What a request of this route says. */
export type Message<R extends Route> = R["request"] extends z.ZodType ? z.output<R["request"]> : undefined;
type Reply<R extends Route> = R["response"] extends z.ZodType ? z.output<R["response"]> : undefined;

/** Answers a request: with the route's response, or with an Answer where that is no JSON of status 200. */
export type Handler<R extends Route> = (
  app: App,
  message: Message<R>,
  call: Call,
  // biome-ignore lint/suspicious/noConfusingVoidType: a route without a response is answered with nothing.
) => Reply<R> | Answer | void | Promise<Reply<R> | Answer | void>;

/** A handler for every route of a group. */
type Handlers<Group extends Readonly<Record<string, Route>>> = {
  readonly [Name in keyof Group]: Handler<Group[Name]>;
};

/** A route as the server holds it. */
export interface ServedRoute {
  /** As the protocol's table calls it. */
  name: string;
  route: Route;
  // biome-ignore lint/suspicious/noExplicitAny: each handler fits its own route, which `Handlers` has checked.
  handle: Handler<any>;
  /** True: needs no API key. */
  open: boolean;
  /** Bodies may be as large as the server's limit: training data. */
  large: boolean;
}

export function serve<Group extends Readonly<Record<string, Route>>>(
  group: Group,
  handlers: Handlers<Group>,
  options: { open?: readonly (keyof Group)[]; large?: readonly (keyof Group)[] } = {},
): ServedRoute[] {
  return Object.entries(group).map(([name, route]) => ({
    name,
    route,
    handle: handlers[name as keyof Group] as ServedRoute["handle"],
    open: options.open?.includes(name) ?? false,
    large: options.large?.includes(name) ?? false,
  }));
}

/** Plain JSON bodies are read on the main thread; the largest are prompts. */
export const plainBodyLimit = 4 << 20;

/** One request, its body read. */
export class Call {
  declare readonly parameters: Readonly<Record<string, string>>;
  declare readonly query: URLSearchParams;
  declare readonly bytes: Uint8Array<ArrayBuffer>;
  declare readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  /** Where this server is reached, for links. */
  declare readonly origin: string;
  /** Fires when the client is gone. */
  declare readonly signal: AbortSignal;
  /** The place of a training request, as soon as it is known. */
  numbered: NumberedRequest | undefined;

  constructor(fields: Pick<Call, "parameters" | "query" | "bytes" | "headers" | "origin" | "signal">) {
    Object.assign(this, fields);
  }

  header(name: string): string {
    return String(this.headers[name] ?? "");
  }

  /** The JSON body as this message. */
  read<T extends z.ZodType>(schema: T): z.output<T> {
    this.requireJson();
    const body = parseBody(this.bytes);
    this.numbered = sequenceIn(body);
    return decode(schema, body);
  }

  requireJson(): void {
    const contentType = this.header("content-type");
    if (!/^(|application\/([\w.-]+\+)?json)\s*(;|$)/i.test(contentType))
      throw new ServerError(
        415,
        "server/content-type",
        `This route does not read "${contentType.slice(0, 60)}". Send application/json.`,
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
    throw badRequest("server/query", `${name}=${text.slice(0, 40)} is not a number from 0 to ${max}. Correct it.`);
  }

  /** The version of the official SDK that asks, as [major, minor, patch]; undefined for other clients. */
  get sdkVersion(): [number, number, number] | undefined {
    const [, major, minor, patch] = /^AsyncTinker\/Python (\d+)\.(\d+)\.(\d+)/.exec(this.header("user-agent")) ?? [];
    return major === undefined ? undefined : [Number(major), Number(minor), Number(patch)];
  }
}
